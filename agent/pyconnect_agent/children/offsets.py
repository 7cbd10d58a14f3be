"""Serve the children's reads and writes of source offsets from the worker's store.

Layer: children. Children at-least-once do not read the offsets topic themselves: one reader and
one producer serve the whole worker (Kafka: the worker-wide `OffsetBackingStore`).
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from pyconnect_agent.channel import (
    ConnectorOffsetsFound,
    FindConnectorOffsets,
    FindOffsetKeys,
    Message,
    OffsetKeysFound,
    OffsetsRead,
    OffsetsWritten,
    ReadOffsetsRequest,
    RequestFailed,
    WriteOffsetsRequest,
)
from pyconnect_agent.children.child import Child
from pyconnect_agent.children.ports import SourceOffsets
from pyconnect_agent.core.errors import AgentError

LOG = logging.getLogger(__name__)

THREADS = 8

OffsetRequest = ReadOffsetsRequest | WriteOffsetsRequest | FindOffsetKeys | FindConnectorOffsets


class OffsetService:
    """Runs the store's blocking calls in its own threads and answers each request once."""

    def __init__(self, store: SourceOffsets) -> None:
        self._store = store
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="offset-service")
        self._requests: set[asyncio.Task[None]] = set()

    def serve(self, child: Child, request: OffsetRequest) -> None:
        """Answer a request of a child, with the store's error if it has failed."""
        task = asyncio.get_running_loop().create_task(self._serve(child, request))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def stop(self) -> None:
        """Drop the requests under way, because no child waits for an answer any more.

        A call of the store that has begun continues in its thread.
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
