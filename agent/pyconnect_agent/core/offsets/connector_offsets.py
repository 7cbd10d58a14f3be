"""Offsets of connectors as clients see and change them (KIP-875), and the texts of answers.

Kafka: ConnectorOffset, ConnectorOffsets, SinkUtils, `Worker.modifyConnectorOffsets`, and the part
of OffsetUtils and OffsetStorageReaderImpl that they need. A source connector defines its partitions
and offsets, which are flat JSON objects; a sink's are topic partitions and positions in them. Over
REST Apache's lenient rules hold: of several entries for one partition the last counts, unknown
partitions are accepted, extra members of a sink's entries are ignored.

Very many offsets stay text and raw entries, and are made objects one at a time (`PATCH
/connectors/{c}/offsets`, and the offsets that a source connector checks): 100,000 pairs of maps
take ten times the memory of their bytes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple, overload

from pyconnect_agent.core.errors import BadRequestError
from pyconnect_agent.core.internal_topics.offsetlog import (
    Partition,
    canonical_key,
    content_of,
    parse_key,
)
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.offsets.source import (
    offset_value,
    parse_offset,
    partition_key,
    sorted_key,
)
from pyconnect_api import DataException, TopicPartition

OffsetPair = tuple[Partition | None, Partition | None]
"""Partition and offset; offset None: the partition's offset is to be removed."""

_BEGIN = re.compile(r'[ \t\n\r]*\{[ \t\n\r]*"offsets"[ \t\n\r]*:[ \t\n\r]*\[[ \t\n\r]*')
_SEPARATOR = re.compile(r"[ \t\n\r]*,[ \t\n\r]*")
ITEM_CHARACTERS = 1 << 22
"""Larger than any record of Kafka Connect's topics."""
_END = re.compile(r"[ \t\n\r]*\][ \t\n\r]*\}[ \t\n\r]*")


def each_entry(text: str, decoder: json.JSONDecoder) -> Iterator[Any]:
    """Yield the entries of `{"offsets": […]}`.

    Raises ValueError for any other document, possibly after some entries.
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
    """Yield the items of a list, the first of which is at `position`; return the end of the last.

    Raises ValueError for text that is not JSON, and for an item of more than `ITEM_CHARACTERS`.
    """
    # The decoder blocks all other threads, so it gets no more than one item's text.
    begin = position
    window = text[begin : begin + ITEM_CHARACTERS]
    while True:
        try:
            item, end = decoder.raw_decode(window, position - begin)
            # A number may continue behind the window.
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
    """A connector's raw entries as a sequence of pairs; each pair is made on access."""

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
    """Return every partition once, with offset None; all `keys` are readable."""
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
    """A partition and its offset. None: the offset was removed, or is to be removed."""

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
    """Yield the offsets of `source_offsets` from the last to the first: there may be very many.

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


_CAPACITY = 16
_MASK = 0xFFFFFFFF


def in_hash_order(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries in the order of a Java HashMap into which they are put in this order."""
    if len(values) < 2:
        return dict(values)
    capacity = _CAPACITY
    while len(values) > capacity * 3 // 4:
        capacity *= 2

    def bucket(name: str) -> int:
        code = 0
        units = name.encode("utf-16-be", "surrogatepass")
        for high, low in zip(units[::2], units[1::2], strict=True):
            code = (31 * code + (high << 8 | low)) & _MASK
        return (code ^ code >> 16) & (capacity - 1)

    return {name: values[name] for name in sorted(values, key=bucket)}


NOTHING_TO_ALTER = "Partitions / offsets need to be provided for an alter offsets request"
LEADER_CHANGES = "Only the leader can process external offsets modification requests"
CONFIG_UNREADABLE = "Failed to read to end of config topic before modifying connector offsets"
FENCING_FAILED = "Failed to perform zombie fencing for source connector prior to modifying offsets"

_DECODER = json.JSONDecoder()
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})", re.ASCII)
_INT, _LONG = 1 << 31, 1 << 63
_PLAIN = frozenset({str, bool, type(None)})
"""Types whose values are returned unchanged."""


class ChangeStage(Enum):
    """A stage in the change of a connector's offsets, named for the wait that follows."""

    READING = auto()
    CALLING = auto()
    WRITING = auto()


def must_be_stopped(connector: str) -> str:
    return (
        "Connectors must be in the STOPPED state before their offsets can be modified. This can be"
        " done for the specified connector by issuing a 'PUT' request to the"
        f" '/connectors/{connector}/stop' endpoint"
    )


def success_text(*, is_reset: bool, complete: bool) -> str:
    """Return the text of a success; `complete`: nothing is left to do outside of Kafka Connect."""
    done = "reset" if is_reset else "altered"
    if complete:
        return f"The offsets for this connector have been {done} successfully"
    return (
        f"The Connect framework-managed offsets for this connector have been {done} successfully."
        " However, if this connector manages offsets externally, they will need to be manually"
        f" {done} in the system that the connector uses."
    )


def timed_out_text(connector: str, kind: str, stage: ChangeStage) -> str:
    """Return the text of a timeout; `kind`: source or sink."""
    match stage:
        case ChangeStage.READING if kind == "sink":
            return (
                f"Failed to list offsets prior to resetting offsets for sink connector {connector}"
            )
        case ChangeStage.READING:
            return (
                "Timed out while trying to read to the end of the offsets topic prior to modifying"
                f" offsets for source connector {connector}"
            )
        case ChangeStage.CALLING:
            return (
                "Timed out while calling the 'alterOffsets' method for"
                f" {kind} connector {connector}"
            )
        case ChangeStage.WRITING:
            return f"Timed out while attempting to modify offsets for {kind} connector {connector}"


