"""Offsets of connectors as clients see and change them (KIP-875).

Layer: core. Kafka: ConnectorOffset, ConnectorOffsets, SinkUtils, and the part of OffsetUtils and
OffsetStorageReaderImpl that they need. A source's partitions and offsets are flat JSON objects of
the connector's own; a sink's are topic partitions and positions in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyconnect_agent.core import json_text
from pyconnect_agent.core.offsetlog import parse_key

JsonObject = Mapping[str, Any]

TOPIC_KEY = "kafka_topic"
PARTITION_KEY = "kafka_partition"
OFFSET_KEY = "kafka_offset"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorOffset:
    """`offset` None: there is none any more, or there shall be none."""

    partition: JsonObject | None
    offset: JsonObject | None

    def to_json(self) -> dict[str, Any]:
        return {"partition": self.partition, "offset": self.offset}


class CommittedOffset(NamedTuple):
    """Where a consumer group goes on reading."""

    topic: str
    partition: int
    offset: int


def offsets_json(offsets: Iterable[ConnectorOffset]) -> dict[str, Any]:
    """Return the form that requests and answers have."""
    return {"offsets": [offset.to_json() for offset in offsets]}


def sink_offsets(committed: Iterable[CommittedOffset]) -> tuple[ConnectorOffset, ...]:
    """Return what a consumer group has committed."""
    return tuple(
        ConnectorOffset(
            partition={PARTITION_KEY: found.partition, TOPIC_KEY: found.topic},
            offset={OFFSET_KEY: found.offset},
        )
        for found in committed
    )


def source_offsets(
    entries: Mapping[bytes, bytes],
) -> tuple[tuple[ConnectorOffset, ...], tuple[bytes, ...]]:
    """Read a connector's raw entries; of keys of equal meaning the last counts.

    Returns the offsets, and the keys of entries whose values cannot be read, which are left out.
    """
    found: dict[str, ConnectorOffset] = {}
    unreadable: list[bytes] = []
    for key, value in entries.items():
        parsed = parse_key(key)
        assert not isinstance(parsed, str), "the store indexes readable keys only"
        try:
            offset = json_text.loads(value)
        except ValueError:
            unreadable.append(key)
            continue
        if isinstance(offset, dict):
            found[parsed.content] = ConnectorOffset(partition=parsed.partition, offset=offset)
        elif offset is not None:
            unreadable.append(key)
    return tuple(found.values()), tuple(unreadable)
