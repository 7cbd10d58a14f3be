"""Source and sink records, alone and as columns."""

from collections.abc import Sequence

import pytest

from pyconnect_api import (
    INT32_SCHEMA,
    STRING_SCHEMA,
    ConnectHeaders,
    Header,
    SinkRecord,
    SinkRecords,
    SourceRecord,
    TimestampType,
)
from pyconnect_api import SourceRecords as Records

HEADER = Header("h", STRING_SCHEMA, "x")


def source(**changes: object) -> SourceRecord:
    parts: dict[str, object] = {"topic": "t", "value_schema": STRING_SCHEMA, "value": "v"}
    return SourceRecord({"p": 1}, {"o": 2}, **(parts | changes))  # type: ignore[arg-type]


def sink(**changes: object) -> SinkRecord:
    return SinkRecord("t", 3, None, None, STRING_SCHEMA, "v", 42, **changes)  # type: ignore[arg-type]


def test_records_are_equal_by_all_fields_and_unhashable() -> None:
    """Headers and source offsets count; keys and values may be dicts."""
    assert source() == source()
    assert source() != source(value="w")
    assert source() != source(headers=[HEADER])
    assert SourceRecord({"p": 1}, {"o": 3}, "t") != SourceRecord({"p": 1}, {"o": 2}, "t")
    assert sink() == sink()
    assert sink() != sink(timestamp=1)
    assert sink() != source()
    with pytest.raises(TypeError):
        hash(source())


def test_records_own_their_headers() -> None:
    """A record has no headers object until it is asked for one; `new_record` copies the headers."""
    record = source()
    assert not record.has_headers
    record.headers.add_string("a", "b")
    assert record.has_headers
    assert record.headers.last_with_name("a") == Header("a", STRING_SCHEMA, "b")
    given = [HEADER]
    record = source(headers=given)
    record.headers.clear()
    assert given == [HEADER]
    for record in (source(headers=[HEADER]), sink(headers=[HEADER])):
        changed = record.new_record("u", 1, None, "k", INT32_SCHEMA, 5, 9)
        changed.headers.clear()
        assert list(record.headers) == [HEADER]
        shared = ConnectHeaders([HEADER])
        changed = record.new_record("u", 1, None, "k", INT32_SCHEMA, 5, 9, shared)
        changed.headers.clear()
        assert len(shared) == 1


def test_new_record_keeps_source_offsets_and_coordinates() -> None:
    """A copy keeps source partition and offset; that of a sink record keeps its original topic."""
    changed = source().new_record("u", 1, None, "k", INT32_SCHEMA, 5, 9)
    assert (changed.source_partition, changed.source_offset) == ({"p": 1}, {"o": 2})
    assert (changed.topic, changed.kafka_partition, changed.key, changed.value) == ("u", 1, "k", 5)
    assert changed.timestamp == 9
    record = sink(timestamp=7, timestamp_type=TimestampType.CREATE_TIME)
    renamed = record.new_record("u", 0, None, None, None, None, None)
    assert renamed.original_topic == "t"
    assert renamed.original_kafka_partition == 3
    assert renamed.original_kafka_offset == 42
    assert renamed.kafka_offset == 42
    assert renamed.timestamp_type is TimestampType.CREATE_TIME
    again = renamed.new_record("w", 5, None, None, None, None, None)
    assert again.original_topic == "t"


def test_the_text_of_a_record_shows_its_parts() -> None:
    """Logs and traces name topic, offset and schemas."""
    assert "topic='t'" in repr(source())
    assert "sourceOffset={'o': 2}" in repr(source())
    assert "kafkaOffset=42, timestampType=NoTimestampType, originalTopic=t" in repr(sink())


PARTITION = {"file": "f"}


def several() -> Records:
    return Records(
        PARTITION,
        [{"n": n} for n in range(3)],
        "t",
        STRING_SCHEMA,
        ["a", "b", "c"],
        key_schema=INT32_SCHEMA,
        keys=[1, 2, 3],
        timestamp=7,
    )


def one(number: int) -> SourceRecord:
    value = "abc"[number]
    return SourceRecord(
        PARTITION, {"n": number}, "t", None, INT32_SCHEMA, number + 1, STRING_SCHEMA, value, 7
    )


def test_records_and_their_parts_have_the_values_of_the_columns() -> None:
    """Records are made when they are looked at, from either end, and each only once."""
    expected = [one(0), one(1), one(2)]
    assert list(several()) == expected
    assert [several()[0], several()[-1]] == [expected[0], expected[2]]
    assert list(reversed(several())) == expected[::-1]
    assert (len(several()), bool(several()), bool(several()[:0])) == (3, True, False)
    assert repr(several()[:1]) == f"SourceRecords([{expected[0]!r}])"
    records = several()
    looked_at = records[1]
    part = records[1:]
    assert isinstance(part, Records)
    assert part[0] is looked_at
    assert list(several()[1:][1:]) == [one(2)]


def test_keys_may_be_absent_and_all_else_must_be_as_much() -> None:
    """Lists of different lengths are refused, because records would be lost silently."""
    (record,) = Records(None, [None], "t", None, ["v"])
    assert record == SourceRecord(None, None, "t", value="v")
    for offsets, keys in (([None], None), ([None] * 2, [1])):
        with pytest.raises(ValueError, match="as many"):
            Records(None, offsets, "t", None, ["v", "w"], keys=keys)


def test_offsets_may_be_made_when_they_are_looked_at() -> None:
    """Source offsets may be any sequence, such as one that computes its elements."""

    class Squares(Sequence[dict[str, int]]):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> dict[str, int]:  # type: ignore[override]
            if index >= 4:
                raise IndexError
            return {"n": index * index}

    records = Records(PARTITION, Squares(), "t", None, list("abcd"))
    assert records[3].source_offset == {"n": 9}


def test_records_of_a_sink_are_made_once_and_when_needed() -> None:
    """The values of sink records are available before the records are made."""
    made: list[int] = []

    def make() -> list[SinkRecord]:
        made.append(1)
        return [SinkRecord("t", 0, None, None, None, text, 1) for text in "ab"]

    records = SinkRecords(["a", "b"], make)
    assert (len(records), bool(records), records.values, made) == (2, True, ["a", "b"], [])
    assert [record.value for record in records] == ["a", "b"]
    assert records[1] is records[-1] is next(reversed(records))
    assert made == [1]
