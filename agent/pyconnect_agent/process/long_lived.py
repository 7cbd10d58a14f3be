"""Threads and tasks that run as long as their owner: their unexpected end is always reported.

Layer: edge; any process of the agent may use it. Python prints the trace of a thread that ends with
an exception, and the process continues without the thread. Here the trace goes to the log, and then
`on_death` decides: by default the process ends with exit code 1; an owner that can become FAILED
passes another function. ruff forbids `threading.Thread` and `threading.Timer` elsewhere in the
agent. Executors do not need this: they return an exception to the caller that waits for it.

Threading: everything may be called from any thread.
"""

import asyncio
import contextvars
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

LOG = logging.getLogger(__name__)

EXIT_DIED = 1
BEFORE_END_S = 5.0

OnDeath = Callable[[BaseException], object]


_before_end: dict[str, OnDeath] = {}


def call_before_end(report: OnDeath, owner: str = "") -> None:
    """Call `report` with the reason before this process ends; a task's process reports FAILED."""
    _before_end[owner] = report


def forget_before_end(owner: str) -> None:
    """Remove the report of an owner whose last state is reported, in a process that goes on."""
    _before_end.pop(owner, None)


class Thread(threading.Thread):
    """A daemon thread, not started yet; it ends in order when `work` returns.

    Its log lines have the scope in which the thread was made.
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
    """A daemon thread, not started yet, that calls `work` once after a delay."""

    def __init__(self, name: str, delay_s: float, work: Callable[[], object]) -> None:
        super().__init__(min(delay_s, threading.TIMEOUT_MAX), lambda: _run(name, work, None))
        self.name, self.daemon = name, True


def let_threads_inherit_context() -> None:
    """Give each later thread the context of the thread that starts it, as Python 3.14 can.

    In a process of several tasks, the context assigns the log lines of a plugin's thread to a task.
    """
    start = threading.Thread.start

    def start_in_context(thread: threading.Thread) -> None:
        thread.run = partial(contextvars.copy_context().run, thread.run)  # type: ignore[method-assign]
        start(thread)

    threading.Thread.start = start_in_context  # type: ignore[assignment,method-assign]


def start_task(name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start a task of the running event loop; it ends in order when it returns or is cancelled."""
    made = asyncio.get_running_loop().create_task(work, name=name)
    made.add_done_callback(_look_at_end)
    return made


def end_process(error: BaseException) -> None:
    """End this process with exit code 1; reports that hang do not prevent the end."""
    reports = tuple(_before_end.values())
    # A report may wait for a reader that hangs, or for a lock that is never released.
    reporters = [threading.Thread(target=each, args=(error,), daemon=True) for each in reports]
    for reporter in reporters:
        reporter.start()
    deadline_s = time.monotonic() + BEFORE_END_S
    for reporter in reporters:
        reporter.join(max(deadline_s - time.monotonic(), 0))
    logging.shutdown()
    os._exit(EXIT_DIED)


def _run(name: str, work: Callable[[], object], on_death: OnDeath | None) -> None:
    try:
        work()
    # SystemExit too: it ends a thread without a message.
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
