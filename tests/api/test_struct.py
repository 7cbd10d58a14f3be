"""Structs."""

import pytest

from pyconnect_api import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    DataException,
    Schema,
    SchemaBuilder,
    Struct,
)

SCHEMA = (
    SchemaBuilder.struct()
    .field("id", INT32_SCHEMA)
    .field("name", OPTIONAL_STRING_SCHEMA)
    .field("size", SchemaBuilder.int32().default(7))
    .build()
)


def test_put_checks_the_value_at_once() -> None:
    """`put` refuses None for a required field, although the field has a default."""
    struct = Struct(SCHEMA)
    with pytest.raises(DataException, match='for field: "id"'):
        struct.put("id", "x")
    with pytest.raises(DataException, match="other is not a valid field name"):
        struct.put("other", 1)
    assert struct.put("id", 1).get("id") == 1
    with pytest.raises(DataException, match="null used for required"):
        Struct(SCHEMA).put("size", None)


def test_getters_know_type_and_default() -> None:
    """A getter of another type raises; `get_without_default` returns only stored values."""
    struct = Struct(SCHEMA)
    assert struct.get("size") == 7
    assert struct.get_without_default("size") is None
    assert struct.get_int32("size") is None
    struct = Struct(SCHEMA).put("id", 5)
    assert struct.get_int32("id") == 5
    with pytest.raises(DataException, match="Field 'id' is not of type STRING"):
        struct.get_string("id")


def test_structs_are_equal_by_schema_and_stored_values() -> None:
    """An explicit value equal to the default is still another struct."""
    one, other = Struct(SCHEMA).put("id", 1), Struct(SCHEMA).put("id", 1)
    assert one == other
    assert hash(one) == hash(other)
    assert one != Struct(SCHEMA).put("id", 1).put("size", 7)
    assert {one: "x"}[other] == "x"


def test_the_text_omits_fields_without_value() -> None:
    """The text is the same as Java's, with bytes as base64."""
    assert str(Struct(SCHEMA).put("id", 1)) == "Struct{id=1}"
    schema = (
        SchemaBuilder.struct()
        .field("f", FLOAT32_SCHEMA)
        .field("b", BYTES_SCHEMA)
        .field("l", SchemaBuilder.array(STRING_SCHEMA))
        .build()
    )
    struct = Struct(schema).put("f", 0.1).put("b", b"ab").put("l", ["x", "y"])
    assert str(struct) == "Struct{f=0.1,b=YWI=,l=[x, y]}"


def test_a_struct_has_a_struct_schema_and_all_required_values() -> None:
    """Only fields that are optional or have a default may be missing."""
    with pytest.raises(DataException, match="Not a struct schema"):
        Struct(INT32_SCHEMA)
    Struct(SCHEMA).put("id", 1).validate()
    with pytest.raises(DataException, match='required field: "id"'):
        Struct(SCHEMA).validate()


INNER = SchemaBuilder.struct().build()
OF_EACH_TYPE: dict[str, tuple[Schema, object]] = {
    "int8": (INT8_SCHEMA, 1),
    "int16": (INT16_SCHEMA, 2),
    "int32": (INT32_SCHEMA, 3),
    "int64": (INT64_SCHEMA, 4),
    "float32": (FLOAT32_SCHEMA, 0.5),
    "float64": (FLOAT64_SCHEMA, 0.25),
    "boolean": (BOOLEAN_SCHEMA, True),
    "string": (STRING_SCHEMA, "x"),
    "bytes": (BYTES_SCHEMA, b"x"),
    "array": (SchemaBuilder.array(INT32_SCHEMA).build(), [1]),
    "map": (SchemaBuilder.map(STRING_SCHEMA, INT32_SCHEMA).build(), {"a": 1}),
    "struct": (INNER, Struct(INNER)),
}


@pytest.mark.parametrize("kind", OF_EACH_TYPE)
def test_a_typed_getter_returns_values_of_its_type_and_refuses_all_others(kind: str) -> None:
    """Each of the twelve types has a getter."""
    builder = SchemaBuilder.struct()
    for name, (schema, _) in OF_EACH_TYPE.items():
        builder.field(name, schema)
    struct = Struct(builder.build())
    for name, (_, value) in OF_EACH_TYPE.items():
        struct.put(name, value)
    typed_getter = getattr(struct, f"get_{kind}")
    assert typed_getter(kind) == OF_EACH_TYPE[kind][1]
    for other in OF_EACH_TYPE.keys() - {kind}:
        with pytest.raises(DataException, match=f"Field '{other}' is not of type"):
            typed_getter(other)
