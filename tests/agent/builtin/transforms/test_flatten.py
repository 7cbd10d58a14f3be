"""Rules of Flatten; its results are compared with Apache\'s elsewhere."""

from decimal import Decimal

import pytest

from pyconnect_api import (
    INT32_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    STRING_SCHEMA,
    DataException,
    SchemaBuilder,
    Struct,
)
from tests.agent.builtin.transforms.transformations import (
    WITH_DEFAULT,
    applied,
    pair,
    source_record,
    transformation,
)


def test_flatten_makes_fields_of_an_optional_struct_optional() -> None:
    """A missing struct leaves its fields without values; defaults come from within."""
    inner = SchemaBuilder.struct().optional().field("a", WITH_DEFAULT).field("b", INT32_SCHEMA)
    outer = SchemaBuilder.struct().name("n").field("in", inner).field("c", INT32_SCHEMA).build()
    made = transformation("Flatten$Value", delimiter="_")
    record = applied(made, source_record(Struct(outer).put("c", 1), outer))
    assert record.value_schema == (
        SchemaBuilder.struct()
        .name("n")
        .field("in_a", WITH_DEFAULT)
        .field("in_b", OPTIONAL_INT32_SCHEMA)
        .field("c", INT32_SCHEMA)
        .build()
    )
    assert isinstance(record.value, Struct)
    assert record.value.stored_values() == [None, None, 1]


def test_flatten_joins_names_of_maps() -> None:
    """Empty maps vanish, lists stay, of equal names the last one stays."""
    made = transformation("Flatten$Value")
    value = {"a": {"b": 1, "c": {}, "d": [{"e": 2}]}, "a.b": 3, "n": None}
    assert applied(made, source_record(value)).value == {"a.b": 3, "a.d": [{"e": 2}], "n": None}
    with pytest.raises(DataException, match="not supported by Connect's data API"):
        made.apply(source_record({"a": Decimal(1)}))
    with pytest.raises(DataException, match="does not support class Struct"):
        made.apply(source_record({"a": pair("x", 1)}))
    with pytest.raises(DataException, match="does not support keys of class int"):
        made.apply(source_record({1: 1}))
    maps = SchemaBuilder.map(STRING_SCHEMA, INT32_SCHEMA).build()
    schema = SchemaBuilder.struct().field("m", maps).build()
    with pytest.raises(DataException, match=r"does not support MAP .* \(for field m\)"):
        made.apply(source_record(Struct(schema).put("m", {}), schema))
