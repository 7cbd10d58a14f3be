"""Threads and tasks that run as long as their owner: their unexpected end is always reported.

Layer: edge; any process of the agent may use it. Python prints the trace of a thread that ends with
an exception, and the process continues without the thread. Here the trace goes to the log, and then
`on_death` decides: by default the process ends with exit code 1; an owner that can become FAILED
passes another function. ruff forbids `threading.Thread` and `threading.Timer` elsewhere in the
agent. Executors need none of this: they return an exception to the caller that waits for it.

Threading: everything may be called from any thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

LOG = logging.getLogger(__name__)

EXIT_DIED = 1
BEFORE_END_S = 5.0

OnDeath = Callable[[BaseException], object]


@dataclass(slots=True)
class _Process:
    """`before_end`: called before this process ends because one of its parts died."""

    before_end: OnDeath | None = None


_PROCESS = _Process()


def call_before_end(report: OnDeath | None) -> None:
    """Report the reason before this process ends; the process of a task reports FAILED."""
    _PROCESS.before_end = report


class Thread(threading.Thread):
    """A daemon thread, not started yet; it ends in order when `work` returns.

    What it logs has the scope in which the thread was made.
    """

    def __init__(
        self, name: str, work: Callable[[], object], *, on_death: OnDeath | None = None
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._work = work
        self._on_death = on_death
        self._scope = contextvars.copy_context()

    def run(self) -> None:
        self._scope.run(_run, self.name, self._work, self._on_death)


class TimerThread(threading.Timer):
    """Calls `work` once after a delay, on a separate daemon thread; not started yet."""

    def __init__(self, name: str, delay_s: float, work: Callable[[], object]) -> None:
        super().__init__(min(delay_s, threading.TIMEOUT_MAX), lambda: _run(name, work, None))
        self.name, self.daemon = name, True


def start_task(name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start a task of the running event loop; it ends in order when it returns or is cancelled."""
    made = asyncio.get_running_loop().create_task(work, name=name)
    made.add_done_callback(_look_at_end)
    return made


def end_process(error: BaseException) -> None:
    """End this process with exit code 1; its last report must not delay the end."""
    if _PROCESS.before_end is not None:
        # The report may wait for a reader that hangs, or for a lock that is never released.
        reporter = threading.Thread(target=_PROCESS.before_end, args=(error,), daemon=True)
        reporter.start()
        reporter.join(BEFORE_END_S)
    logging.shutdown()
    os._exit(EXIT_DIED)


def _run(name: str, work: Callable[[], object], on_death: OnDeath | None) -> None:
    try:
        work()
    # SystemExit too: Python ends a thread with it silently.
    except BaseException as error:  # noqa: BLE001
        _died(name, error, on_death)


def _look_at_end(ended: asyncio.Task[None]) -> None:
    error = None if ended.cancelled() else ended.exception()
    if error is not None:
        _died(ended.get_name(), error, None)


def _died(name: str, error: BaseException, on_death: OnDeath | None) -> None:
    LOG.critical("part of the process has died unexpectedly", exc_info=error, extra={"part": name})
    if on_death is not None:
        try:
            on_death(error)
        except BaseException as failure:
            LOG.critical("the owner's on_death failed", exc_info=failure, extra={"part": name})
        else:
            return
    end_process(error)
