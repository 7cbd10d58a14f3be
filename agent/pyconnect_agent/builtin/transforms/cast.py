"""`org.apache.kafka.connect.transforms.Cast`: other primitive types for fields or a whole value.

Single values are cast in `casts`. A field loses its schema's name; unlike in Kafka, so does a whole
value of a logical type, which would otherwise pretend to be still one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pyconnect_agent.builtin.transforms import casts
from pyconnect_agent.builtin.transforms.base import (
    OneSideTransformation,
    Options,
    both_sides,
    split_at_colons,
    with_null_key,
)
from pyconnect_agent.builtin.transforms.schemas import (
    SchemaCache,
    StructCopy,
    copied_basics,
    require_map,
    require_struct,
    struct_like,
)
from pyconnect_api import (
    ConfigException,
    ConnectRecord,
    DataException,
    Field,
    LambdaValidator,
    Schema,
    SchemaBuilder,
    Struct,
    Type,
    validate_value,
)
from pyconnect_api.configdef import invalid_value
from pyconnect_api.logical import SCALE_PARAMETER, is_logical
from pyconnect_api.schema import renamed_schema

SPEC = "spec"
_PURPOSE = "cast types"
_TABLE = """
spec  LIST  HIGH  !
    Fields and their new types as field:type, or one type for the whole value. Types are int8,
    int16, int32, int64, float32, float64, boolean and string; binary data can become a string only
    (base64).
"""


def _check_spec(_name: str, value: object) -> None:
    if not value:
        raise ConfigException("Must specify at least one field to cast.")
    assert isinstance(value, list)
    _parsed_spec(tuple(value))


def _parsed_spec(entries: tuple[str, ...]) -> dict[str | None, Type]:
    """Return target types by field; the field None means the whole value."""
    targets: dict[str | None, Type] = {}
    for entry in entries:
        parts = split_at_colons(entry)
        if len(parts) not in {1, 2}:
            # Kafka's text, which speaks of another transformation.
            raise invalid_value("renames", list(entries), f"Invalid rename mapping: {entry}")
        field = parts[0].strip() if len(parts) == 2 else None
        target = Type.__members__.get(parts[-1].strip().upper())
        if target is None:
            raise ConfigException(f"Invalid type found in casting spec: {parts[-1].strip()}")
        if target not in casts.OUTPUT_TYPES:
            raise ConfigException(
                f"Cast transformation does not support casting to {target}; "
                f"supported types are {casts.types_text(casts.OUTPUT_TYPES)}"
            )
        targets[field] = target
    if None in targets and len(entries) > 1:
        raise ConfigException(
            "Cast transformations that specify a type to cast the entire value to may only "
            "specify a single cast in their spec"
        )
    return targets


@dataclass(frozen=True, slots=True)
class _StructCasts:
    """The casts of structs of one schema, by fields of the new one."""

    copy: StructCopy
    field_casts: tuple[tuple[Field, casts.Cast], ...]

    def applied(self, struct: Struct) -> Struct:
        values = self.copy.values(struct)
        for field, cast in self.field_casts:
            value = values[field.index]
            new = None if value is None else cast(value)
            values[field.index] = validate_value(field.schema, new, field.name)
        return Struct.of_checked(self.copy.target, values)


class Cast(OneSideTransformation):
    """Casts the fields of a struct or map, or the whole value, to what `spec` says."""

    KEEPS_NONE = True
    CONFIG_DEF = with_null_key(
        _TABLE, {SPEC: LambdaValidator(_check_spec, "list of pairs field:type, e.g. foo:int32")}
    )

    _targets: dict[str, Type]
    _map_casts: tuple[tuple[str, casts.Cast], ...]
    _whole_map_cast: casts.Cast | None
    _struct_casts: SchemaCache[_StructCasts]
    _whole_casts: SchemaCache[tuple[Schema, casts.Cast]] | None

    def configured(self, options: Options) -> None:
        targets = _parsed_spec(options.texts(SPEC))
        whole_target = targets.get(None)
        self._targets = {name: target for name, target in targets.items() if name is not None}
        self._map_casts = tuple(
            (name, casts.schemaless_cast(target)) for name, target in self._targets.items()
        )
        self._whole_map_cast = None if whole_target is None else casts.schemaless_cast(whole_target)
        self._struct_casts = SchemaCache(self._casts_for)
        self._whole_casts = None
        if whole_target is not None:
            self._whole_casts = SchemaCache(partial(_whole_cast, whole_target))

    def schemaless(self, record: ConnectRecord, value: object) -> object:
        if self._whole_map_cast is not None:
            return self._whole_map_cast(value)
        updated = dict(require_map(value, _PURPOSE))
        for name, cast in self._map_casts:
            found = updated.get(name)
            updated[name] = None if found is None else cast(found)
        return updated

    def with_schema(
        self, record: ConnectRecord, schema: Schema, value: object
    ) -> tuple[Schema, object]:
        if self._whole_casts is not None:
            target, cast = self._whole_casts.of(schema)
            return target, cast(value)
        struct = require_struct(value, _PURPOSE)
        updated = self._struct_casts.of(struct.schema).applied(struct)
        return updated.schema, updated

    def _casts_for(self, schema: Schema) -> _StructCasts:
        fields: list[tuple[str, Schema]] = []
        cast_of: dict[str, casts.Cast] = {}
        for field in schema.fields:
            target = self._targets.get(field.name)
            if target is None:
                fields.append((field.name, field.schema))
            else:
                cast_of[field.name] = cast = _deferred(field.schema, target)
                # Bare: only the optionality is kept, and the default, which is cast as well.
                builder = SchemaBuilder(target)
                if field.schema.optional:
                    builder.optional()
                if field.schema.default is not None:
                    builder.default(cast(field.schema.default))
                fields.append((field.name, builder.build()))
        plain = struct_like(schema, fields).build()
        copy = StructCopy(
            plain, schema.fields, replace_null_with_default=self.with_default, changed=cast_of
        )
        made = _StructCasts(
            copy,
            tuple((field, cast_of[field.name]) for field in plain.fields if field.name in cast_of),
        )
        default = schema.default
        if schema.optional or default is not None:
            copy.target = renamed_schema(
                plain,
                name=plain.name,
                version=plain.version,
                optional=schema.optional,
                default=made.applied(default) if isinstance(default, Struct) else default,
            )
        return made


def _deferred(schema: Schema, target: Type) -> casts.Cast:
    """Return the cast; one that does not exist fails when there is a value to cast, as Kafka's."""
    try:
        return casts.schema_cast(schema, target)
    except DataException as error:
        refusal = error

    def refuse(_value: object) -> object:
        raise DataException(*refusal.args)

    return refuse


def _whole_cast(target: Type, schema: Schema) -> tuple[Schema, casts.Cast]:
    """Return the schema that whole values of `schema` get, and their cast."""
    cast = _deferred(schema, target)
    basics = copied_basics(schema, SchemaBuilder(target)).build()
    if is_logical(schema):
        parameters = dict(schema.parameters or {})
        parameters.pop(SCALE_PARAMETER, None)
        basics = Schema(target, doc=schema.doc, parameters=parameters)
    default = None if schema.default is None else cast(schema.default)
    described = renamed_schema(
        basics,
        name=basics.name,
        version=basics.version,
        optional=schema.optional,
        default=default,
    )
    return described, cast


CastKey, CastValue = both_sides(Cast)
