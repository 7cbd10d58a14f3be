"""Rules of MaskField; its results are compared with Apache\'s elsewhere."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from pyconnect_api import (
    INT8_SCHEMA,
    INT64_SCHEMA,
    DataException,
    SchemaBuilder,
    Struct,
    decimal_schema,
)
from tests.agent.builtin.transforms.transformations import applied, source_record, transformation


def test_masks_do_not_share_containers() -> None:
    """A change to the mask in one record must not change the mask of the next record."""
    made = transformation("MaskField$Value", fields="a")
    first, second = (applied(made, source_record({"a": [1]})).value for _ in range(2))
    assert first == second == {"a": []}
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first["a"] is not second["a"]


def test_masks_are_of_the_fields_type_and_scale() -> None:
    """A replacement is converted once; Kafka's zero has scale 0 and cannot be written."""
    made = transformation("MaskField$Value", fields="a,b,c", replacement="300")
    record = applied(made, source_record({"a": 1, "b": 1.5, "c": "x"}))
    assert record.value == {"a": 300, "b": 300.0, "c": "300"}
    schema = SchemaBuilder.struct().field("a", INT8_SCHEMA).field("b", INT64_SCHEMA).build()
    struct = applied(made, source_record(Struct.of_checked(schema, [1, 1]), schema)).value
    assert isinstance(struct, Struct)
    assert struct.stored_values() == [44, 300]
    for value in (True, b"x", [1], datetime(2024, 1, 1, tzinfo=UTC)):
        with pytest.raises(DataException, match=r"Cannot mask value of type class"):
            made.apply(source_record({"a": value}))
    schema = SchemaBuilder.struct().field("d", decimal_schema(2)).build()
    record = source_record(Struct(schema).put("d", Decimal("1.25")), schema)
    for options, expected in (({}, "0.00"), ({"replacement": "7"}, "7.00")):
        masked = applied(transformation("MaskField$Value", fields="d", **options), record).value
        assert isinstance(masked, Struct)
        assert str(masked.get("d")) == expected
    too_fine = transformation("MaskField$Value", fields="d", replacement="0.125")
    with pytest.raises(DataException, match="to a Decimal of scale 2"):
        too_fine.apply(record)
