"""Schemas as JSON objects, as they stand in the envelope of JSON messages.

Layer: builtin. Corresponds to `JsonConverter.asJsonSchema` and `asConnectSchema`. Members in the
order they are written; a field of a struct ends with `"field":"<name>"`:

    type
    items               of an array: schema object
    keys, values        of a map: schema objects
    fields              of a struct: array of schema objects
    optional            always
    name, version, doc, parameters, default     if there are any; parameters are strings

Reading, members of a wrong type are as good as missing, other than `type`, `items`, `keys`,
`values`, `fields` and the values of `parameters`.
"""

from pyconnect_agent.builtin.converters.json_reader import reader_for
from pyconnect_agent.builtin.converters.json_writer import JsonOptions, writer_for
from pyconnect_agent.core.java_text import json_text
from pyconnect_api import DataException, Schema, SchemaBuilder, Type

_NAMES = {kind: kind.value for kind in Type} | {Type.FLOAT32: "float", Type.FLOAT64: "double"}
_TYPES = {name: kind for kind, name in _NAMES.items()}


def schema_text(schema: Schema | None, options: JsonOptions) -> str:
    """Return the schema object as JSON text, `null` for no schema."""
    if schema is None:
        return "null"
    quoted = json_text.string_text
    members = [f'"type":"{_NAMES[schema.type]}"']
    match schema.type:
        case Type.ARRAY:
            members.append(f'"items":{schema_text(schema.value_schema, options)}')
        case Type.MAP:
            members.append(f'"keys":{schema_text(schema.key_schema, options)}')
            members.append(f'"values":{schema_text(schema.value_schema, options)}')
        case Type.STRUCT:
            fields = (
                f'{schema_text(field.schema, options)[:-1]},"field":{quoted(field.name)}}}'
                for field in schema.fields
            )
            members.append(f'"fields":[{",".join(fields)}]')
    members.append('"optional":true' if schema.optional else '"optional":false')
    if schema.name is not None:
        members.append(f'"name":{quoted(schema.name)}')
    if schema.version is not None:
        members.append(f'"version":{schema.version}')
    if schema.doc is not None:
        members.append(f'"doc":{quoted(schema.doc)}')
    if schema.parameters is not None:
        members.append(f'"parameters":{json_text.text_of(dict(schema.parameters))}')
    if schema.default is not None:
        members.append(f'"default":{writer_for(schema, options)(schema.default)}')
    return f"{{{','.join(members)}}}"


def schema_from_json(found: object, options: JsonOptions) -> Schema | None:
    """Return the schema of a parsed schema object, None of null.

    Raises DataException, or SchemaBuilderException for contradictions, if it describes none.
    """
    if found is None:
        return None
    members = found if isinstance(found, dict) else {}
    type_name = members.get("type")
    if not isinstance(type_name, str):
        raise DataException("Schema must contain 'type' field")
    kind = _TYPES.get(type_name)
    if kind is None:
        raise DataException(f"Unknown schema type: {type_name}")
    builder = _builder(kind, members, options)
    if members.get("optional") is True:
        builder.optional()
    name, version, doc = members.get("name"), members.get("version"), members.get("doc")
    if isinstance(name, str):
        builder.name(name)
    if isinstance(version, int) and not isinstance(version, bool):
        builder.version(version)
    if isinstance(doc, str):
        builder.doc(doc)
    parameters = members.get("parameters")
    if isinstance(parameters, dict):
        for parameter, value in parameters.items():
            if not isinstance(value, str):
                raise DataException("Schema parameters must have string values.")
            builder.parameter(parameter, value)
    if "default" in members:
        default = reader_for(builder.build(), options)(members["default"])
        if default is not None:
            builder.default(default)
    return builder.build()


def _builder(kind: Type, members: dict[str, object], options: JsonOptions) -> SchemaBuilder:
    match kind:
        case Type.ARRAY:
            if members.get("items") is None:
                raise DataException("Array schema did not specify the element type")
            items = schema_from_json(members["items"], options)
            return SchemaBuilder.array(items)  # type: ignore[arg-type]  # it refuses None
        case Type.MAP:
            if "keys" not in members:
                raise DataException("Map schema did not specify the key type")
            if "values" not in members:
                raise DataException("Map schema did not specify the value type")
            keys = schema_from_json(members["keys"], options)
            values = schema_from_json(members["values"], options)
            return SchemaBuilder.map(keys, values)  # type: ignore[arg-type]  # it refuses None
        case Type.STRUCT:
            fields = members.get("fields")
            if not isinstance(fields, list):
                raise DataException('Struct schema\'s "fields" argument is not an array.')
            builder = SchemaBuilder.struct()
            for field in fields:
                name = field.get("field") if isinstance(field, dict) else None
                if not isinstance(name, str):
                    raise DataException("Struct schema's field name not specified properly")
                schema = schema_from_json(field, options)
                builder.field(name, schema)  # type: ignore[arg-type]  # it refuses None
            return builder
    return SchemaBuilder(kind)
