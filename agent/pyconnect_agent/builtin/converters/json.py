"""`org.apache.kafka.connect.json.JsonConverter`: JSON, with or without schemas.

Writes the bytes Apache's writes; `json_writer` and `json_reader` do the values, this module the
envelope and the schemas:

    {"schema":<schema or null>,"payload":<value>}     schemas.enable=true, exactly these members
    <value>                                           schemas.enable=false

A None value with a schema is not a Kafka null: it is written with a null payload. The setting
`schema.content` (KIP-1054) gives one schema for all messages read, which then hold the payload
only.

`json_reader` lists the differences from Apache's in reading; this module refuses bytes after the
first JSON value. An instance serves one thread.

A schema is a JSON object (`asJsonSchema`, `asConnectSchema`). Members in the order they are
written; a field of a struct ends with `"field":"<name>"`:

    type
    items               of an array: schema object
    keys, values        of a map: schema objects
    fields              of a struct: array of schema objects
    optional            always
    name, version, doc, parameters, default     if there are any; parameters are strings

In reading, members of a wrong type count as missing, except `type`, `items`, `keys`,
`values`, `fields` and the values of `parameters`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from pyconnect_agent.builtin.converters import json_reader, json_writer
from pyconnect_agent.builtin.converters.base import (
    DataConverter,
    RecentlyUsed,
    converter_config_def,
)
from pyconnect_agent.builtin.converters.json_reader import reader_for
from pyconnect_agent.builtin.converters.json_writer import JsonOptions, writer_for
from pyconnect_agent.core.java_text import json_text
from pyconnect_api import (
    NULL,
    CaseInsensitiveValidString,
    ConfigDef,
    DataException,
    KafkaHeaders,
    Schema,
    SchemaAndValue,
    SchemaBuilder,
    Type,
    pair_of,
)
from pyconnect_api.configdef import define_table

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
    """Return the schema of a parsed schema object, None for null.

    Raises DataException if it describes no schema, or SchemaBuilderException for contradictions.
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


T = TypeVar("T")
R = TypeVar("R")

SCHEMAS_ENABLE_CONFIG = "schemas.enable"
SCHEMA_CONTENT_CONFIG = "schema.content"
SCHEMAS_CACHE_SIZE_CONFIG = "schemas.cache.size"
DECIMAL_FORMAT_CONFIG = "decimal.format"
REPLACE_NULL_WITH_DEFAULT_CONFIG = "replace.null.with.default"

_ENVELOPE_START = '{"schema":'
_BEFORE_PAYLOAD = ',"payload":'

_Start: TypeAlias = tuple[str, Schema | None, json_reader.Read]
"""The text before a payload, its schema, and the payload's reader."""
_NOT_AN_ENVELOPE = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not '
    "contain additional fields. If you are trying to deserialize plain JSON data, set "
    "schemas.enable=false in your converter configuration."
)


