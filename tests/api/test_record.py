"""Source and sink records."""

import pytest

from pyconnect_api import (
    INT32_SCHEMA,
    STRING_SCHEMA,
    ConnectHeaders,
    Header,
    SinkRecord,
    SourceRecord,
    TimestampType,
)

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
    """None are held until asked for; new_record copies them."""
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
    """Source partition and offset stay, and so does where a sink record came from."""
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
