"""Copies a connector's committed offsets from its own topic to the worker-wide one.

Layer: tasks. Kafka: the secondary store of ConnectorOffsetBackingStore. The copy follows the
commit, where Kafka sends it when the records are acknowledged: an aborted transaction leaves none.

Threads: any may call; a thread of its own writes, one write at a time. Entries that came while it
wrote are written together: the newest offset of each partition, in parts if there are very many.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from pyconnect_agent.core.errors import AgentError, RetriableKafkaError
from pyconnect_agent.core.internal_topics.offsetlog import canonical
from pyconnect_agent.process import long_lived

LOG = logging.getLogger(__name__)

COPIED_AT_ONCE = 10_000
"""Each write is one message to the worker."""


class WorkerCopies:
    """`write` waits for the acknowledgement; it raises AgentError and OSError.

    Best effort: a copy that fails is a warning, and its partition's next one makes it good.
    """

    def __init__(
        self, write: Callable[[dict[bytes, bytes | None], int], None], timeout_ms: int
    ) -> None:
        self._write = write
        self._timeout_ms = timeout_ms
        self._changed = threading.Condition()
        # Keys and values, by what is the same for keys of equal meaning.
        self._waiting: dict[bytes, tuple[bytes, bytes | None]] = {}
        self._copying = False
        # Held while writing: an older copy must not be written after a tombstone.
        self._writing = threading.Lock()
        self._thread: long_lived.Thread | None = None

    def put(self, entries: Mapping[bytes, bytes | None]) -> None:
        """Copy soon."""
        with self._changed:
            self._waiting.update((canonical(key), (key, entries[key])) for key in entries)
            if self._thread is None:
                self._thread = long_lived.Thread("offset-copies", self._run)
                self._thread.start()
            self._changed.notify_all()

    def bury(self, keys: Sequence[bytes], timeout_ms: int) -> None:
        """Write tombstones now, in place of waiting copies. Raises AgentError, OSError."""
        if not self._writing.acquire(timeout=timeout_ms / 1000):
            raise RetriableKafkaError("Timed out waiting for a copy of offsets to be written")
        try:
            with self._changed:
                for key in keys:
                    self._waiting.pop(canonical(key), None)
            self._write(dict.fromkeys(keys), timeout_ms)
        finally:
            self._writing.release()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything was copied or given up; False when the time is over first."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._waiting and not self._copying, timeout_s
            )

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting))
                self._copying = True
            with self._writing:
                if entries := self._next():
                    try:
                        self._write(entries, self._timeout_ms)
                    except (AgentError, OSError) as exc:
                        LOG.warning(
                            "offsets were committed, but not copied to the worker's offsets topic",
                            extra={"partitions": len(entries), "reason": str(exc)},
                        )
            with self._changed:
                self._copying = False
                self._changed.notify_all()

    def _next(self) -> dict[bytes, bytes | None]:
        with self._changed:
            if len(self._waiting) <= COPIED_AT_ONCE:
                entries, self._waiting = self._waiting, {}
            else:
                entries = dict(islice(self._waiting.items(), COPIED_AT_ONCE))
                for meaning in entries:
                    del self._waiting[meaning]
            return dict(entries.values())
