"""Projection of values from one schema to another."""

import pytest

from pyconnect_api import (
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    SchemaBuilder,
    SchemaProjectorException,
    Struct,
    decimal_schema,
    project,
)
from tests.support.cases import cases


def test_numbers_widen_and_optional_values_need_a_default() -> None:
    """Numbers are converted only towards FLOAT64; None becomes the target's default."""
    assert project(INT8_SCHEMA, 5, INT64_SCHEMA) == 5
    widened = project(INT64_SCHEMA, 16777217, FLOAT32_SCHEMA)
    assert (type(widened), widened) == (float, 16777216.0)
    for source, target in [(INT64_SCHEMA, INT32_SCHEMA), (INT32_SCHEMA, STRING_SCHEMA)]:
        with pytest.raises(SchemaProjectorException, match="Schema type mismatch"):
            project(source, 1, target)
    target = SchemaBuilder.int32().default(7).build()
    assert project(OPTIONAL_INT32_SCHEMA, None, target) == 7
    assert project(OPTIONAL_INT32_SCHEMA, 1, target) == 1
    with pytest.raises(SchemaProjectorException, match="does not provide a default value"):
        project(OPTIONAL_INT32_SCHEMA, 1, INT32_SCHEMA)
    assert project(INT32_SCHEMA, 1, OPTIONAL_INT32_SCHEMA) == 1


@cases(
    "source, target, message",
    (SchemaBuilder.int32().name("a").build(), INT32_SCHEMA, "Schema name mismatch"),
    (decimal_schema(1), decimal_schema(2), "Schema parameters not equal"),
)
def test_names_and_parameters_must_be_equal(source: Schema, target: Schema, message: str) -> None:
    """Name and parameters say what a value means; no conversion can change that."""
    with pytest.raises(SchemaProjectorException, match=message):
        project(source, None, target)


def test_fields_are_matched_by_name() -> None:
    """Fields that the target lacks are dropped; new fields get their default or stay unset."""
    source = SchemaBuilder.struct().field("a", INT32_SCHEMA).field("x", STRING_SCHEMA).build()
    target = (
        SchemaBuilder.struct()
        .field("new", SchemaBuilder.int32().default(7))
        .field("a", FLOAT64_SCHEMA)
        .field("opt", OPTIONAL_STRING_SCHEMA)
        .build()
    )
    projected = project(source, Struct(source).put("a", 1).put("x", "x"), target)
    assert projected == Struct(target).put("new", 7).put("a", 1.0)


def test_errors_name_the_missing_field() -> None:
    """Missing required fields are errors; the message has the path to a nested field."""
    source = SchemaBuilder.struct().build()
    target = SchemaBuilder.struct().field("a", INT32_SCHEMA).build()
    with pytest.raises(SchemaProjectorException, match="Required field `a` is missing"):
        project(source, Struct(source), target)
    source = SchemaBuilder.struct().field("a", STRING_SCHEMA).build()
    target = SchemaBuilder.struct().field("a", INT32_SCHEMA).build()
    with pytest.raises(SchemaProjectorException, match="Error projecting a: Schema type mismatch"):
        project(source, Struct(source).put("a", "x"), target)


def test_arrays_and_maps_are_projected_element_by_element() -> None:
    """The keys of maps are projected as well as the values."""
    source = SchemaBuilder.map(INT8_SCHEMA, SchemaBuilder.array(INT32_SCHEMA)).build()
    target = SchemaBuilder.map(INT64_SCHEMA, SchemaBuilder.array(FLOAT64_SCHEMA)).build()
    assert repr(project(source, {1: [2, 3]}, target)) == "{1: [2.0, 3.0]}"
