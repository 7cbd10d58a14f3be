"""Provenance headers: their content, and the limits of their effect."""

import json
from collections.abc import Callable

import pytest

from pyconnect_agent.kafka.task_producer import KafkaHeaders
from pyconnect_agent.tasks.records import RecordSkipped
from pyconnect_agent.tasks.source.pipeline import Outgoing, Pipeline, compose_run
from pyconnect_agent.tasks.source.provenance import (
    EPOCH,
    OFFSET,
    PARTITION,
    SEQUENCE,
    canonical_json,
    partition_digest,
    stamped,
    wanted,
)
from pyconnect_api import SourceRecord
from tests.agent.tasks.parts import converters


def record(file: str, position: int, value: str | None = "v") -> SourceRecord:
    return SourceRecord({"file": file}, {"position": position}, "t", None, None, None, None, value)


def plain(source: SourceRecord) -> Outgoing:
    if source.value is None:
        raise RecordSkipped
    headers: KafkaHeaders | None = [("own", b"1")] if source.value == "headed" else None
    return ("t", str(source.value).encode(), None, -1, 0, headers)


def stamping(convert: Callable[[SourceRecord], Outgoing]) -> Callable[[SourceRecord], Outgoing]:
    pipeline = Pipeline(
        chain=None, convert=lambda _, record: convert(record), convert_run=compose_run(converters())
    )
    made = stamped(pipeline, connector="c", epoch_ms=7)
    assert made.convert_run is None
    return lambda record: made.convert(record, record)


def headers(outgoing: Outgoing | None) -> dict[str, bytes | None]:
    assert outgoing is not None
    return dict(outgoing[5] or ())


def test_each_source_partition_is_counted_from_one() -> None:
    """The number counts the records of a source partition since the task's start."""
    stamp = stamping(plain)
    seen = [headers(stamp(record(file, at))) for file, at in [("a", 1), ("b", 1), ("a", 2)]]
    assert [each[SEQUENCE] for each in seen] == [b"1", b"1", b"2"]
    assert {each[EPOCH] for each in seen} == {b"7"}
    assert seen[0][PARTITION] == partition_digest("c", {"file": "a"}).encode()
    assert seen[0][PARTITION] != seen[1][PARTITION]
    assert json.loads(seen[2][OFFSET] or b"") == {"position": 2}


def test_dropped_and_repeated_records_leave_no_hole() -> None:
    """A skipped record is not counted, and a record that is converted again keeps its number."""
    stamp = stamping(plain)
    assert headers(stamp(record("a", 1)))[SEQUENCE] == b"1"
    with pytest.raises(RecordSkipped):
        stamp(record("a", 2, None))
    assert headers(stamp(record("a", 3)))[SEQUENCE] == b"2"
    stamp = stamping(plain)
    again = record("a", 1)
    assert headers(stamp(again))[SEQUENCE] == b"1"
    assert headers(stamp(again))[SEQUENCE] == b"1"
    assert headers(stamp(record("a", 2)))[SEQUENCE] == b"2"


def test_headers_come_after_the_record_s_own_and_replace_none() -> None:
    """A record's own header wins over a provenance header of the same name."""

    def convert(source: SourceRecord) -> Outgoing:
        return ("t", b"v", None, -1, 0, [(SEQUENCE, b"mine"), ("own", b"1")])

    outgoing = stamping(convert)(record("a", 1))
    assert [name for name, _ in outgoing[5] or ()] == [SEQUENCE, "own", PARTITION, OFFSET, EPOCH]
    assert headers(outgoing)[SEQUENCE] == b"mine"


def test_headers_are_off_unless_asked_for_and_know_their_partition() -> None:
    """The headers need a connector setting; the order of members does not change a digest."""
    assert not wanted({})
    assert not wanted({"pyconnect.provenance.headers": "false"})
    assert wanted({"pyconnect.provenance.headers": " True "})
    assert canonical_json({"b": 1, "a": b"\x00"}) == '{"a":"AA==","b":1}'
    assert partition_digest("c", {"a": 1, "b": 2}) == partition_digest("c", {"b": 2, "a": 1})
    assert partition_digest("c", {"a": 1}) != partition_digest("d", {"a": 1})