class JsonConverter(DataConverter):
    """The converter for JSON; configure it before use."""

    def __init__(self) -> None:
        self._options = json_writer.JsonOptions()
        self._schemas_enabled = True
        self._content_schema: Schema | None = None
        self._read_content: json_reader.Read = json_reader.reader_for(None, self._options)
        self._plain: _Start = ("", None, self._read_content)
        self._writers: RecentlyUsed[Schema | None, tuple[str, json_writer.Write]]
        self._readers: RecentlyUsed[str, tuple[Schema | None, json_reader.Read]]
        self._reset_caches(1000)

    def config(self) -> ConfigDef:
        return _CONFIG_DEF

    def configured(self, options: Mapping[str, object]) -> None:
        self._options = json_writer.JsonOptions(
            decimals_as_numbers=str(options[DECIMAL_FORMAT_CONFIG]).upper() == "NUMERIC",
            replace_null_with_default=options[REPLACE_NULL_WITH_DEFAULT_CONFIG] is True,
        )
        self._schemas_enabled = options[SCHEMAS_ENABLE_CONFIG] is True
        self._reset_caches(int(str(options[SCHEMAS_CACHE_SIZE_CONFIG])))
        content = options[SCHEMA_CONTENT_CONFIG]
        if content:
            self._content_schema = schema_from_json(
                _parsed(json_text.parse_text, str(content)), self._options
            )
        self._read_content = json_reader.reader_for(self._content_schema, self._options)
        self._plain = ("", None, self._read_content)

    def _reset_caches(self, size: int) -> None:
        # For writing, the text before the payload and the payload's writer by schema; for
        # reading, schema and reader by the text of the schema.
        self._writers = RecentlyUsed(size)
        self._readers = RecentlyUsed(size)
        self._last_written: tuple[Schema | None, str, json_writer.Write] | None = None
        self._last_read: _Start | None = None

    def from_connect_data(
        self, topic: str, headers: KafkaHeaders, schema: Schema | None, value: object
    ) -> bytes | None:
        if schema is None and value is None:
            return None
        last = self._last_written
        if last is None or last[0] is not schema:
            last = self._last_written = (schema, *self._writer(schema))
        if self._schemas_enabled:
            return f"{last[1]}{last[2](value)}}}".encode()
        return last[2](value).encode()

    def from_connect_many(
        self, topic: str, schema: Schema | None, values: Sequence[object]
    ) -> list[bytes | None]:
        start, write = self._writer(schema)
        if schema is None:
            return super().from_connect_many(topic, schema, values)
        if self._schemas_enabled:
            return [f"{start}{write(value)}}}".encode() for value in values]
        return [write(value).encode() for value in values]

    def to_connect_data(
        self, topic: str, headers: KafkaHeaders, data: bytes | None
    ) -> SchemaAndValue:
        if data is None:
            return NULL
        if not self._schemas_enabled:
            try:
                found = json_text.parse(data)
            except json_text.JsonTextError as exc:
                if not data.strip():
                    return NULL
                raise _unreadable(exc) from exc
            return pair_of((None, self._read_content(found)))
        text = _parsed(json_text.decode, data)
        if self._content_schema is not None:
            found = _parsed(json_text.parse_text, text)
            return SchemaAndValue(self._content_schema, self._read_content(found))
        # The records of a topic mostly begin with the same schema, which then need not be parsed.
        last = self._last_read
        if last is None or not text.startswith(last[0]):
            last = self._known_start(text)
        if last is not None:
            start, schema, read = last
            try:
                found, end = json_text.parse_prefix(text, len(start))
            except json_text.JsonTextError:
                end = -1
            if end == len(text) - 1 and text[end] == "}":
                self._last_read = last
                return pair_of((schema, read(found)))
        # The envelope's members may come in another order and form.
        envelope = _parsed(json_text.parse_text, text) if text.strip() else None
        if not isinstance(envelope, dict) or envelope.keys() != {"schema", "payload"}:
            raise DataException(_NOT_AN_ENVELOPE)
        schema, read = self._reader(repr(envelope["schema"]), envelope["schema"])
        return SchemaAndValue(schema, read(envelope["payload"]))

    def to_connect_many(
        self, topic: str, data: Sequence[bytes | None]
    ) -> tuple[list[Schema | None], list[object]]:
        if self._content_schema is not None:
            return super().to_connect_many(topic, data)
        schemas: list[Schema | None] = []
        values: list[object] = []
        known, after = self._expected()
        for each in data:
            if each is not None and known is not None:
                start, schema, read = known
                text = each.decode()
                if text.startswith(start):
                    found, end = json_text.scan(text, len(start))
                    if text[end:] == after:
                        schemas.append(schema)
                        values.append(read(found))
                        continue
            schema, value = self.to_connect_data(topic, [], each)
            schemas.append(schema)
            values.append(value)
            known, after = self._expected()
        return schemas, values

    def _expected(self) -> tuple[_Start | None, str]:
        """Return the text with which messages probably begin, and the text after their payload."""
        return (self._last_read, "}") if self._schemas_enabled else (self._plain, "")

    def _writer(self, schema: Schema | None) -> tuple[str, json_writer.Write]:
        known = self._writers.get(schema)
        if known is None:
            start = schema_text(schema, self._options) if self._schemas_enabled else ""
            known = (
                f"{_ENVELOPE_START}{start}{_BEFORE_PAYLOAD}",
                json_writer.writer_for(schema, self._options),
            )
            self._writers.put(schema, known)
        return known

    def _known_start(self, text: str) -> _Start | None:
        """Return the text up to the payload with its schema; None for an unusual form."""
        if not text.startswith(_ENVELOPE_START):
            return None
        try:
            found, end = json_text.parse_prefix(text, len(_ENVELOPE_START))
        except json_text.JsonTextError:
            return None
        if not text.startswith(_BEFORE_PAYLOAD, end):
            return None
        start = text[: end + len(_BEFORE_PAYLOAD)]
        return (start, *self._reader(start, found))

    def _reader(self, text: str, found: object) -> tuple[Schema | None, json_reader.Read]:
        known = self._readers.get(text)
        if known is None:
            schema = schema_from_json(found, self._options)
            known = (schema, json_reader.reader_for(schema, self._options))
            self._readers.put(text, known)
        return known


def _parsed(parse: Callable[[T], R], given: T) -> R:
    try:
        return parse(given)
    except json_text.JsonTextError as exc:
        raise _unreadable(exc) from exc


def _unreadable(error: json_text.JsonTextError) -> DataException:
    return DataException(
        f"Converting byte[] to Kafka Connect data failed due to serialization error: {error}"
    )


_TABLE = """
schemas.enable  BOOLEAN  HIGH  true
    [Schemas, 0, MEDIUM] Enable Schemas
    Include schemas within each of the serialized values and keys.
schemas.cache.size  INT  HIGH  1000
    [Schemas, 1, MEDIUM] Schema Cache Size
    The maximum number of schemas that can be cached in this converter instance.
schema.content  STRING  HIGH  ~
    [Schemas, 2, MEDIUM] Schema Content
    The schema of all messages read, as JSON. When set, messages hold the payload only and schemas
    in them are not expected; otherwise every message brings its own. Applies when 'schemas.enable'
    is true, and to sink connectors only.
decimal.format  STRING  LOW  BASE64
    [Serialization, 0, MEDIUM] Decimal Format
    The form in which decimals are written: 'BASE64' (default) or 'NUMERIC', in any case.
replace.null.with.default  BOOLEAN  LOW  true
    [Serialization, 1, MEDIUM] Replace null with default
    Whether null is replaced by the default value of a field that has one.
"""
_CONFIG_DEF = define_table(
    converter_config_def(),
    _TABLE,
    {DECIMAL_FORMAT_CONFIG: CaseInsensitiveValidString.one_of("BASE64", "NUMERIC")},
)
