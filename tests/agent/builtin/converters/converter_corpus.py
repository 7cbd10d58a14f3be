"""Reader of the corpus that ConverterCorpus.java prints, and its inputs with our converters.

Each line says what Apache's converter did with an input; `ours` does the same with ours.
"""

import json
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from struct import pack, unpack
from typing import Any

from pyconnect_agent.builtin.converters import base
from pyconnect_agent.builtin.converters import json as json_converter
from pyconnect_api import (
    DATE_NAME,
    TIME_NAME,
    Converter,
    DataException,
    Field,
    HeaderConverter,
    Schema,
    SchemaAndValue,
    Struct,
    Type,
)
from pyconnect_api.logical import decimal_of
from pyconnect_api.validation import hashable_key

JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"
SIMPLE_HEADER = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_RUNTIME = "org.apache.kafka.connect.converters."

CONVERTERS: dict[str, type[Converter | HeaderConverter]] = {
    JSON: json_converter.JsonConverter,
    STRING: base.StringConverter,
    SIMPLE_HEADER: base.SimpleHeaderConverter,
    _RUNTIME + "ByteArrayConverter": base.ByteArrayConverter,
    _RUNTIME + "BooleanConverter": base.BooleanConverter,
    _RUNTIME + "ShortConverter": base.ShortConverter,
    _RUNTIME + "IntegerConverter": base.IntegerConverter,
    _RUNTIME + "LongConverter": base.LongConverter,
    _RUNTIME + "FloatConverter": base.FloatConverter,
    _RUNTIME + "DoubleConverter": base.DoubleConverter,
}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The converter refused the input."""

    java_class: str
    message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One input and the outcome of Apache's converter.

    For writing, `given` is a SchemaAndValue and the outcome bytes or None; for reading it is the
    reverse.
    """

    kind: str
    java_class: str
    options: dict[str, str]
    given: Any
    outcome: Any

    def ours(self) -> Any:
        """Return the outcome of our converter for the input."""
        try:
            return _outcome(self)
        except DataException as error:
            return Failed(java_class=error.java_name, message=str(error))


def java_version(lines: Iterable[str]) -> int:
    """Return the feature version of the Java that printed the corpus."""
    for line in lines:
        return int(json.loads(line)["version"])
    raise AssertionError("the corpus is empty")


def cases(lines: Iterable[str]) -> Iterator[Case]:
    """Yield the cases of the corpus's lines."""
    for line in lines:
        described = json.loads(line)
        if described["kind"] != "java":
            yield _case(described)


def text_of(outcome: object) -> str:
    """Return a text that is the same only for equal outcomes, types and NaN included."""
    if isinstance(outcome, SchemaAndValue):
        return f"{_schema_text(outcome.schema)} {text_of(outcome.value)}"
    if isinstance(outcome, Struct):
        return f"{_schema_text(outcome.schema)}{text_of(list(outcome.stored_values()))}"
    if isinstance(outcome, dict):
        entries = sorted(f"{text_of(key)}:{text_of(value)}" for key, value in outcome.items())
        return f"{{{', '.join(entries)}}}"
    if isinstance(outcome, list | tuple):
        return f"[{', '.join(map(text_of, outcome))}]"
    return f"{type(outcome).__name__} {outcome!r}"


def java_class_text(message: str | None) -> str:
    """Return a message with the same names for Java's classes and ours."""
    text = (message or "").replace("Invalid Java object", "Invalid object")
    text = re.sub(r"class [\w.$\[;]+|\(was [^)]*\)", "class", text)
    return text.replace("expected BigDecimal", "expected Decimal")


def _outcome(case: Case) -> object:
    converter = CONVERTERS[case.java_class]()
    if isinstance(converter, Converter):
        converter.configure(case.options, False)
        if case.kind == "read":
            return converter.to_connect_data("topic", [], case.given)
        return converter.from_connect_data("topic", [], *case.given)
    converter.configure({**case.options, "converter.type": "header"})
    if case.kind == "read":
        return converter.to_connect_header("topic", "header", case.given)
    return converter.from_connect_header("topic", "header", *case.given)


