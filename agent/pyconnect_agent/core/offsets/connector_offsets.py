"""Offsets of connectors as clients see and change them (KIP-875).

Kafka: ConnectorOffset, ConnectorOffsets, SinkUtils, and the part of OffsetUtils and
OffsetStorageReaderImpl that they need. A source's partitions and offsets are flat JSON objects of
the connector's own; a sink's are topic partitions and positions in them.

Very many offsets stay text and raw entries, with one of them at a time made an object (`PATCH
/connectors/{c}/offsets`, and the offsets that a source connector checks): 100,000 pairs of maps
take ten times the memory of their bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

from pyconnect_agent.core.internal_topics.offsetlog import Partition, canonical_key, parse_key
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.offsets.source import parse_offset

OffsetPair = tuple[Partition | None, Partition | None]
"""Partition and offset; offset None: there shall be none."""

_BEGIN = re.compile(r'[ \t\n\r]*\{[ \t\n\r]*"offsets"[ \t\n\r]*:[ \t\n\r]*\[[ \t\n\r]*')
_SEPARATOR = re.compile(r"[ \t\n\r]*,[ \t\n\r]*")
ITEM_CHARACTERS = 1 << 22
"""More than any record of Kafka's topics for Connect has."""
_END = re.compile(r"[ \t\n\r]*\][ \t\n\r]*\}[ \t\n\r]*")


def is_plain(text: str) -> bool:
    """Whether a document begins as one that `each_entry` reads."""
    return _BEGIN.match(text) is not None


def each_entry(text: str, decoder: json.JSONDecoder) -> Iterator[Any]:
    """Yield the entries of `{"offsets": […]}`.

    Raises ValueError for any other document, maybe after entries have been yielded.
    """
    begin = _BEGIN.match(text)
    if begin is None:
        raise ValueError("The document does not begin with a list of offsets")
    position = begin.end()
    if _END.fullmatch(text, position):
        return
    position = yield from each_item(text, position, decoder)
    if not _END.fullmatch(text, position):
        raise ValueError("The document does not end with a list of offsets")


def each_item(text: str, position: int, decoder: json.JSONDecoder) -> Generator[Any, None, int]:
    """Yield the items of a list from its first one at `position`; return the end of the last.

    Raises ValueError for text that is not JSON, and for an item of more than `ITEM_CHARACTERS`.
    """
    # The decoder does not let other threads run, so it gets no more than one item's text.
    begin = position
    window = text[begin : begin + ITEM_CHARACTERS]
    while True:
        try:
            item, end = decoder.raw_decode(window, position - begin)
            # A number may go on behind the window.
            is_cut = end == len(window) and begin + end < len(text)
        except ValueError:
            is_cut = begin + len(window) < len(text)
            if position == begin or not is_cut:
                raise
        if is_cut and position != begin:
            begin = position
            window = text[begin : begin + ITEM_CHARACTERS]
            continue
        yield item
        position = begin + end
        separator = _SEPARATOR.match(text, position)
        if separator is None:
            return position
        position = separator.end()


class StoredPairs(Sequence[OffsetPair]):
    """Raw entries of a connector as the pairs that it reads; each is made when it is asked for."""

    def __init__(self, entries: Iterable[tuple[bytes, bytes | None]]) -> None:
        self._entries = tuple(entries)

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: int) -> OffsetPair: ...

    @overload
    def __getitem__(self, index: slice) -> StoredPairs: ...

    def __getitem__(self, index: int | slice) -> OffsetPair | StoredPairs:
        if isinstance(index, slice):
            return StoredPairs(self._entries[index])
        key, value = self._entries[index]
        parsed = parse_key(key)
        assert not isinstance(parsed, str), "only readable keys become entries"
        return parsed.partition, parse_offset(value)

    def __repr__(self) -> str:
        return f"StoredPairs({len(self)})"


def forgotten_pairs(keys: Iterable[bytes]) -> StoredPairs:
    """Return every partition once, without an offset; `keys` are readable."""
    unique: dict[bytes, bytes] = {}
    for key in keys:
        parsed = parse_key(key)
        assert not isinstance(parsed, str), "the store indexes readable keys only"
        unique[canonical_key(key, parsed)] = key
    return StoredPairs((key, None) for key in unique.values())


JsonObject = Mapping[str, Any]

TOPIC_KEY = "kafka_topic"
PARTITION_KEY = "kafka_partition"
OFFSET_KEY = "kafka_offset"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorOffset:
    """`offset` None: the offset was removed, or is to be removed."""

    partition: JsonObject | None
    offset: JsonObject | None

    def to_json(self) -> dict[str, Any]:
        return {"partition": self.partition, "offset": self.offset}


class CommittedOffset(NamedTuple):
    """The offset at which a consumer group goes on reading."""

    topic: str
    partition: int
    offset: int


def sink_offsets(committed: Iterable[CommittedOffset]) -> tuple[ConnectorOffset, ...]:
    """Return the committed offsets of a consumer group."""
    return tuple(
        ConnectorOffset(
            partition={PARTITION_KEY: found.partition, TOPIC_KEY: found.topic},
            offset={OFFSET_KEY: found.offset},
        )
        for found in committed
    )


def source_offsets(
    entries: dict[bytes, bytes],
) -> tuple[tuple[ConnectorOffset, ...], tuple[bytes, ...]]:
    """Read a connector's raw entries; of keys of equal meaning the last counts.

    Returns the offsets, and the keys of entries whose values cannot be read, which are left out.
    """
    unreadable: list[bytes] = []
    found = list(each_source_offset((entries,), unreadable.append))
    return tuple(reversed(found)), tuple(reversed(unreadable))


def each_source_offset(
    stores: Sequence[Mapping[bytes, bytes]], unreadable: Callable[[bytes], object]
) -> Iterator[ConnectorOffset]:
    """Do as `source_offsets`, the last first and one at a time: there may be very many.

    An entry of an earlier one of `stores` hides entries of later ones with a key of equal meaning.
    """
    seen: set[bytes] = set()
    for number, entries in enumerate(stores):
        for key in reversed(tuple(entries)):
            if any(key in earlier for earlier in stores[:number]):
                continue
            parsed = parse_key(key)
            assert not isinstance(parsed, str), "the store indexes readable keys only"
            meaning = canonical_key(key, parsed)
            if meaning in seen:
                continue
            try:
                offset = json_text.loads(entries[key])
            except ValueError:
                unreadable(key)
                continue
            if isinstance(offset, dict):
                seen.add(meaning)
                yield ConnectorOffset(partition=parsed.partition, offset=offset)
            elif offset is not None:
                unreadable(key)
