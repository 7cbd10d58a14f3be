"""Schemas and structs for the connectors' tests, in one line each."""

from pyconnect_api import Schema, SchemaBuilder


def fields(**kinds: Schema | SchemaBuilder) -> Schema:
    """Return the schema of a struct with these fields."""
    builder = SchemaBuilder.struct()
    for name, kind in kinds.items():
        builder.field(name, kind)
    return builder.build()
