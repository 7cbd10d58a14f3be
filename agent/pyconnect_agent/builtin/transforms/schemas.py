"""Schemas and structs of transformations: requirements, copies, and facts cached by schema.

Corresponds to `Requirements` of Kafka's transformations (with Kafka's texts, and Python's names of
classes), to `SchemaUtil.copySchemaBasics`, to their loops over the fields of a struct, and to
`schemaUpdateCache`. A `SchemaCache` keeps facts that depend on the schema only, such as a
`StructCopy`; it serves one thread.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from pyconnect_agent.builtin.converters.base import RecentlyUsed
from pyconnect_api import (
    ConnectRecord,
    DataException,
    Field,
    Schema,
    SchemaBuilder,
    SinkRecord,
    Struct,
    validate_value,
)
from pyconnect_api.schema import renamed_schema


def copied_basics(source: Schema, builder: SchemaBuilder) -> SchemaBuilder:
    """Copy name, version, doc and parameters of the source to the builder; return the builder."""
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
    """Return a STRUCT builder with the basics of the source; SchemaBuilderException as in Kafka.

    The source's optionality and default are not copied.
    """
    builder = copied_basics(source, SchemaBuilder.struct())
    for name, schema in fields:
        builder.field(name, schema)
    return builder


class StructCopy:
    """A copy of values from structs of one schema to the fields of another one.

    `sources` names, for each of the first fields of `target`, the source field that fills it. With
    `replace_null_with_default` None is read as the default.
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
        """Return a struct of the target schema; all its fields must have sources."""
        return Struct.of_checked(self.target, self.values(struct))


class ChangedStruct:
    """A copy of structs of one schema in which some fields get another schema and value.

    `changes` has the new schema and the function for the new value, by name. None stays None. The
    target keeps the optionality and the default of the source; the default is changed too.
    """

    __slots__ = ("_changes", "_copy", "target")

    def __init__(
        self,
        source: Schema,
        changes: Mapping[str, tuple[Schema, Callable[[object], object]]],
        *,
        replace_null_with_default: bool,
    ) -> None:
        fields = ((f.name, changes.get(f.name, (f.schema,))[0]) for f in source.fields)
        plain = self.target = struct_like(source, fields).build()
        self._copy = StructCopy(
            plain,
            source.fields,
            replace_null_with_default=replace_null_with_default,
            changed=changes,
        )
        self._changes = tuple(
            (field, changes[field.name][1]) for field in plain.fields if field.name in changes
        )
        default = source.default
        if source.optional or default is not None:
            self.target = renamed_schema(
                plain,
                name=plain.name,
                version=plain.version,
                optional=source.optional,
                default=self.struct(default) if isinstance(default, Struct) else default,
            )

    def struct(self, struct: Struct) -> Struct:
        """Return the changed struct."""
        values = self._copy.values(struct)
        for field, change in self._changes:
            value = values[field.index]
            new = None if value is None else change(value)
            values[field.index] = validate_value(field.schema, new, field.name)
        return Struct.of_checked(self.target, values)


V = TypeVar("V")

_SIZE = 16


class SchemaCache(Generic[V]):
    """A cache of the last 16 schemas, for each of which it calls `work_out` once."""

    __slots__ = ("_known", "_last", "_last_schema", "_work_out")

    def __init__(self, work_out: Callable[[Schema], V]) -> None:
        self._work_out = work_out
        self._known: RecentlyUsed[Schema, V] = RecentlyUsed(_SIZE)
        self._last_schema: Schema | None = None
        self._last: V

    def of(self, schema: Schema) -> V:
        """Return the result of `work_out`; its errors are raised each time."""
        # Most records have the schema object of the previous one, so that it need not be hashed.
        if schema is self._last_schema:
            return self._last
        found = self._known.get(schema)
        if found is None:
            found = self._work_out(schema)
            self._known.put(schema, found)
        self._last_schema, self._last = schema, found
        return found


def require_schema(schema: Schema | None, purpose: str) -> Schema:
    """Return the schema; raise DataException if it is missing."""
    if schema is None:
        raise DataException(f"Schema required for [{purpose}]")
    return schema


def require_map(value: object, purpose: str) -> dict[Any, Any]:
    """Return the value; DataException unless it is a dict."""
    if not isinstance(value, dict):
        raise DataException(
            f"Only Map objects supported in absence of schema for [{purpose}], "
            f"found: {class_name(value)}"
        )
    return value


def require_struct(value: object, purpose: str) -> Struct:
    """Return the value; DataException unless it is a Struct."""
    if not isinstance(value, Struct):
        raise DataException(
            f"Only Struct objects supported for [{purpose}], found: {class_name(value)}"
        )
    return value


def require_sink_record(record: ConnectRecord, purpose: str) -> SinkRecord:
    """Return the record; DataException unless it comes from Kafka."""
    if not isinstance(record, SinkRecord):
        raise DataException(
            f"Only SinkRecord supported for [{purpose}], found: {class_name(record)}"
        )
    return record


def class_name(value: object) -> str:
    """Return the name of a value's class as error messages show it."""
    return "null" if value is None else type(value).__qualname__
