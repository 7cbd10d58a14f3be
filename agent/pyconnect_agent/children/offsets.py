"""The children's reads and writes of source offsets, and changes of connectors' offsets.

At-least-once children do not read the offsets topic themselves: one reader and one producer serve
the whole worker (Kafka: the worker-wide `OffsetBackingStore`).

A change (KIP-875) has one process and one time budget: the child asks the connector, waits, then
writes. When the time is over the process is killed, and the answer names its step. A connector has
one change at a time: a new change ends the one before.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from pyconnect_agent.channel import Message
from pyconnect_agent.channel.reports import (
    ConfirmOffsetChange,
    FindConnectorOffsets,
    FindOffsetKeys,
    OffsetChangeReached,
    OffsetsChanged,
    ReadOffsetsRequest,
    RequestFailed,
    WriteOffsetsRequest,
)
from pyconnect_agent.channel.requests import (
    ChangeOffsetsJob,
    ConnectorOffsetsFound,
    OffsetChangeConfirmed,
    OffsetKeysFound,
    OffsetsRead,
    OffsetsWritten,
)
from pyconnect_agent.children.child import Child, ChildEnd, kill_children
from pyconnect_agent.children.jobs import error_of
from pyconnect_agent.children.ports import ChildFactory, ChildSettings, SourceOffsets
from pyconnect_agent.core.errors import AgentError, InternalError
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.offsets.connector_offsets import ChangeStage, failed_text, timed_out_text

LOG = logging.getLogger(__name__)

THREADS = 8

OffsetRequest = ReadOffsetsRequest | WriteOffsetsRequest | FindOffsetKeys | FindConnectorOffsets


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
        self, connector: str, config: ConnectorConfig, offsets: bytes | None, timeout_ms: int
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

        def time_is_over() -> None:
            if self._changes.get(connector) is change:
                stage = change.stage
                LOG.error("changing offsets took too long", extra={"stage": stage.name.lower()})
                change.fail(InternalError(timed_out_text(connector, change.kind, stage)))
                self._end(change)

        change.timer = asyncio.get_running_loop().call_later(timeout_ms / 1000, time_is_over)
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
        """Drop the prepared change, if there is one."""
        if (change := self._changes.get(connector)) is not None:
            self._end(change)

    async def stop(self) -> None:
        """Kill changes under way; a change that was being written may be complete or not."""
        for change in tuple(self._changes.values()):
            self._end(change)
        await asyncio.gather(*self._ends)

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
    """One child and the results that wait for its messages."""

    def __init__(
        self, job: ChangeOffsetsJob, factory: ChildFactory, offsets: OffsetService
    ) -> None:
        loop = asyncio.get_running_loop()
        self.connector = job.connector
        self.kind = "source"
        self.prepared: asyncio.Future[bool] = loop.create_future()
        self.written: asyncio.Future[None] = loop.create_future()
        self.timer: asyncio.TimerHandle | None = None
        self.stage = ChangeStage.READING
        self._confirmation = 0
        self._offsets = offsets
        self.child: Child = factory("offset change", job, self._take, self._exited)

    def confirm(self) -> None:
        self.child.send(OffsetChangeConfirmed(request_id=self._confirmation))

    def fail(self, error: Exception) -> None:
        """Report the failure to the waiters. A result without a waiter is dropped."""
        for future in (self.prepared, self.written):
            if not future.done():
                future.set_exception(error)
                future.exception()

    def _take(self, message: Message) -> None:
        match message:
            case OffsetChangeReached(kind=kind, stage=stage):
                self.kind, self.stage = kind, stage
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


class OffsetService:
    """Runs the store's blocking calls in its own threads and answers each request once."""

    def __init__(self, store: SourceOffsets) -> None:
        self._store = store
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="offset-service")
        self._requests: set[asyncio.Task[None]] = set()

    def serve(self, child: Child, request: OffsetRequest) -> None:
        """Answer a request of a child; a failure of the store is answered with its error."""
        task = asyncio.get_running_loop().create_task(self._serve(child, request))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def stop(self) -> None:
        """Drop the requests under way, because the children no longer wait for answers.

        A call of the store that is under way continues in its thread.
        """
        for request in self._requests:
            request.cancel()
        await asyncio.gather(*self._requests, return_exceptions=True)
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _serve(self, child: Child, request: OffsetRequest) -> None:
        loop = asyncio.get_running_loop()
        try:
            answer = await loop.run_in_executor(self._executor, self._answer, request)
        except Exception as exc:  # every error of the store is the answer to the child that asked
            if not isinstance(exc, AgentError):
                LOG.exception("offset store failed", extra={"child": child.name})
            answer = RequestFailed(
                request_id=request.request_id,
                error_class=type(exc).__name__,
                message=str(exc),
                retriable=isinstance(exc, AgentError) and exc.retriable,
            )
        child.send(answer)

    def _answer(self, request: OffsetRequest) -> Message:
        """Ask the store, which blocks."""
        store, request_id = self._store, request.request_id
        match request:
            case ReadOffsetsRequest():
                read = store.read(request.keys, request.timeout_ms)
                return OffsetsRead(request_id=request_id, entries=dict(read))
            case WriteOffsetsRequest():
                store.write(request.entries, request.timeout_ms)
                return OffsetsWritten(request_id=request_id)
            case FindOffsetKeys():
                keys = store.keys_in_use(request.keys)
                return OffsetKeysFound(request_id=request_id, keys=dict(keys))
            case FindConnectorOffsets():
                store.read((), request.timeout_ms)
                found = store.connector_entries(request.connector)
                return ConnectorOffsetsFound(request_id=request_id, entries=dict(found))
