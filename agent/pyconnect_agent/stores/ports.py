"""The interface of the offset stores: of a topic in distributed mode, of a file in standalone mode.

`start`, `stop`, `read` and `write` block: call them from an executor thread, never from the event
loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class OffsetStore(Protocol):
    """Raw offset entries of source connectors: key and value are the bytes of the topic."""

    def start(self) -> None: ...
    def stop(self) -> None: ...

    def read(self, keys: Sequence[bytes], timeout_ms: int) -> Mapping[bytes, bytes | None]:
        """Read to the end first, then look up.

        A key of equal content but other member order is found too.
        RetriableKafkaError at the deadline.
        """
        ...

    def write(self, entries: Mapping[bytes, bytes | None], timeout_ms: int) -> None:
        """Write and wait for the acknowledgement of all; None is a tombstone."""
        ...

    def keys_in_use(self, keys: Sequence[bytes]) -> Mapping[bytes, tuple[bytes, ...]]:
        """Find the live raw keys of equal content, newest first, without reading on."""
        ...

    def connector_entries(self, connector: str) -> Mapping[bytes, bytes]:
        """Return every live raw entry of a connector."""
        ...