def failed_text(connector: str, kind: str) -> str:
    return f"Failed to modify offsets for {kind} connector {connector}"


def unsupported_text(connector: str) -> str:
    return (
        f"Failed to modify offsets for connector {connector} because it doesn't support external"
        " modification of offsets"
    )


def zombie_text(connector: str, verb: str) -> str:
    """Return the error text for zombie tasks that still use the group; `verb`: alter or reset."""
    return (
        f"Failed to {verb} consumer group offsets for connector {connector} either because its"
        " tasks haven't stopped completely yet or the connector was resumed before the request to"
        f" {verb} its offsets could be successfully completed. If the connector is in a stopped"
        " state, this operation can be safely retried. If it doesn't eventually succeed, the"
        " Connect cluster may need to be restarted to get rid of the zombie sink tasks."
    )


def read_pairs(text: bytes) -> Iterator[OffsetPair]:
    """Yield the pairs of a request's JSON `text`, which has been checked."""
    document = text.decode()
    plain = _BEGIN.match(document)
    for entry in each_entry(document, _DECODER) if plain else json.loads(document)["offsets"]:
        yield entry.get("partition"), entry.get("offset")


def sink_offsets_asked(pairs: Iterable[OffsetPair]) -> dict[TopicPartition, int | None]:
    """Return the wanted positions, None for an offset to remove. Raises BadRequestError."""
    asked: dict[TopicPartition, int | None] = {}
    # As in Java 1, 1.0, "1" and true are four partitions. The last pair of a partition counts.
    last = {content_of(partition): (partition, offset) for partition, offset in pairs}
    for partition, offset in last.values():
        if partition is None:
            raise BadRequestError(
                "The partition for a sink connector offset cannot be null or missing"
            )
        asked[_topic_partition(partition)] = None if offset is None else _position(offset)
    return asked


def source_entries_asked(connector: str, pairs: Iterable[OffsetPair]) -> dict[bytes, bytes | None]:
    """Return the raw entries of the pairs; of several pairs for one partition the last counts.

    As in Java 1, 1.0, "1" and true are four partitions. Integers are 64-bit, other numbers
    floats. Members are in the order of Java's HashMap, in which a Java worker writes new partitions
    and most Java plugins look for them. Raises DataException for values that are not primitive.
    """
    last: dict[bytes, tuple[bytes, bytes | None]] = {}
    for partition, offset in pairs:
        wanted = _normalized(partition)
        key = partition_key(connector, None if wanted is None else in_hash_order(wanted))
        last[sorted_key(connector, wanted)] = (key, offset_value(_normalized(offset)))
    return dict(last.values())


def _topic_partition(partition: JsonObject) -> TopicPartition:
    if TOPIC_KEY not in partition or PARTITION_KEY not in partition:
        raise BadRequestError(
            "The partition for a sink connector offset must contain the keys"
            f" '{TOPIC_KEY}' and '{PARTITION_KEY}'"
        )
    topic, number = partition[TOPIC_KEY], partition[PARTITION_KEY]
    if topic is None:
        raise BadRequestError("Kafka topic names must be valid strings and may not be null")
    if number is None:
        raise BadRequestError("Kafka partitions must be valid numbers and may not be null")
    parsed = _integer(number, _INT)
    if parsed is None:
        raise BadRequestError(
            "Failed to parse the following Kafka partition value in the provided offsets:"
            f" '{_java_text(number)}'. Partition values for sink connectors need to be integers."
        )
    return TopicPartition(_java_text(topic), parsed)


def _position(offset: JsonObject) -> int:
    if OFFSET_KEY not in offset:
        raise BadRequestError(
            "The offset for a sink connector should either be null or contain the key"
            f" '{OFFSET_KEY}'"
        )
    parsed = _integer(offset[OFFSET_KEY], _LONG)
    if parsed is None:
        raise BadRequestError(
            "Failed to parse the following Kafka offset value in the provided offsets:"
            f" '{_java_text(offset[OFFSET_KEY])}'. Offset values for sink connectors need to be"
            " integers."
        )
    return parsed


def _integer(value: object, limit: int) -> int | None:
    """Read a number or its text as Java's parseInt and parseLong do; None if they would raise."""
    found = _INTEGER.fullmatch(_java_text(value))
    # Without leading zeros: Python refuses texts of more than 4,300 digits.
    if found is None or not -limit <= (number := int(found[1] + found[2])) < limit:
        return None
    return number


def _java_text(value: object) -> str:
    """Return the text of Java's `String.valueOf` for a value that Jackson has read."""
    match value:
        case str():
            return value
        case dict():
            members = (f"{name}={_java_text(member)}" for name, member in value.items())
            return f"{{{', '.join(members)}}}"
        case list():
            return f"[{', '.join(_java_text(element) for element in value)}]"
        case int() if not isinstance(value, bool):
            return str(value)
        case _:
            return json_text.text_of(value).strip('"')


def _normalized(values: JsonObject | None) -> JsonObject | None:
    if values is None or _PLAIN.issuperset(map(type, values.values())):
        return values
    for name, value in values.items():
        match value:
            case list():
                found = "ARRAY"
            case dict():
                found = "MAP"
            case bool() | float() | str() | None:
                continue
            case int() if -_LONG <= value < _LONG:
                continue
            case int():
                found = "class java.math.BigInteger"
            case _:
                found = type(value).__name__
        raise DataException(
            f"Offsets may only contain primitive types as values, but field {name} contains {found}"
        )
    # Infinite numbers are stored as strings, so a reader gets strings.
    return {
        name: _java_text(value) if isinstance(value, float) and math.isinf(value) else value
        for name, value in values.items()
    }