def _case(described: dict[str, Any]) -> Case:
    failed = described.get("error")
    data = described.get("bytes")
    raw = None if data is None else b64decode(data)
    connect_data = _connect_data(described) if "value" in described else None
    reading = described["kind"] == "read"
    outcome = connect_data if reading else raw
    return Case(
        kind=described["kind"],
        java_class=described["class"],
        options=described["options"],
        given=raw if reading else connect_data,
        outcome=Failed(java_class=failed[0], message=failed[1]) if failed else outcome,
    )


def _connect_data(described: dict[str, Any]) -> SchemaAndValue:
    schema = schema_of(described["schema"])
    return SchemaAndValue(schema, value_of(schema, described["value"]))


def schema_of(described: dict[str, Any] | None) -> Schema | None:
    """Return the schema that a corpus line describes."""
    if described is None:
        return None
    parts: dict[str, Any] = {
        "optional": described["optional"],
        "name": described["name"],
        "version": described["version"],
        "doc": described["doc"],
        "parameters": described.get("parameters"),
        "key_schema": schema_of(described.get("keys")),
        "value_schema": schema_of(described.get("values")),
        "fields": [
            Field(name, index, schema_of(schema))  # type: ignore[arg-type]  # never None in a field
            for index, (name, schema) in enumerate(described.get("fields", []))
        ],
    }
    schema = Schema(Type[described["type"]], **parts)
    if "default" not in described:
        return schema
    return Schema(schema.type, default=value_of(schema, described["default"]), **parts)


def value_of(schema: Schema | None, described: dict[str, Any] | None) -> object:
    """Return the value that a corpus line describes, in the form the schema asks for."""
    if described is None:
        return None
    ((kind, content), *rest) = described.items()
    match kind:
        case "float":
            return unpack(">f", pack(">I", int(content, 16)))[0]
        case "double":
            return unpack(">d", pack(">Q", int(content, 16)))[0]
        case "bytes":
            return b64decode(content)
        case "unscaled":
            return decimal_of(content, rest[0][1])
        case "date":
            return _temporal(schema, content)
        case "list":
            element_schema = None if schema is None else schema.value_schema
            return [value_of(element_schema, element) for element in content]
        case "map":
            key_schema = None if schema is None else schema.key_schema
            value_schema = None if schema is None else schema.value_schema
            return {
                _key(value_of(key_schema, key)): value_of(value_schema, value)
                for key, value in content
            }
        case "struct":
            assert schema is not None
            pairs = zip(schema.fields, content, strict=True)
            return Struct.of_checked(schema, [value_of(f.schema, member) for f, member in pairs])
    return content


def _key(key: object) -> object:
    try:
        return hashable_key(key)
    except DataException:
        # Java allows maps as keys; no value of ours is equal to this.
        return ("a map as a key", repr(key))


def _temporal(schema: Schema | None, milliseconds: int) -> object:
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        # Java counts on beyond the year 9999; no value of ours is equal to this.
        return ("a moment Python does not know", milliseconds)
    if schema is not None and schema.name == DATE_NAME:
        return moment.date()
    if schema is not None and schema.name == TIME_NAME:
        return moment.time()
    return moment


def _schema_text(schema: Schema | None) -> str:
    if schema is None:
        return "no schema"
    parts = [
        str(schema),
        schema.optional,
        schema.version,
        schema.doc,
        None if schema.parameters is None else dict(schema.parameters),
        text_of(schema.default),
    ]
    if schema.type is Type.STRUCT:
        parts += [(field.name, _schema_text(field.schema)) for field in schema.fields]
    if schema.type is Type.MAP:
        parts.append(_schema_text(schema.key_schema))
    if schema.type in {Type.ARRAY, Type.MAP}:
        parts.append(_schema_text(schema.value_schema))
    return repr(parts)
