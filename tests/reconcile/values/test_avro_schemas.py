"""Avro schemas for Spark: the mark behind the value, and schemas that others refer to."""

from __future__ import annotations

import io
import json

import fastavro
import pytest

from pyconnect_reconcile.values.schemas import MARK, framed_schema

ADDRESS = {
    "type": "record",
    "name": "Address",
    "namespace": "com.example",
    "fields": [{"name": "city", "type": "string"}, {"name": "kind", "type": "com.other.Kind"}],
}
KIND = {"type": "enum", "name": "com.other.Kind", "symbols": ["HOME", "WORK"]}
ORDER = {
    "type": "record",
    "name": "com.example.Order",
    "fields": [
        {"name": "to", "type": "Address"},
        {"name": "others", "type": {"type": "array", "items": ["null", "com.example.Address"]}},
        {"name": "kind", "type": "com.other.Kind"},
    ],
}


def read(schema: str, body: bytes) -> object:
    return fastavro.schemaless_reader(io.BytesIO(body), json.loads(schema), None)


def written(schema: object, value: object, *named: object) -> bytes:
    stream, known = io.BytesIO(), {}
    for each in named:
        fastavro.parse_schema(each, named_schemas=known)
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema, named_schemas=known), value)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("schema", "value"),
    [("string", "text"), (["null", "long"], None), ({"type": "map", "values": "int"}, {"a": 1})],
)
def test_a_value_and_its_mark_are_read_as_a_record(schema: object, value: object) -> None:
    """The kind of value does not matter.

    Fields of a record follow each other without a separator.
    """
    body = written(schema, value) + MARK
    assert read(framed_schema(json.dumps(schema)), body) == {"value": value, "end": MARK}


def test_schemas_that_are_referred_to_are_written_where_they_are_first_used() -> None:
    """Names are looked up in the namespace of the record that uses them; twice is not defined."""
    address = {"city": "x", "kind": "WORK"}
    order = {"to": address, "others": [None, address], "kind": "HOME"}
    body = written(ORDER, order, KIND, ADDRESS) + MARK
    texts = [json.dumps(KIND), json.dumps(ADDRESS)]
    assert read(framed_schema(json.dumps(ORDER), texts), body) == {"value": order, "end": MARK}


def test_decimals_of_unknown_precision_get_the_greatest_one() -> None:
    """Connect writes 64 for them, which is more than Spark has."""
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}
    fields = [{"name": "price", "type": ["null", kind]}]
    schema = {"type": "record", "name": "R", "fields": fields}
    framed = json.loads(framed_schema(json.dumps(schema)))
    [price] = framed["fields"][0]["type"]["fields"]
    assert price["type"] == ["null", {**kind, "precision": 38}]


def test_a_text_that_is_not_json_is_refused() -> None:
    """The texts of other formats are."""
    with pytest.raises(ValueError, match="Expecting value"):
        framed_schema('syntax = "proto3";')
