"""`io.confluent.connect.json.JsonSchemaConverter`: JSON whose schemas a registry keeps.

Bodies are JSON documents with the value rules of JsonConverter, except that a map's entries without
text keys are objects of `key` and `value`. Needs the extra `json-schema`. Unlike
Confluent's converter, this one refuses schemaless maps and lists, and schemas that contain
themselves.

A Connect schema is written as `JsonSchemaData.fromConnectSchema` does. Properties hold facts that
JSON Schema lacks: `connect.type` the exact type, `connect.index` the order of fields, `title` the
schema's name. An optional schema is `oneOf` null and itself.

A JSON Schema is read as `toConnectSchema` does. One that Connect did not write is read by its JSON
types: `integer` is INT64, `number` FLOAT64, `object` a struct of its properties, an `object`
without properties a map of texts; several alternatives are a STRUCT
`io.confluent.connect.json.OneOf` with a field for each. References are followed.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from pyconnect_agent.builtin.converters.json_reader import reader_for
from pyconnect_agent.builtin.converters.json_writer import ONE_OF, JsonOptions, writer_for
from pyconnect_agent.builtin.converters.registry import (
    Decode,
    DerivedSchema,
    Encode,
    Frame,
    RegistryConverter,
)
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.kafka.schema_registry import RegistrySchema
from pyconnect_api import (
    DECIMAL_NAME,
    OPTIONAL_STRING_SCHEMA,
    CaseInsensitiveValidString,
    DataException,
    Schema,
    SchemaAndValue,
    SchemaBuilder,
    Type,
)
from pyconnect_api.validation import INTEGER_RANGES

ENUM_PARAMETER = "io.confluent.connect.json.Enum"

_CONNECT_TYPES = {
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
    """Return the Connect schema of a JSON Schema; raise DataException if Connect has none.

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
        if kind not in _CONNECT_TYPES:
            raise DataException(f"Unsupported JSON Schema type {kind}")
        return SchemaBuilder(_CONNECT_TYPES[str(kind)])

    def _object(self, found: Mapping[str, Any]) -> SchemaBuilder:
        properties = found.get("properties")
        if properties is None:
            value = found.get("additionalProperties", {})
            return SchemaBuilder.map(SchemaBuilder.string(), self.of(value or {}))
        builder = SchemaBuilder.struct()
        required = set(found.get("required", ()))

        def index(item: tuple[str, Any]) -> int:
            hints = item[1] if isinstance(item[1], Mapping) else {}
            return int(hints.get(INDEX, len(properties)))

        for name, member in sorted(properties.items(), key=index):
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
            # The default is parsed as messages are, in which fractions are exact.
            default = json_text.parse_text(json_text.text_of(found["default"]))
            builder.default(reader_for(schema, self._options)(default))
            schema = builder.build()
        return schema


Json: TypeAlias = dict[str, object]

TYPE = "connect.type"
INDEX = "connect.index"
VERSION = "connect.version"
PARAMETERS = "connect.parameters"

_TYPES: Mapping[Type, str] = {
    **dict.fromkeys(INTEGER_RANGES, "integer"),
    **dict.fromkeys((Type.FLOAT32, Type.FLOAT64), "number"),
    Type.BOOLEAN: "boolean",
    **dict.fromkeys((Type.STRING, Type.BYTES), "string"),
}
_WITHOUT_TYPE_HINT = (Type.BOOLEAN, Type.STRING)


def json_schema(
    schema: Schema, options: JsonOptions, *, additional_properties: bool, list_required: bool
) -> Json:
    """Return the JSON Schema of values of `schema`; raise DataException if none exists.

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
                if schema.name != ONE_OF:
                    return self._object(schema)
                branches: list[object] = [{"type": "null"}] if schema.optional else []
                for field in schema.fields:
                    branch = self.of(field.schema, field.index)
                    alternatives = branch.pop("oneOf", None)
                    if isinstance(alternatives, list):
                        branch = {**branch, **alternatives[1]}
                    branches.append(branch)
                return {"oneOf": branches}
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


DECIMAL_FORMAT = "decimal.format"


_TABLE = """
decimal.format  STRING  LOW  BASE64
    The form in which decimals are written.
json.fail.invalid.schema  BOOLEAN  LOW  false
    Messages are checked against their schema.
object.additional.properties  BOOLEAN  LOW  true
    Objects may have members their schema does not name.
use.optional.for.nonrequired  BOOLEAN  LOW  false
    Properties that are not required are optional.
"""


class JsonSchemaConverter(RegistryConverter):
    """The converter for JSON Schema; configure it before use."""

    KIND, FORMAT, EXTRA = "JSON", "JSON Schema", "json-schema"
    TABLE = _TABLE
    VALIDATORS = {DECIMAL_FORMAT: CaseInsensitiveValidString.one_of("BASE64", "NUMERIC")}  # noqa: RUF012  not changed

    def __init__(self) -> None:
        super().__init__()
        self._json = JsonOptions(registry_forms=True)
        self._validate = self._use_required = False
        self._additional_properties = True

    def configured(self, config: Mapping[str, object]) -> None:
        self._json = JsonOptions(
            decimals_as_numbers=str(config[DECIMAL_FORMAT]).upper() == "NUMERIC",
            registry_forms=True,
        )
        self._validate = config["json.fail.invalid.schema"] is True
        self._additional_properties = config["object.additional.properties"] is True
        self._use_required = config["use.optional.for.nonrequired"] is True

    def derived(self, schema: Schema) -> DerivedSchema:
        document = json_schema(
            schema,
            self._json,
            additional_properties=self._additional_properties,
            list_required=self._use_required,
        )
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
        name = schema.name if schema.type is Type.STRUCT else None
        return DerivedSchema(RegistrySchema(None, text, self.KIND), name)

    def encoder(self, schema: Schema, target: RegistrySchema) -> Encode:
        write = writer_for(schema, self._json)
        check = self._checker(target)

        def encode(value: object) -> bytes:
            text = write(value)
            if check is not None:
                check(text)
            return text.encode()

        return encode

    def decoder(self, source: RegistrySchema) -> Decode:
        document, references = self._documents(source)
        schema = connect_schema(
            document, references, self._json, optional_unless_required=self._use_required
        )
        read, check = reader_for(schema, self._json), self._checker(source)

        def decode(frame: Frame) -> SchemaAndValue:
            try:
                text = json_text.decode(frame.body)
                found = json_text.parse_text(text)
            except json_text.JsonTextError as error:
                raise DataException(
                    f"Failed to deserialize JSON with schema {frame.schema}: {error}"
                ) from error
            if check is not None:
                check(text)
            return SchemaAndValue(schema, read(found))

        return decode

    def _documents(self, source: RegistrySchema) -> tuple[Any, dict[str, Any]]:
        references: dict[str, Any] = {}
        for reference in source.references:
            imported = self.registry.by_version(reference.subject, reference.version)
            document, further = self._documents(imported)
            references |= {reference.name: document, **further}
        try:
            return json.loads(source.text), references
        except ValueError as error:
            raise DataException(f"The JSON Schema is not JSON: {error}") from error

    def _checker(self, source: RegistrySchema) -> Any:
        """Return a function that refuses texts which do not fit, None if validation is off."""
        if not self._validate:
            return None
        import jsonschema

        validator = jsonschema.Draft7Validator(json.loads(source.text))

        def check(text: str) -> None:
            problem = next(validator.iter_errors(json.loads(text)), None)
            if problem is not None:
                place = "/".join(map(str, problem.absolute_path)) or "the document"
                raise DataException(f"The JSON does not fit its schema at {place}")

        return check
