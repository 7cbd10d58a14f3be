"""Processes that have validated a config and wait for another one of the same Java plugins.

Layer: children. A Java process takes seconds to start and to load a plugin's classes; a Java worker
has them loaded. Lives on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pyconnect_agent.channel import Job, Message
from pyconnect_agent.children.child import Child, kill_children
from pyconnect_agent.children.child_end import ChildEnd
from pyconnect_agent.children.settings import ChildFactory
from pyconnect_agent.core.plugins.catalog import Catalog, PluginNotFoundError

IDLE_S = 60.0
MOST_IDLE = 2
"""Each takes 70 to 110 MiB."""
_OWN_OPTIONS = "agent.java."

Location = str
"""Where a connector's jars are, "" for Kafka's own."""


def location_of(catalog: Catalog, config: Mapping[str, str | None]) -> Location | None:
    """Return the location of a config's Java connector.

    None for a Python connector, which gets a process of its own, and for a config with options of
    its own for Java, which may hold secrets.
    """
    name = config.get("connector.class")
    if not name or any(key.startswith(_OWN_OPTIONS) for key in config):
        return None
    try:
        found = catalog.connector(name, version_range=config.get("connector.plugin.version"))
    except PluginNotFoundError:
        return None
    return found.search_path or "" if found.is_java else None


class JobProcess:
    """A child that answers one question after the other."""

    def __init__(self, factory: ChildFactory, what: str, job: Job) -> None:
        self._answered: asyncio.Future[Message | ChildEnd] = self._new_answer()
        self.ended = False
        self.child: Child = factory(what, job, self._take, self._end)

    def ask_again(self, job: Message) -> None:
        """Send another question; only after the answer to the one before."""
        self._answered = self._new_answer()
        self.child.send(job)

    async def answer(self) -> Message | ChildEnd:
        """Return the answer, or the end of the process before it."""
        return await self._answered

    def _take(self, message: Message) -> None:
        if not self._answered.done():
            self._answered.set_result(message)

    def _end(self, end: ChildEnd) -> None:
        self.ended = True
        if not self._answered.done():
            self._answered.set_result(end)

    @staticmethod
    def _new_answer() -> asyncio.Future[Message | ChildEnd]:
        return asyncio.get_running_loop().create_future()


class IdleValidators:
    """At most `MOST_IDLE` processes, the one that has waited longest ends first."""

    def __init__(self) -> None:
        self._idle: dict[JobProcess, tuple[Location, asyncio.TimerHandle]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def take(self, location: Location | None) -> JobProcess | None:
        """Return a process of the location, which the caller then owns."""
        for process, (known, timer) in self._idle.items():
            if known == location and not process.ended:
                timer.cancel()
                del self._idle[process]
                return process
        return None

    def keep(self, location: Location, process: JobProcess) -> None:
        """Keep a process that has answered for `IDLE_S` seconds."""
        timer = asyncio.get_running_loop().call_later(IDLE_S, self._drop, process)
        self._idle[process] = location, timer
        if len(self._idle) > MOST_IDLE:
            self._drop(next(iter(self._idle)))

    def end(self) -> None:
        """Begin to end all of them."""
        for process in tuple(self._idle):
            self._drop(process)

    async def gone(self) -> None:
        """Wait for those that are ending."""
        await asyncio.gather(*self._ending)

    def _drop(self, process: JobProcess) -> None:
        _, timer = self._idle.pop(process)
        timer.cancel()
        ending = asyncio.get_running_loop().create_task(kill_children((process.child,)))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
