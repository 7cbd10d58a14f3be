"""The JVM of a session of this process, which ends with the session."""

from __future__ import annotations

from collections.abc import Mapping

END_S = 600
"""A JVM that writes an archive of its classes does so when it ends: minutes on a busy machine."""


def start_jvm(conf: Mapping[str, str]) -> None:
    """Start the JVM that the next session of this process uses; not in the main thread.

    pyspark knows the process only once it has answered. An exception before that, such as that of a
    signal in the main thread, would leave a JVM that finds its connection file's directory removed,
    and then waits forever.
    """
    from pyspark import SparkConf, SparkContext

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
