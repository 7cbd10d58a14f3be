"""Cast changes types as Java does."""

from datetime import date
from decimal import Decimal

import pytest

from pyconnect_api import (
    DATE_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    ConfigException,
    DataException,
    Schema,
    SchemaBuilder,
    Struct,
    decimal_schema,
)
from tests.agent.builtin.transforms.transformations import (
    applied,
    source_record,
    struct_of,
    transformation,
)
from tests.support.cases import cases


@cases(
    "value, target, expected",
    (300, "int8", 44), (-129, "int8", 127), (2**31, "int32", -(2**31)), (1e10, "int8", -1),
    (1e10, "int32", 2**31 - 1), (-1e30, "int64", -(2**63)), (float("nan"), "int16", 0),
    (-1.9, "int32", -1), (True, "int64", 1), ("-12", "INT8", -12), (2**53 + 1, "float64", 2.0**53),
    (2**24 + 1, "float32", 2.0**24), (9007199791611905, "float32", 9007200328482816.0),
    ("1.00000017881393432617187499", "float32", 1.0000001192092896), (" 0x1p3f ", "float64", 8.0),
    ("-Infinity", "float32", float("-inf")), (0.9, "boolean", False), (-1, "boolean", True),
    ("TRUE", "boolean", True), ("yes", "boolean", False), (1e10, "string", "1.0E10"),
    (False, "string", "false"), (b"\x00\xff", "string", "AP8="),
)  # fmt: skip
def test_schemaless_values_become_the_type(value: object, target: str, expected: object) -> None:
    """Integers wrap, floats are cut and limited, and strings are parsed in Java's syntax."""
    record = applied(transformation("Cast$Value", spec=target), source_record(value))
    assert (record.value, record.value_schema) == (expected, None)
    assert record.value.__class__ is expected.__class__


@cases("value", "1.5", "128", "", "one", "1_0", " 1", "9" * 5_000)
def test_a_string_out_of_range_is_refused_without_being_shown(value: str) -> None:
    """Errors do not show values of records, because errors are logged."""
    cast = transformation("Cast$Value", spec="int8")
    with pytest.raises(DataException) as caught:
        cast.apply(source_record(value))
    assert str(caught.value) == "Value was out of range for requested data type INT8"


@cases(
    "schema, value, target, expected",
    (DATE_SCHEMA, date(1970, 1, 3), "int64", 2),
    (DATE_SCHEMA, date(1965, 1, 3), "string", "1965-01-03"),
    (decimal_schema(2), Decimal("12.99"), "int32", 12),
    (decimal_schema(2), Decimal("12.90"), "string", "12.90"),
)
def test_a_cast_removes_the_logical_type(
    schema: Schema, value: object, target: str, expected: object
) -> None:
    """A cast field loses its logical type, and a whole value too, unlike in Kafka."""
    whole = applied(transformation("Cast$Value", spec=target), source_record(value, schema))
    assert whole.value == expected
    assert whole.value_schema is not None
    assert whole.value_schema.name is None
    struct_schema = SchemaBuilder.struct().field("f", schema).build()
    struct = Struct(struct_schema).put("f", value)
    record = applied(
        transformation("Cast$Value", spec=f"f:{target}"), source_record(struct, struct_schema)
    )
    assert struct_of(record).get("f") == expected


def test_a_cast_struct_keeps_name_version_doc_and_parameters() -> None:
    """Name, version, doc, parameters and optionality stay, and a default is cast too."""
    count = SchemaBuilder.string().optional().default("7").build()
    schema = SchemaBuilder.struct().name("n").version(2).doc("d").parameter("p", "q").optional()
    schema.field("count", count).field("other", FLOAT64_SCHEMA)
    built = schema.build()
    struct = Struct(built).put("other", 1.5)
    with_default = applied(
        transformation("Cast$Value", spec="count:int32,absent:int8"), source_record(struct, built)
    )
    result = with_default.value_schema
    assert result is not None
    assert (result.name, result.version, result.doc, result.optional) == ("n", 2, "d", True)
    assert result.parameters == {"p": "q"}
    assert result.fields[0].schema == SchemaBuilder.int32().optional().default(7).build()
    assert struct_of(with_default).stored_values() == [7, 1.5]
    without = transformation("Cast$Value", spec="count:int32", replace_null_with_default="false")
    kept = struct_of(applied(without, source_record(struct, built)))
    assert kept.stored_values() == [None, 1.5]


def test_absent_fields_and_none_are_cast_to_none() -> None:
    """None and missing fields stay None, as in Kafka; the given map is not changed."""
    given = {"a": "1"}
    record = applied(transformation("Cast$Key", spec="a:int8,b:int8"), source_record(given))
    assert (record.key, record.value) == ({"a": 1, "b": None}, {"a": "1"})
    record = source_record(None, INT64_SCHEMA)
    assert transformation("Cast$Value", spec="int8").apply(record) is record


@cases("value", [1], {"a": 1}, Struct(SchemaBuilder.struct().build()))
def test_containers_cannot_be_cast(value: object) -> None:
    """The error for a container lists the types that can be cast."""
    cast = transformation("Cast$Value", spec="f:int8")
    with pytest.raises(DataException, match=r"does not support casting from .*; supported types"):
        cast.apply(source_record({"f": value}))


def test_a_field_that_cannot_be_cast_fails_only_with_a_value() -> None:
    """A field without a cast fails with a value only, as in Kafka, not with its schema."""
    array = SchemaBuilder.array(INT8_SCHEMA).optional().build()
    schema = SchemaBuilder.struct().field("f", array).build()
    cast = transformation("Cast$Value", spec="f:int32")
    empty = applied(cast, source_record(Struct(schema), schema))
    expected = SchemaBuilder.struct().field("f", SchemaBuilder.int32().optional()).build()
    assert empty.value_schema == expected
    with pytest.raises(DataException, match="casting from ARRAY"):
        cast.apply(source_record(Struct(schema).put("f", [1]), schema))


@cases(
    "spec, message",
    ("", "Must specify at least one field to cast."),
    ("int128", "Invalid type found in casting spec: int128"),
    ("a:", "Invalid type found in casting spec: a"),
    ("bytes", "Cast transformation does not support casting to BYTES"),
    ("a:int8,int8", "may only specify a single cast"),
    ("a:b:int8", "Invalid rename mapping: a:b:int8"),
    (":", "Invalid rename mapping: :"),
)
def test_a_wrong_spec_is_refused(spec: str, message: str) -> None:
    """`configure` refuses a wrong spec with Kafka's text."""
    with pytest.raises(ConfigException, match=message):
        transformation("Cast$Value", spec=spec)


def test_the_side_is_the_one_of_the_class() -> None:
    """Key and Value variants leave the other side unchanged."""
    record = applied(transformation("Cast$Key", spec="string"), source_record(1, INT32_SCHEMA))
    assert (record.key_schema, record.key) == (STRING_SCHEMA, "1")
    assert (record.value_schema, record.value) == (INT32_SCHEMA, 1)
