"""The image of an offset topic: raw entries, found by content as well as by bytes.

Kafka: KafkaOffsetBackingStore and OffsetUtils. Keys are the bytes of the JSON array
`["<connector>",<partition>]`, values those of the offset's JSON object; both are kept as they are
on the topic. Writers may put the members of one partition in different orders, so two raw keys can
mean one partition. Unlike Apache, this image finds an entry under any of its keys, writes to the
key in use and tombstones the others.

Threading: one owner; the store serialises its threads with a lock around every call.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pyconnect_agent.core.internal_topics import LogRecord, Notice, NoticeLevel, json_type, key_text
from pyconnect_agent.core.java_text import json_text

Partition = Mapping[str, object]


class ParsedKey(NamedTuple):
    """`content` is equal for keys of equal meaning; `partition` is None for a null partition."""

    connector: str
    partition: Partition | None
    content: str


def parse_key(key: bytes) -> ParsedKey | str:
    """Read a raw key, or return the fault in it."""
    try:
        decoded = json_text.loads(key)
    except ValueError:
        return "unknown serialization, expected JSON"
    if not isinstance(decoded, list):
        return f"expected an array but found {json_type(decoded)}"
    if len(decoded) != 2:
        return f"expected 2 elements but found {len(decoded)}"
    connector, partition = decoded
    if not isinstance(connector, str):
        return f"expected a string as first element but found {json_type(connector)}"
    if partition is not None and not isinstance(partition, dict):
        return f"expected an object as second element but found {json_type(partition)}"
    return ParsedKey(connector, partition, content_of(partition))


def content_of(partition: Partition | None) -> str:
    """Return a text that is equal for partitions of equal meaning.

    Sorted JSON is order-insensitive and, unlike Python's ==, distinguishes 1, 1.0 and true.
    """
    if partition is not None and len(partition) == 1:
        ((name, value),) = partition.items()
        if type(value) is str:
            # Almost all partitions are like this, and it is three times as fast.
            return f"{{{json_text.string_text(name)}:{json_text.string_text(value)}}}"
    return _SORTED(partition)


_SORTED = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
).encode


def canonical_key(key: bytes, parsed: ParsedKey) -> bytes:
    """Return bytes that are equal for raw keys of equal meaning: almost always `key` itself."""
    text = f"[{json_text.string_text(parsed.connector)},{parsed.content}]"
    canonical = text.encode(errors="surrogatepass")
    return key if canonical == key else canonical


def canonical(key: bytes) -> bytes:
    """Return the canonical key of a raw key; a key that cannot be read is returned unchanged."""
    identity = _identity(key)
    return key if isinstance(identity, str) else identity.canonical


class _Identity(NamedTuple):
    connector: str
    canonical: bytes


# A key as most connectors write it: one string by name, printable ASCII without escapes. It is
# canonical, and its connector is a part of its bytes: several times as fast as reading JSON.
_TEXT = rb'"[ !#-\[\]-~]*"'
_PLAIN_KEY = re.compile(rb"\[(" + _TEXT + rb"),\{" + _TEXT + rb":" + _TEXT + rb"\}\]")

_SEQUENCE_BITS = 48


class OffsetLog:
    """Live entries of an offset topic.

    Invariants: `_data` holds the entries that compaction would leave; `_recency` has its keys;
    `_index` holds exactly those of them that parse, by connector and canonical key: a key, or a
    tuple of several.

    A recency is one number: the record's timestamp, then the order of reading. After a restart the
    order of reading alone says nothing about records of different partitions of the topic. As there
    may be very many entries, only the key, the value and a number of each are kept.
    """

    def __init__(self) -> None:
        self._data: dict[bytes, bytes] = {}
        self._recency: dict[bytes, int] = {}
        self._index: dict[str, dict[bytes, bytes | tuple[bytes, ...]]] = {}
        self._sequence = 0

    def apply(
        self, key: bytes | None, value: bytes | None, timestamp_ms: int = 0
    ) -> tuple[Notice, ...]:
        """Advance by one record; `timestamp_ms` is the record's. Never raises for its content."""
        if key is None:
            return _ignored("null", "unexpected null key")
        is_live = key in self._data
        if value is not None:
            self._sequence += 1
            self._data[key] = value
            self._recency[key] = (timestamp_ms << _SEQUENCE_BITS) + self._sequence
            if is_live:
                return ()
        identity = _identity(key)
        if value is None and is_live:
            del self._data[key], self._recency[key]
        if isinstance(identity, str):
            return _ignored(key_text(key), identity)
        if value is not None:
            contents = self._index.setdefault(identity.connector, {})
            others = contents.get(identity.canonical)
            contents[identity.canonical] = key if others is None else (*_keys(others), key)
        elif is_live:
            contents = self._index[identity.connector]
            left = tuple(other for other in _keys(contents[identity.canonical]) if other != key)
            if left:
                contents[identity.canonical] = left[0] if len(left) == 1 else left
            else:
                del contents[identity.canonical]
                if not contents:
                    del self._index[identity.connector]
        return ()

    def lookup(self, key: bytes) -> bytes | None:
        """Return the value of this key or, without one, of the newest key of equal content."""
        value = self._data.get(key)
        if value is not None:
            return value
        equivalents = self.keys_in_use(key)
        return self._data[equivalents[0]] if equivalents else None

    def keys_in_use(self, key: bytes) -> tuple[bytes, ...]:
        """Return the live raw keys of equal content, newest first."""
        identity = _identity(key)
        return () if isinstance(identity, str) else self._equivalents(identity)

    def plan_write(self, entries: Iterable[tuple[bytes, bytes | None]]) -> tuple[LogRecord, ...]:
        """Return the records to send for entries; of entries with equal content the last counts.

        A value goes to the newest raw key in use for its partition and every other is tombstoned;
        a tombstone goes to all of them. Keys not in use are written as they are.
        """
        records: dict[bytes, bytes | None] = {}
        targets: dict[_Identity, bytes] = {}
        for key, value in entries:
            identity = _identity(key)
            if isinstance(identity, str):
                records[key] = value
                continue
            if identity not in targets:
                targets[identity], *others = self._equivalents(identity) or (key,)
                records.update(dict.fromkeys(others))
            records[targets[identity]] = value
        return tuple(LogRecord(key, value) for key, value in records.items())

    def connector_entries(self, connector: str) -> dict[bytes, bytes]:
        """Return every live raw entry of a connector, oldest first within one partition."""
        return {
            key: self._data[key]
            for live in self._index.get(connector, {}).values()
            for key in self._oldest_first(live)
        }

    def entries(self) -> Mapping[bytes, bytes]:
        """Return a copy of all live raw entries."""
        return dict(self._data)

    def _equivalents(self, identity: _Identity) -> tuple[bytes, ...]:
        """Return the live raw keys of equal content, newest first."""
        live = self._index.get(identity.connector, {}).get(identity.canonical, ())
        return tuple(reversed(self._oldest_first(live)))

    def _oldest_first(self, live: bytes | tuple[bytes, ...]) -> Sequence[bytes]:
        keys = _keys(live)
        return sorted(keys, key=self._recency.__getitem__) if len(keys) > 1 else keys


def _identity(key: bytes) -> _Identity | str:
    """Return the identity of a raw key, or the fault in it."""
    plain = _PLAIN_KEY.fullmatch(key)
    if plain is not None:
        return _Identity(plain[1][1:-1].decode("ascii"), key)
    parsed = parse_key(key)
    if isinstance(parsed, str):
        return parsed
    return _Identity(parsed.connector, canonical_key(key, parsed))


def _keys(live: bytes | tuple[bytes, ...]) -> tuple[bytes, ...]:
    return live if isinstance(live, tuple) else (live,)


def _ignored(key: str, detail: str) -> tuple[Notice, ...]:
    return (
        Notice(
            severity=NoticeLevel.WARNING,
            event="Ignoring offset partition key with an unexpected format",
            key=key,
            detail=detail,
        ),
    )
