"""The offset stores: a topic of distributed workers, a file of standalone ones.

Kafka: KafkaOffsetBackingStore, FileOffsetBackingStore.


`start`, `stop`, `read` and `write` block: call them from an executor thread, never from the event
loop.

Apache's file is a Java-serialised map; this one is JSON:

    {"version":1,"entries":[{"key":<base64>,"value":<base64>}, …]}

with the raw keys and values of an offset topic. Every flush writes the whole content to a temporary
file in the same directory, which then replaces the file, so the file is always complete.
Threading: `write` blocks and may come from any thread.
"""

import base64
import binascii
import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pyconnect_agent.core.errors import AgentError, WorkerConfigError
from pyconnect_agent.core.internal_topics.offsetlog import OffsetLog
from pyconnect_agent.kafka.log import Log
from pyconnect_agent.kafka.offset_image import OffsetImage


class KafkaOffsetStore:
    """An `OffsetStore` in an offset topic."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._image = OffsetImage()

    def start(self) -> None:
        """Start the log; WorkerConfigError, WorkerStartError as `CompactedLog.start`."""
        self._log.start(self._image)

    def stop(self) -> None:
        self._log.stop()

    def read(self, keys: Sequence[bytes], timeout_ms: int) -> Mapping[bytes, bytes | None]:
        self._log.read_to_end(timeout_ms)
        return self._image.lookup(keys)

    def write(self, entries: Mapping[bytes, bytes | None], timeout_ms: int) -> None:
        self._log.write(self._image.plan_write(entries), timeout_ms)

    def keys_in_use(self, keys: Sequence[bytes]) -> Mapping[bytes, tuple[bytes, ...]]:
        return self._image.keys_in_use(keys)

    def connector_entries(self, connector: str) -> Mapping[bytes, bytes]:
        return self._image.connector_entries(connector)


class OffsetStore(Protocol):
    """Raw offset entries of source connectors, with keys and values as in the topic."""

    def start(self) -> None: ...
    def stop(self) -> None: ...

    def read(self, keys: Sequence[bytes], timeout_ms: int) -> Mapping[bytes, bytes | None]:
        """Return the values of `keys` after a read to the end.

        A key of equal content with its members in another order is found too.
        RetriableKafkaError at the deadline.
        """
        ...

    def write(self, entries: Mapping[bytes, bytes | None], timeout_ms: int) -> None:
        """Write the entries and wait for all acknowledgements; a value of None is a tombstone."""
        ...

    def keys_in_use(self, keys: Sequence[bytes]) -> Mapping[bytes, tuple[bytes, ...]]:
        """Return the live raw keys of equal content, newest first, without a read to the end."""
        ...

    def connector_entries(self, connector: str) -> Mapping[bytes, bytes]:
        """Return every live raw entry of a connector."""
        ...


FORMAT_VERSION = 1
_JAVA_SERIALIZATION = b"\xac\xed\x00\x05"


class FileOffsetStore:
    """An `OffsetStore` in a file.

    `path` is the worker's `offset.storage.file.filename`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._offsets = OffsetLog()

    def start(self) -> None:
        """Load the file; a missing or empty one has no offsets. WorkerConfigError if unreadable."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as exc:
            raise self._unusable(f"cannot be read: {exc.strerror or exc}") from exc
        if not content:
            return
        if content.startswith(_JAVA_SERIALIZATION):
            raise self._unusable("was written by an Apache Kafka worker in Java's own format")
        try:
            entries = _decode(content)
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise self._unusable(f"is not an offset file of this worker: {exc}") from exc
        with self._lock:
            for key, value in entries:
                self._offsets.apply(key, value)

    def stop(self) -> None:
        """Do nothing: every write is on disk when it returns."""

    def read(
        self,
        keys: Sequence[bytes],
        timeout_ms: int,  # noqa: ARG002 - a file has no end to wait for
    ) -> Mapping[bytes, bytes | None]:
        with self._lock:
            return {key: self._offsets.lookup(key) for key in keys}

    def write(
        self,
        entries: Mapping[bytes, bytes | None],
        timeout_ms: int,  # noqa: ARG002 - the disk cannot be hurried
    ) -> None:
        """Replace the file's content; AgentError if it cannot be written."""
        with self._lock:
            for record in self._offsets.plan_write(entries.items()):
                self._offsets.apply(*record)
            body = {
                "version": FORMAT_VERSION,
                "entries": [
                    {"key": _base64(key), "value": _base64(value)}
                    for key, value in self._offsets.entries().items()
                ],
            }
            content = json.dumps(body, separators=(",", ":")).encode()
            try:
                _replace(self._path, content)
            except OSError as exc:
                raise AgentError(
                    f"Failed to write offsets to file '{self._path}': {exc.strerror or exc}"
                ) from exc

    def keys_in_use(self, keys: Sequence[bytes]) -> Mapping[bytes, tuple[bytes, ...]]:
        with self._lock:
            return {key: self._offsets.keys_in_use(key) for key in keys}

    def connector_entries(self, connector: str) -> Mapping[bytes, bytes]:
        with self._lock:
            return self._offsets.connector_entries(connector)

    def _unusable(self, what: str) -> WorkerConfigError:
        return WorkerConfigError(
            f"The file '{self._path}' supplied via the 'offset.storage.file.filename' property "
            f"{what}. Name another file, or move this one away to start without offsets: source "
            "connectors then read their sources from the beginning."
        )


def _decode(content: bytes) -> list[tuple[bytes, bytes | None]]:
    """Decode the file; ValueError, KeyError, TypeError or AttributeError for any other format."""
    body = json.loads(content)
    if body["version"] != FORMAT_VERSION:
        raise ValueError(f"unknown version {body['version']}")
    return [
        (_bytes(entry["key"]), None if entry["value"] is None else _bytes(entry["value"]))
        for entry in body["entries"]
    ]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as exc:
        raise ValueError(f"not base64: {exc}") from exc


def _replace(path: Path, content: bytes) -> None:
    """Write `content` so that a crash leaves either the old file or the new one."""
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
