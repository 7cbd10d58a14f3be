"""Headers that say where a source record came from, for reconciliation; off by default.

Not in Apache's worker. With `pyconnect.provenance.headers=true` in the connector's configuration
each record gets, after its own headers and never in place of one of them:

| header                      | UTF-8 text                                                        |
|-----------------------------|-------------------------------------------------------------------|
| pyconnect.source.partition  | 16 hex digits of SHA-256 of connector name and source partition   |
| pyconnect.source.offset     | the source offset as canonical JSON                               |
| pyconnect.source.seq        | count of that source partition's records since the task's start   |
| pyconnect.source.epoch      | when the task started, in ms                                      |

(partition, offset) finds duplicates, (partition, epoch, seq) finds holes within one start. Only
records that reach the producer are counted: dropped ones leave no hole.
"""

import base64
import hashlib
import json
from collections.abc import Hashable, Mapping
from dataclasses import replace

from pyconnect_agent.core.offsets.submitted import canonical_partition
from pyconnect_agent.kafka.task_producer import KafkaHeaders
from pyconnect_agent.tasks.source.pipeline import Outgoing, Pipeline
from pyconnect_api import SourceRecord

SETTING = "pyconnect.provenance.headers"
PARTITION, OFFSET = "pyconnect.source.partition", "pyconnect.source.offset"
SEQUENCE, EPOCH = "pyconnect.source.seq", "pyconnect.source.epoch"


def wanted(connector_config: Mapping[str, str]) -> bool:
    """Return whether a connector asks for the headers."""
    return connector_config.get(SETTING, "").strip().lower() == "true"


def canonical_json(value: object) -> str:
    """Return the same text for the same value, whatever the order of its members."""
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_plain
    )


def _plain(value: object) -> object:
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    return dict(value) if isinstance(value, Mapping) else str(value)


def partition_digest(connector: str, partition: object) -> str:
    """Return the value of `pyconnect.source.partition`."""
    return hashlib.sha256((connector + canonical_json(partition)).encode()).hexdigest()[:16]


class _Counted:
    """One source partition: its digest and the number of its last record."""

    __slots__ = ("digest", "last")

    def __init__(self, digest: bytes) -> None:
        self.digest = digest
        self.last = 0


def stamped(pipeline: Pipeline, *, connector: str, epoch_ms: int) -> Pipeline:
    """Return a pipeline that adds the headers, record by record."""
    convert = pipeline.convert
    known: dict[Hashable, _Counted] = {}
    epoch = str(epoch_ms).encode()
    last_record: SourceRecord | None = None

    def stamp(record: SourceRecord, transformed: SourceRecord) -> Outgoing:
        nonlocal last_record
        outgoing = convert(record, transformed)
        place = canonical_partition(record.source_partition)
        counted = known.get(place)
        if counted is None:
            digest = partition_digest(connector, record.source_partition)
            counted = known[place] = _Counted(digest.encode())
        # A record whose send is repeated is converted again: it keeps its number.
        if record is not last_record:
            counted.last += 1
            last_record = record
        topic, content, key, partition, timestamp, headers = outgoing
        own: KafkaHeaders = list(headers or ())
        taken = {name for name, _ in own}
        own += [
            (name, value)
            for name, value in (
                (PARTITION, counted.digest),
                (OFFSET, canonical_json(record.source_offset).encode()),
                (SEQUENCE, str(counted.last).encode()),
                (EPOCH, epoch),
            )
            if name not in taken
        ]
        return (topic, content, key, partition, timestamp, own)

    return replace(pipeline, convert=stamp, convert_run=None)
