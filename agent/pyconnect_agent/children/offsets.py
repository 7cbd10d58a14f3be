"""Serve the children's reads and writes of source offsets from the worker's store.

Layer: children. Children at-least-once do not read the offsets topic themselves: one reader and
one producer serve the whole worker (Kafka: the worker-wide `OffsetBackingStore`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

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


class OffsetService:
    """Runs the store's blocking calls in its own threads and answers each request once."""

    def __init__(self, store: SourceOffsets) -> None:
        self._store = store
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="offset-service")
        self._requests: set[asyncio.Task[None]] = set()

    def read(self, child: Child, request: ReadOffsetsRequest) -> None:
        self._start(self._answer(child, request.request_id, self._read(request)))

    def write(self, child: Child, request: WriteOffsetsRequest) -> None:
        self._start(self._answer(child, request.request_id, self._write(request)))

    def find_keys(self, child: Child, request: FindOffsetKeys) -> None:
        self._start(self._answer(child, request.request_id, self._find_keys(request)))

    def find_connector(self, child: Child, request: FindConnectorOffsets) -> None:
        self._start(self._answer(child, request.request_id, self._find_connector(request)))

    async def stop(self) -> None:
        """Drop the requests under way, because no child waits for an answer any more.

        A call of the store that has begun continues in its thread.
        """
        for request in self._requests:
            request.cancel()
        await asyncio.gather(*self._requests, return_exceptions=True)
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _start(self, request: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(request)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def _read(self, request: ReadOffsetsRequest) -> Message:
        entries: Mapping[bytes, bytes | None] = await asyncio.get_running_loop().run_in_executor(
            self._executor, self._store.read, request.keys, request.timeout_ms
        )
        return OffsetsRead(request_id=request.request_id, entries=dict(entries))

    async def _write(self, request: WriteOffsetsRequest) -> Message:
        await asyncio.get_running_loop().run_in_executor(
            self._executor, self._store.write, request.entries, request.timeout_ms
        )
        return OffsetsWritten(request_id=request.request_id)

    async def _find_keys(self, request: FindOffsetKeys) -> Message:
        keys: Mapping[bytes, tuple[bytes, ...]] = await asyncio.get_running_loop().run_in_executor(
            self._executor, self._store.keys_in_use, request.keys
        )
        return OffsetKeysFound(request_id=request.request_id, keys=dict(keys))

    async def _find_connector(self, request: FindConnectorOffsets) -> Message:
        def find() -> Mapping[bytes, bytes]:
            self._store.read((), request.timeout_ms)
            return self._store.connector_entries(request.connector)

        entries: Mapping[bytes, bytes] = await asyncio.get_running_loop().run_in_executor(
            self._executor, find
        )
        return ConnectorOffsetsFound(request_id=request.request_id, entries=dict(entries))

    async def _answer(
        self, child: Child, request_id: int, work: Coroutine[Any, Any, Message]
    ) -> None:
        try:
            answer = await work
        except Exception as exc:  # every error of the store is the answer to the child that asked
            if not isinstance(exc, AgentError):
                LOG.exception("offset store failed", extra={"child": child.name})
            answer = RequestFailed(
                request_id=request_id,
                error_class=type(exc).__name__,
                message=str(exc),
                retriable=isinstance(exc, AgentError) and exc.retriable,
            )
        child.send(answer)
