"""Questions to a running child: its figures, its stacks.

Layer: children. Lives on the event loop. The child's control thread answers, even while a plugin
hangs in Python code. If it does not answer, a signal handler can still write the stacks without the
interpreter: see `tasks.stacks`.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyconnect_agent.channel import (
    STACKS_FILE,
    STACKS_SIGNAL,
    DumpStacks,
    Message,
    ReportStats,
    StacksDumped,
    StatsReported,
)
from pyconnect_agent.children.child import Child
from pyconnect_agent.core.errors import AgentError

STATISTICS_TIMEOUT_S = 1.0
STACKS_TIMEOUT_S = 2.0
SIGNAL_TIMEOUT_S = 3.0
QUIET_S = 0.5
"""Time without growth after which a dump is complete: faulthandler writes without pauses."""
LOOK_INTERVAL_S = 0.05

BY_SIGNAL = "The interpreter did not answer: the threads as the signal handler saw them.\n\n"


class StacksUnavailableError(AgentError):
    """Both ways to the stacks failed: the process is frozen, or in an uninterruptible call."""


class Inquiries:
    """Matches answers with questions; each child is asked any number of times."""

    def __init__(self) -> None:
        self._request_ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Message]] = {}

    def answered(self, message: StatsReported | StacksDumped) -> None:
        """Pass an answer to its waiter, which may be gone."""
        future = self._waiting.get(message.request_id)
        if future is not None and not future.done():
            future.set_result(message)

    async def statistics(self, child: Child, *, mbeans: bool = False) -> StatsReported | None:
        """Return the figures of a child; None without an answer in time."""
        answer = await self._ask(
            child,
            lambda number: ReportStats(request_id=number, mbeans=mbeans),
            STATISTICS_TIMEOUT_S,
        )
        return answer if isinstance(answer, StatsReported) else None

    async def stacks(self, child: Child) -> str:
        """Return the stacks of a child; StacksUnavailableError if both ways fail."""
        answer = await self._ask(
            child, lambda number: DumpStacks(request_id=number), STACKS_TIMEOUT_S
        )
        if isinstance(answer, StacksDumped):
            return answer.text
        dumped = await _dump_by_signal(child)
        if not dumped:
            raise StacksUnavailableError(
                f"The process of {child.name} (pid {child.pid}) shows no stacks; it is frozen or"
                " waits in the kernel. Its state: ps -o stat,wchan -p PID"
            )
        return BY_SIGNAL + dumped

    async def _ask(
        self, child: Child, question: Callable[[int], Message], timeout_s: float
    ) -> Message | None:
        request_id = next(self._request_ids)
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        gone = asyncio.ensure_future(child.gone())
        try:
            child.send(question(request_id))
            waits: set[asyncio.Future[Any]] = {future, gone}
            await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            return future.result() if future.done() else None
        finally:
            gone.cancel()
            del self._waiting[request_id]


async def _dump_by_signal(child: Child) -> str:
    """Return the dump of faulthandler; empty without one in time."""
    file = None if child.pid is None else _stacks_file(child.pid)
    if file is None:
        return ""
    loop = asyncio.get_running_loop()
    try:
        os.truncate(file, 0)
        child.signal(STACKS_SIGNAL)
        deadline_s = loop.time() + SIGNAL_TIMEOUT_S
        size, grown_s = 0, loop.time()
        while loop.time() < deadline_s and not (size and loop.time() - grown_s >= QUIET_S):
            await asyncio.sleep(LOOK_INTERVAL_S)
            if (now := file.stat().st_size) != size:
                size, grown_s = now, loop.time()
        return file.read_text(errors="replace")
    except OSError:
        return ""  # the process has ended meanwhile


def _stacks_file(pid: int) -> Path | None:
    """Find the memory file among the descriptors of a child; None if there is none."""
    try:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            if str(descriptor.readlink()).startswith(f"/memfd:{STACKS_FILE}"):
                return descriptor
    except OSError:
        pass
    return None
