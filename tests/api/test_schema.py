"""Schemas, their builder and their equality."""

import copy
import pickle

import pytest

from pyconnect_api import (
    INT32_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    STRING_SCHEMA,
    DataException,
    Schema,
    SchemaBuilder,
    SchemaBuilderException,
    Struct,
    Type,
    decimal_schema,
)
from tests.support.cases import cases


def person() -> SchemaBuilder:
    return SchemaBuilder.struct().name("Person").field("id", INT32_SCHEMA).field("n", STRING_SCHEMA)


def test_schemas_built_alike_are_equal() -> None:
    """Equal schemas have equal hashes and survive pickling; defaults count for equality."""
    assert person().build() == person().build()
    assert hash(person().build()) == hash(person().build())
    schema = person().parameter("a", "b").doc("d").build()
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert copy.deepcopy(schema) == schema
    array = SchemaBuilder.array(INT32_SCHEMA)
    one = SchemaBuilder.array(INT32_SCHEMA).default([1]).build()
    assert one == SchemaBuilder.array(INT32_SCHEMA).default([1]).build()
    assert one != SchemaBuilder.array(INT32_SCHEMA).default([2]).build()
    assert one != array.build()


@cases(
    "other",
    person().optional(),
    person().doc("x"),
    person().version(1),
    person().parameter("a", "b"),
    person().field("m", INT32_SCHEMA),
    SchemaBuilder.struct().name("Other").field("id", INT32_SCHEMA).field("n", STRING_SCHEMA),
    SchemaBuilder.struct().name("Person").field("n", STRING_SCHEMA).field("id", INT32_SCHEMA),
)
def test_every_attribute_counts_for_equality(other: SchemaBuilder) -> None:
    """Documentation, version, parameters and the order of fields make schemas different."""
    assert other.build() != person().build()


def test_a_schema_is_immutable() -> None:
    """Setting or removing an attribute is refused."""
    schema = person().build()
    with pytest.raises(AttributeError, match="immutable"):
        schema.name = "x"  # type: ignore[misc]
    with pytest.raises(AttributeError, match="cannot be removed"):
        del schema.name
    with pytest.raises(TypeError):
        SchemaBuilder.int8().parameter("a", "b").build().parameters["a"] = "c"  # type: ignore[index]


def test_parts_of_another_type_are_refused() -> None:
    """Fields belong to structs, key schemas to maps, value schemas to maps and arrays."""
    with pytest.raises(DataException, match="Cannot list fields on non-struct type"):
        _ = INT32_SCHEMA.fields
    with pytest.raises(DataException, match="Cannot look up fields on non-struct type"):
        INT32_SCHEMA.field("a")
    with pytest.raises(DataException, match="Cannot look up key schema on non-map type"):
        _ = SchemaBuilder.array(INT32_SCHEMA).build().key_schema
    with pytest.raises(DataException, match="Cannot look up value schema on non-array and non-map"):
        _ = INT32_SCHEMA.value_schema


def test_the_text_of_a_schema_names_it_and_fields_know_their_place() -> None:
    """The text is that of Kafka's messages; the index of a field is its place in the struct."""
    assert str(INT32_SCHEMA) == "Schema{INT32}"
    assert str(person().build()) == "Schema{Person:STRUCT}"
    schema = person().build()
    assert [(field.name, field.index) for field in schema.fields] == [("id", 0), ("n", 1)]
    field = schema.field("n")
    assert field is not None
    assert field.schema is STRING_SCHEMA
    assert schema.field("missing") is None


def test_primitive_types_are_all_but_three() -> None:
    """Arrays, maps and structs are not primitive."""
    assert {kind for kind in Type if not kind.is_primitive} == {Type.ARRAY, Type.MAP, Type.STRUCT}


def test_setting_an_attribute_twice_is_refused_unless_equal() -> None:
    """A builder accepts a second value only if it equals the first one."""
    for builder, again in [
        (SchemaBuilder.int8().name("a"), lambda b: b.name("b")),
        (SchemaBuilder.int8().version(1), lambda b: b.version(2)),
        (SchemaBuilder.int8().doc("a"), lambda b: b.doc("b")),
        (SchemaBuilder.int8().optional(), lambda b: b.required()),
        (SchemaBuilder.int8().default(1), lambda b: b.default(2)),
    ]:
        with pytest.raises(SchemaBuilderException, match="has already been set"):
            again(builder)
    assert SchemaBuilder.int8().name("a").name("a").optional().optional().build().name == "a"


def test_a_default_must_fit_the_type_so_far() -> None:
    """None is a default of optional schemas only; a struct cannot be a default."""
    with pytest.raises(SchemaBuilderException, match="Invalid default value"):
        SchemaBuilder.int8().default("x")
    with pytest.raises(SchemaBuilderException, match="Invalid default value"):
        SchemaBuilder.int8().default(None)
    assert SchemaBuilder.int8().optional().default(None).build().default is None
    schema = person().build()
    with pytest.raises(SchemaBuilderException, match="Invalid default value"):
        person().default(Struct(schema).put("id", 1).put("n", "x"))


def test_bad_fields_are_refused() -> None:
    """Field names are unique and not empty, schemas are not None, and only structs have fields."""
    with pytest.raises(SchemaBuilderException, match="field name duplication id"):
        person().field("id", INT32_SCHEMA)
    with pytest.raises(SchemaBuilderException, match="fieldName cannot be null"):
        person().field("", INT32_SCHEMA)
    with pytest.raises(SchemaBuilderException, match="fieldSchema for field x cannot be null"):
        person().field("x", None)  # type: ignore[arg-type]
    with pytest.raises(SchemaBuilderException, match="Cannot create fields on type INT8"):
        SchemaBuilder.int8().field("x", INT32_SCHEMA)


def test_element_schemas_are_required() -> None:
    """Arrays and maps are not built without the schemas of their elements, keys and values."""
    with pytest.raises(SchemaBuilderException, match="valueSchema cannot be null"):
        SchemaBuilder.array(None)  # type: ignore[arg-type]
    with pytest.raises(SchemaBuilderException, match="keySchema cannot be null"):
        SchemaBuilder.map(None, INT32_SCHEMA)  # type: ignore[arg-type]
    with pytest.raises(SchemaBuilderException, match="valueSchema cannot be null"):
        SchemaBuilder.map(INT32_SCHEMA, None)  # type: ignore[arg-type]


def test_nested_builders_are_built_and_no_parameters_are_none() -> None:
    """A builder may stand for a schema; an empty mapping of parameters becomes None."""
    assert SchemaBuilder.int8().parameters({}).build().parameters is None
    assert decimal_schema(2).parameters == {"scale": "2"}
    nested = SchemaBuilder.struct().field("a", SchemaBuilder.int32().optional()).build()
    assert nested == SchemaBuilder.struct().field("a", OPTIONAL_INT32_SCHEMA).build()
    array = SchemaBuilder.array(SchemaBuilder.map(SchemaBuilder.string(), STRING_SCHEMA)).build()
    assert array.value_schema == SchemaBuilder.map(STRING_SCHEMA, STRING_SCHEMA).build()
    assert isinstance(array.value_schema, Schema)
