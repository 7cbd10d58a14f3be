"""The JVM of a session of this process: no signal loses it, and it ends with the session."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

END_S = 120
"""A JVM that writes an archive of its classes does so when it ends."""
_DEFERRED = (signal.SIGINT, signal.SIGTERM)


def start_jvm(conf: Mapping[str, str]) -> None:
    """Start the JVM that the next session of this process uses.

    pyspark knows the process only once it has answered. An exception before that would leave a JVM
    that finds its connection file's directory removed, and then waits forever.
    """
    from pyspark import SparkConf, SparkContext

    with _signals_deferred():
        SparkContext._ensure_initialized(conf=SparkConf().setAll(list(conf.items())))  # noqa: SLF001


def end_jvm() -> None:
    """End the JVM, which pyspark leaves until Python ends, and wait for it."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway  # noqa: SLF001
    if gateway is None:
        return
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        # The JVM ends with its standard input.
        process.stdin.close()
        process.wait(END_S)
    SparkContext._gateway = None  # noqa: SLF001
    SparkContext._jvm = None  # noqa: SLF001


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Let signals that end the process take effect after the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def defer(number: int, _frame: FrameType | None) -> None:
        arrived.append(number)

    handlers = {number: signal.signal(number, defer) for number in _DEFERRED}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for late in arrived:
            signal.raise_signal(late)
