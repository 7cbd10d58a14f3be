"""Rules of InsertField; its results are compared with Apache\'s elsewhere."""

from datetime import UTC, datetime

import pytest

from pyconnect_api import (
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    TIMESTAMP_SCHEMA,
    DataException,
    SchemaBuilderException,
    Struct,
)
from tests.agent.builtin.transforms.transformations import (
    PAIR,
    applied,
    pair,
    sink_record,
    source_record,
    transformation,
)


def test_insert_field_adds_what_is_known_in_order() -> None:
    """An exclamation mark makes a field required, a question mark or nothing optional."""
    options = {
        "topic_field": "t!",
        "partition_field": "p?",
        "offset_field": "o",
        "timestamp_field": "w!",
        "static_field": "s",
        "static_value": "v",
    }
    made = transformation("InsertField$Value", **options)
    plain = applied(made, sink_record({"t": 0}, timestamp=5))
    assert plain.value == {"t": "topic", "p": 3, "o": 42, "w": 5, "s": "v"}
    record = applied(made, sink_record(pair("x", 1), PAIR, timestamp=5))
    assert isinstance(record.value, Struct)
    moment = datetime(1970, 1, 1, 0, 0, 0, 5000, tzinfo=UTC)
    assert record.value.stored_values() == ["x", 1, "topic", 3, 42, moment, "v"]
    assert [(field.name, field.schema) for field in record.value.schema.fields[2:]] == [
        ("t", STRING_SCHEMA),
        ("p", OPTIONAL_INT32_SCHEMA),
        ("o", OPTIONAL_INT64_SCHEMA),
        ("w", TIMESTAMP_SCHEMA),
        ("s", OPTIONAL_STRING_SCHEMA),
    ]


def test_insert_field_leaves_out_what_is_not_known_and_takes_no_field() -> None:
    """A required one fails when the struct is checked; a map's own is replaced."""
    options = {"partition_field": "p!", "timestamp_field": "w!"}
    made = transformation("InsertField$Value", **options)
    assert applied(made, source_record({})).value == {}
    struct = applied(made, source_record(pair("x", 1), PAIR)).value
    assert isinstance(struct, Struct)
    with pytest.raises(DataException, match='null used for required field: "p"'):
        struct.validate()
    with pytest.raises(DataException, match=r"^Only SinkRecord supported for .field insertion."):
        transformation("InsertField$Value", offset_field="o").apply(source_record({}))
    made = transformation("InsertField$Value", topic_field="a")
    assert applied(made, source_record({"a": 1})).value == {"a": "topic"}
    with pytest.raises(SchemaBuilderException, match="field name duplication a"):
        made.apply(source_record(pair("x", 1), PAIR))
