"""New schemas that keep what describes an old one, and structs filled from structs of the old one.

Layer: builtin. Corresponds to `SchemaUtil.copySchemaBasics` of Kafka's transformations and to their
loops over the fields of a struct. What depends on the schema only is worked out once per schema:
keep a `StructCopy` in a `SchemaCache`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyconnect_api import Field, Schema, SchemaBuilder, Struct, Type, validate_value


def copied_basics(source: Schema, builder: SchemaBuilder) -> SchemaBuilder:
    """Give the builder name, version, doc and parameters of the source; return the builder."""
    if source.name is not None:
        builder.name(source.name)
    if source.version is not None:
        builder.version(source.version)
    if source.doc is not None:
        builder.doc(source.doc)
    if source.parameters is not None:
        builder.parameters(source.parameters)
    return builder


def struct_like(source: Schema, fields: Iterable[tuple[str, Schema]]) -> SchemaBuilder:
    """Start a STRUCT schema with the basics of the source; SchemaBuilderException as Kafka's.

    Optionality and default of the source are not copied.
    """
    builder = copied_basics(source, SchemaBuilder.struct())
    for name, schema in fields:
        builder.field(name, schema)
    return builder


def renamed_schema(
    schema: Schema,
    *,
    name: str | None,
    version: int | None,
    optional: bool | None = None,
    default: object = None,
) -> Schema:
    """Return the schema with another name, version and default; `optional` None keeps that.

    Nothing is checked: a default that is a Struct, which a builder refuses, stays possible.
    """
    is_container = schema.type in {Type.ARRAY, Type.MAP}
    return Schema(
        schema.type,
        optional=schema.optional if optional is None else optional,
        default=default,
        name=name,
        version=version,
        doc=schema.doc,
        parameters=schema.parameters,
        fields=schema.fields if schema.type is Type.STRUCT else (),
        key_schema=schema.key_schema if schema.type is Type.MAP else None,
        value_schema=schema.value_schema if is_container else None,
    )


class StructCopy:
    """Reads the values that structs of one schema have for the fields of another one.

    `sources` names, for each of the first fields of `target`, the field of the source schema it is
    filled from. With `replace_null_with_default` None is read as the default.
    """

    __slots__ = ("_count", "_defaults", "_indexes", "_required", "target")

    def __init__(
        self,
        target: Schema,
        sources: Sequence[Field],
        *,
        replace_null_with_default: bool,
        changed: Iterable[str] = (),
    ) -> None:
        """Prepare the copy; fields of `target` named in `changed` may be None for now."""
        self.target = target
        indexes = tuple(field.index for field in sources)
        self._count = len(indexes)
        self._indexes = None if indexes == tuple(range(self._count)) else indexes
        self._defaults = tuple(
            (position, field.schema.default)
            for position, field in enumerate(sources)
            if replace_null_with_default and field.schema.default is not None
        )
        left_out = frozenset(changed)
        replaced = {position for position, _ in self._defaults}
        self._required = tuple(
            position
            for position, field in enumerate(target.fields[: len(sources)])
            if not field.schema.optional and position not in replaced and field.name not in left_out
        )

    def values(self, struct: Struct) -> list[object]:
        """Return a new list of one value for each source.

        Raises DataException, as Kafka does, for a required field that holds None.
        """
        stored = struct.stored_values()
        if self._indexes is None:
            values = list(stored[: self._count])
        else:
            values = [stored[index] for index in self._indexes]
        for position, default in self._defaults:
            if values[position] is None:
                values[position] = default
        for position in self._required:
            if values[position] is None:
                field = self.target.fields[position]
                validate_value(field.schema, None, field.name)
        return values

    def struct(self, struct: Struct) -> Struct:
        """Return a struct of the target schema, all of whose fields have sources."""
        return Struct.of_checked(self.target, self.values(struct))
