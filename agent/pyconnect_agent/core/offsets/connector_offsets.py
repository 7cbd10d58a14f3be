"""Offsets of connectors as clients see and change them (KIP-875).

Layer: core. Kafka: ConnectorOffset, ConnectorOffsets, SinkUtils, and the part of OffsetUtils and
OffsetStorageReaderImpl that they need. A source's partitions and offsets are flat JSON objects of
the connector's own; a sink's are topic partitions and positions in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyconnect_agent.core.internal_topics.offsetlog import canonical_key, parse_key
from pyconnect_agent.core.java_text import json_text

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
