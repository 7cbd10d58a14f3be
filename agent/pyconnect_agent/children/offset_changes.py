"""Changes of connectors' offsets (KIP-875): a child asks the connector, waits, then writes.

Layer: children. Lives on the event loop. Each change has one process and one time budget. When the
time is over the process is killed, and the answer names its step. A connector has one change at a
time: a new change ends the one before.
"""

from __future__ import annotations

import asyncio
import logging

from pyconnect_agent.channel import (
    ChangeOffsetsJob,
    ConfirmOffsetChange,
    Message,
    OffsetChangeConfirmed,
    OffsetChangeReached,
    OffsetsChanged,
    RequestFailed,
)
from pyconnect_agent.children.child import Child, kill_children
from pyconnect_agent.children.child_end import ChildEnd
from pyconnect_agent.children.jobs import error_of
from pyconnect_agent.children.offsets import OffsetRequest, OffsetService
from pyconnect_agent.children.settings import ChildFactory, ChildSettings
from pyconnect_agent.core.errors import InternalError
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.offsets.changes import ChangeStage, failed_text, timed_out_text

LOG = logging.getLogger(__name__)


class OffsetChanges:
    """All changes under way."""

    def __init__(
        self, settings: ChildSettings, factory: ChildFactory, offsets: OffsetService
    ) -> None:
        self._settings = settings
        self._factory = factory
        self._offsets = offsets
        self._changes: dict[str, _Change] = {}
        self._ends: set[asyncio.Task[None]] = set()

    async def prepare(
        self,
        connector: str,
        config: ConnectorConfig,
        offsets: bytes | None,
        timeout_ms: int,
    ) -> bool:
        """Ask the connector, in a child that then waits; see `effects.PrepareOffsetChange`.

        Raises RequestError with Kafka Connect's text, before anything was written.
        """
        self.abandon(connector)
        job = ChangeOffsetsJob(
            worker=self._settings.worker,
            connector=connector,
            config=dict(config),
            offsets=offsets,
            timeout_ms=timeout_ms,
        )
        change = self._changes[connector] = _Change(job, self._factory, self._offsets)
        change.timer = asyncio.get_running_loop().call_later(
            timeout_ms / 1000, self._time_is_over, change
        )
        try:
            return await change.prepared
        except BaseException:
            self._end(change)
            raise

    async def commit(self, connector: str) -> None:
        """Write the prepared change and read it back. Raises RequestError as above."""
        change = self._changes.get(connector)
        if change is None:
            raise InternalError(failed_text(connector, "source"))
        try:
            change.confirm()
            await change.written
        finally:
            self._end(change)

    def abandon(self, connector: str) -> None:
        """Drop the prepared change; without one do nothing."""
        if (change := self._changes.get(connector)) is not None:
            self._end(change)

    async def stop(self) -> None:
        """Kill changes under way; one that was being written may be done or not."""
        for change in tuple(self._changes.values()):
            self._end(change)
        await asyncio.gather(*self._ends)

    def _time_is_over(self, change: _Change) -> None:
        if self._changes.get(change.connector) is change:
            change.time_is_over()
            self._end(change)

    def _end(self, change: _Change) -> None:
        if self._changes.get(change.connector) is not change:
            return
        del self._changes[change.connector]
        if change.timer is not None:
            change.timer.cancel()
        change.fail(InternalError(failed_text(change.connector, change.kind)))
        task = asyncio.get_running_loop().create_task(kill_children((change.child,)))
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)


class _Change:
    """One child and the results that are awaited from it."""

    def __init__(
        self, job: ChangeOffsetsJob, factory: ChildFactory, offsets: OffsetService
    ) -> None:
        loop = asyncio.get_running_loop()
        self.connector = job.connector
        self.kind = "source"
        self.prepared: asyncio.Future[bool] = loop.create_future()
        self.written: asyncio.Future[None] = loop.create_future()
        self.timer: asyncio.TimerHandle | None = None
        self._stage = ChangeStage.READING
        self._confirmation = 0
        self._offsets = offsets
        self.child: Child = factory("offset change", job, self._take, self._exited)

    def confirm(self) -> None:
        self.child.send(OffsetChangeConfirmed(request_id=self._confirmation))

    def time_is_over(self) -> None:
        text = timed_out_text(self.connector, self.kind, self._stage)
        LOG.error("changing offsets took too long", extra={"stage": self._stage.name.lower()})
        self.fail(InternalError(text))

    def fail(self, error: Exception) -> None:
        """Report the failure to the waiters. A result without a waiter is dropped."""
        for future in (self.prepared, self.written):
            if not future.done():
                future.set_exception(error)
                future.exception()

    def _take(self, message: Message) -> None:
        match message:
            case OffsetChangeReached(kind=kind, stage=stage):
                self.kind, self._stage = kind, stage
            case ConfirmOffsetChange(request_id=request_id, complete=complete):
                self._confirmation = request_id
                if not self.prepared.done():
                    self.prepared.set_result(complete)
            case OffsetsChanged():
                if not self.written.done():
                    self.written.set_result(None)
            case RequestFailed():
                self.fail(error_of(message))
            case _ if isinstance(message, OffsetRequest):
                self._offsets.serve(self.child, message)
            case _:
                LOG.error(
                    "message not meant for a change of offsets",
                    extra={"connector": self.connector, "kind": type(message).__name__},
                )

    def _exited(self, end: ChildEnd) -> None:
        how = end.describe("The offset change process")
        if not (self.prepared.done() and self.written.done()):
            LOG.error("the process that changes offsets ended", extra={"reason": how})
        self.fail(InternalError(f"{failed_text(self.connector, self.kind)}. {how}"))
