"""Offsets of deleted connectors. Pure.

A source's offsets are records of an offsets topic: key `["connector",{partition}]`, value the
offset, null to delete it. A sink's offsets are those of a consumer group `connect-NAME`.
The bytes of a key are kept unchanged: only they address the same record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyconnect_cli.errors import UsageError
from pyconnect_cli.kafka.model import SinkGroup, StoredRecord
from pyconnect_cli.offsets.plan.checks import read_entry, sink_entries
from pyconnect_cli.rest.offset_entries import OffsetEntry, by_key
from pyconnect_clients.connect_names import SINK_GROUP_PREFIX, sink_group_id

SOURCE, SINK = "source", "sink"

Configs = Mapping[str, Mapping[str, str | None]]
"""The configurations of the connectors that exist, by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """The offsets that one name left: of a source (`records`) or of a sink (`group`)."""

    name: str
    records: tuple[StoredRecord, ...] = ()
    group: SinkGroup | None = None
    entries: tuple[OffsetEntry, ...] = field(compare=False)

    @property
    def type(self) -> str:
        return SINK if self.group else SOURCE

    @property
    def places(self) -> tuple[str, ...]:
        """The topics or the group that hold them."""
        if self.group:
            return (self.group.group,)
        return tuple(sorted({record.topic for record in self.records}))

    @property
    def count(self) -> int:
        return len(self.group.offsets) if self.group else len(self.records)

    @property
    def written_ms(self) -> int | None:
        """The time of the newest record in ms since the epoch; None for a group."""
        return max((record.timestamp_ms or 0 for record in self.records), default=0) or None


def find_orphans(
    records: Iterable[StoredRecord], groups: Iterable[SinkGroup], existing: Configs
) -> list[Orphan]:
    """Return the orphans by name; a key that is not a Connect key belongs to no connector.

    A group with members has a sink that runs, in another Connect cluster.
    """
    by_name: dict[str, list[StoredRecord]] = {}
    for record in records:
        name = connector_of(record.key)
        if name is not None and name not in existing:
            by_name.setdefault(name, []).append(record)
    found = [
        Orphan(name=name, records=tuple(own), entries=source_entries(own))
        for name, own in by_name.items()
    ]
    used = {sink_group_id(name, config) for name, config in existing.items()}
    for group in groups:
        if group.live:
            continue
        name = group.group.removeprefix(SINK_GROUP_PREFIX)
        if name != group.group and name not in existing and group.group not in used:
            found.append(Orphan(name=name, group=group, entries=sink_entries(group.offsets)))
    return sorted(found, key=lambda orphan: (orphan.name, orphan.type))


def topics_of_others(records: Iterable[StoredRecord]) -> list[str]:
    """Return the topics that hold records and no offset of a connector."""
    holds_offsets: dict[str, bool] = {}
    for record in records:
        known = holds_offsets.get(record.topic, False)
        holds_offsets[record.topic] = known or connector_of(record.key) is not None
    return sorted(topic for topic, holds in holds_offsets.items() if not holds)


def connector_of(key: bytes) -> str | None:
    """Return the connector that a key names, None if it is not a key of Connect."""
    parts = _key_parts(key)
    return parts[0] if parts else None


def source_entries(records: Sequence[StoredRecord]) -> tuple[OffsetEntry, ...]:
    """Return offsets as REST would show them, without those that no worker can read."""
    entries = []
    for record in records:
        parts = _key_parts(record.key)
        try:
            value = None if record.value is None else json.loads(record.value)
            document = {"partition": parts[1] if parts else None, "offset": value}
            entries.append(read_entry(document, SOURCE, ""))
        except (ValueError, UsageError):
            continue
    return tuple(by_key(entries).values())


def own_topics(existing: Configs) -> set[str]:
    """Return the offsets topics of single sources on the workers' Kafka."""
    return {
        topic
        for config in existing.values()
        if (topic := config.get("offsets.storage.topic"))
        and not config.get("producer.override.bootstrap.servers")
    }


def _key_parts(key: bytes) -> tuple[str, object] | None:
    try:
        parts = json.loads(key)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parts, list) or len(parts) != 2 or not isinstance(parts[0], str):
        return None
    return parts[0], parts[1]
