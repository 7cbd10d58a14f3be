"""JSON Schemas of Connect schemas.

Corresponds to `JsonSchemaData.fromConnectSchema`. Pure. What JSON Schema does not say is said by
properties: `connect.type` the exact type, `connect.index` the order of fields, `title` the schema's
name. An optional schema is `oneOf` null and itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias

from pyconnect_agent.builtin.converters.json_writer import ONE_OF, JsonOptions, writer_for
from pyconnect_api import DECIMAL_NAME, DataException, Schema, Type

Json: TypeAlias = dict[str, object]

TYPE = "connect.type"
INDEX = "connect.index"
VERSION = "connect.version"
PARAMETERS = "connect.parameters"

_TYPES: Mapping[Type, str] = {
    Type.INT8: "integer",
    Type.INT16: "integer",
    Type.INT32: "integer",
    Type.INT64: "integer",
    Type.FLOAT32: "number",
    Type.FLOAT64: "number",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "string",
}
_WITHOUT_TYPE_HINT = (Type.BOOLEAN, Type.STRING)


def json_schema(
    schema: Schema, options: JsonOptions, *, additional_properties: bool, list_required: bool
) -> Json:
    """Return the JSON Schema of values of `schema`; DataException when there is none.

    `additional_properties`: objects may have members that the schema does not name.
    `list_required`: required fields are listed as `required`.
    """
    return _Derivation(options, additional_properties, list_required).of(schema)


class _Derivation:
    def __init__(
        self, options: JsonOptions, additional_properties: bool, list_required: bool
    ) -> None:
        self._options = options
        self._additional_properties = additional_properties
        self._list_required = list_required

    def of(self, schema: Schema | None, index: int | None = None) -> Json:
        if schema is None:
            raise DataException("The schema of elements, keys or values is not known")
        described = self._base(schema)
        if schema.name is not None and schema.name != ONE_OF:
            described["title"] = schema.name
        if schema.doc is not None:
            described["description"] = schema.doc
        if schema.version is not None:
            described[VERSION] = schema.version
        if schema.parameters:
            described[PARAMETERS] = dict(schema.parameters)
        if schema.default is not None:
            described["default"] = json.loads(writer_for(schema, self._options)(schema.default))
        if schema.optional and schema.name != ONE_OF:
            default = described.pop("default", None)
            described = {"oneOf": [{"type": "null"}, described]}
            if default is not None:
                described["default"] = default
        if index is not None:
            described[INDEX] = index
        return described

    def _base(self, schema: Schema) -> Json:
        match schema.type:
            case Type.STRUCT:
                return self._one_of(schema) if schema.name == ONE_OF else self._object(schema)
            case Type.ARRAY:
                return {"type": "array", "items": self.of(schema.value_schema)}
            case Type.MAP:
                key = schema.key_schema
                if key is not None and key.type is Type.STRING and not key.optional:
                    return {
                        "type": "object",
                        TYPE: "map",
                        "additionalProperties": self.of(schema.value_schema),
                    }
                entry = {
                    "type": "object",
                    "properties": {
                        "key": self.of(key, 0),
                        "value": self.of(schema.value_schema, 1),
                    },
                }
                return {"type": "array", TYPE: "map", "items": entry}
        if schema.name == DECIMAL_NAME:
            return {"type": "number", TYPE: Type.BYTES.value}
        base: Json = {"type": _TYPES[schema.type]}
        if schema.type not in _WITHOUT_TYPE_HINT:
            base[TYPE] = schema.type.value
        return base

    def _object(self, schema: Schema) -> Json:
        fields = {field.name: self.of(field.schema, field.index) for field in schema.fields}
        base: Json = {"type": "object", "properties": fields}
        required = [
            field.name
            for field in schema.fields
            if not field.schema.optional and field.schema.default is None
        ]
        if self._list_required and required:
            base["required"] = required
        if not self._additional_properties:
            base["additionalProperties"] = False
        return base

    def _one_of(self, schema: Schema) -> Json:
        branches: list[object] = [{"type": "null"}] if schema.optional else []
        for field in schema.fields:
            branch = self.of(field.schema, field.index)
            alternatives = branch.pop("oneOf", None)
            if isinstance(alternatives, list):
                branch = {**branch, **alternatives[1]}
            branches.append(branch)
        return {"oneOf": branches}
