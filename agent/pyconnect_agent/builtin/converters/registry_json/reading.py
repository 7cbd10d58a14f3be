"""Connect schemas of JSON Schemas.

Corresponds to `JsonSchemaData.toConnectSchema`. Pure. A schema that Connect did not write is read
by its JSON types: `integer` is INT64, `number` FLOAT64, `object` a struct of its properties, an
`object` without properties a map of texts; several alternatives are a STRUCT
`io.confluent.connect.json.OneOf` with a field for each. References are followed; one that leads to
itself is refused, for schemas here are finite.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyconnect_agent.builtin.converters.json_reader import reader_for
from pyconnect_agent.builtin.converters.json_writer import ONE_OF, JsonOptions
from pyconnect_agent.builtin.converters.registry_json.writing import (
    INDEX,
    PARAMETERS,
    TYPE,
    VERSION,
)
from pyconnect_agent.core.java_text import json_text
from pyconnect_api import OPTIONAL_STRING_SCHEMA, DataException, Schema, SchemaBuilder, Type

ENUM_PARAMETER = "io.confluent.connect.json.Enum"

_TYPES = {
    "integer": Type.INT64,
    "number": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
    "string": Type.STRING,
}
_HINTED = frozenset(kind.value for kind in Type) - {"array", "map", "struct"}


def connect_schema(
    document: Mapping[str, Any],
    references: Mapping[str, Any],
    options: JsonOptions,
    *,
    optional_unless_required: bool,
) -> Schema:
    """Return what a JSON Schema means; DataException when Connect has nothing like it.

    `references` are other documents by the names that `$ref` uses. `optional_unless_required`:
    properties that `required` does not list are optional.
    """
    return _Walk(document, references, options, optional_unless_required).of(document)


class _Walk:
    def __init__(
        self,
        document: Mapping[str, Any],
        references: Mapping[str, Any],
        options: JsonOptions,
        optional_unless_required: bool,
    ) -> None:
        self._document = document
        self._references = references
        self._options = options
        self._optional_unless_required = optional_unless_required
        self._followed: list[str] = []

    def of(self, found: Any, *, optional: bool = False) -> Schema:
        if found is True or found == {}:
            return OPTIONAL_STRING_SCHEMA
        if not isinstance(found, Mapping):
            raise DataException(f"Not a JSON Schema: {found}")
        if "$ref" in found:
            return self._referred(str(found["$ref"]), optional=optional)
        alternatives = found.get("oneOf") or found.get("anyOf")
        if alternatives:
            rest = [item for item in alternatives if item != {"type": "null"}]
            optional = optional or len(rest) < len(alternatives)
            if len(rest) != 1 or not isinstance(rest[0], Mapping):
                return self._union(rest, optional=optional)
            outer = {name: found[name] for name in ("default", "description") if name in found}
            return self.of({**outer, **rest[0]}, optional=optional)
        kind = found.get("type")
        if isinstance(kind, list):
            rest = [name for name in kind if name != "null"]
            optional = optional or len(rest) < len(kind)
            if len(rest) > 1:
                branches = [{**found, "type": name} for name in rest]
                return self._union(branches, optional=optional)
            found = {**found, "type": rest[0] if rest else "string"}
        builder = self._builder(found)
        if optional:
            builder.optional()
        return self._described(builder, found)

    def _referred(self, reference: str, *, optional: bool) -> Schema:
        if reference in self._followed:
            raise DataException(f"The JSON Schema {reference} contains itself: not supported")
        self._followed.append(reference)
        try:
            name, _, pointer = reference.partition("#")
            target: Any = self._references.get(name) if name else self._document
            for escaped in pointer.split("/")[1:]:
                step = escaped.replace("~1", "/").replace("~0", "~")
                target = target.get(step) if isinstance(target, Mapping) else None
            if target is None:
                raise DataException(f"The JSON Schema refers to {reference}, which is not there")
            return self.of(target, optional=optional)
        finally:
            self._followed.pop()

    def _union(self, branches: list[Any], *, optional: bool) -> Schema:
        builder = SchemaBuilder.struct().name(ONE_OF)
        if optional:
            builder.optional()
        for number, branch in enumerate(branches):
            builder.field(f"{ONE_OF}.field.{number}", self.of(branch, optional=True))
        return builder.build()

    def _builder(self, found: Mapping[str, Any]) -> SchemaBuilder:
        hint, kind = found.get(TYPE), found.get("type")
        if "enum" in found and kind in (None, "string"):
            builder = SchemaBuilder.string().parameter(ENUM_PARAMETER, str(found.get("title", "")))
            for symbol in found["enum"]:
                builder.parameter(f"{ENUM_PARAMETER}.{symbol}", str(symbol))
            return builder
        if hint == "map":
            if found.get("type") == "object":
                value = self.of(found.get("additionalProperties", {}))
                return SchemaBuilder.map(SchemaBuilder.string(), value)
            entry = found["items"]["properties"]
            return SchemaBuilder.map(self.of(entry["key"]), self.of(entry["value"]))
        if hint in _HINTED:
            return SchemaBuilder(Type(hint))
        match kind:
            case "array":
                return SchemaBuilder.array(self.of(found.get("items", {})))
            case "object":
                return self._object(found)
        if kind not in _TYPES:
            raise DataException(f"Unsupported JSON Schema type {kind}")
        return SchemaBuilder(_TYPES[str(kind)])

    def _object(self, found: Mapping[str, Any]) -> SchemaBuilder:
        properties = found.get("properties")
        if properties is None:
            value = found.get("additionalProperties", {})
            return SchemaBuilder.map(SchemaBuilder.string(), self.of(value or {}))
        builder = SchemaBuilder.struct()
        required = set(found.get("required", ()))
        ordered = sorted(properties.items(), key=lambda item: _index(item[1], len(properties)))
        for name, member in ordered:
            is_optional = self._optional_unless_required and name not in required
            builder.field(name, self.of(member, optional=is_optional))
        return builder

    def _described(self, builder: SchemaBuilder, found: Mapping[str, Any]) -> Schema:
        if "title" in found:
            builder.name(str(found["title"]))
        if "description" in found:
            builder.doc(str(found["description"]))
        if VERSION in found:
            builder.version(int(found[VERSION]))
        builder.parameters(found.get(PARAMETERS, {}))
        schema = builder.build()
        if found.get("default") is not None and schema.type is not Type.STRUCT:
            # As the converter parses messages: fractions are exact there.
            default = json_text.parse_text(json_text.text_of(found["default"]))
            builder.default(reader_for(schema, self._options)(default))
            schema = builder.build()
        return schema


def _index(member: Any, default: int) -> int:
    return int(member.get(INDEX, default)) if isinstance(member, Mapping) else default
