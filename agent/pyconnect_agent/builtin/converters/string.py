"""`org.apache.kafka.connect.storage.StringConverter`: any value as text.

Layer: builtin. Writes what `toString` of the value's Java class returns; the schema does not
matter. Differs from Apache's in that bytes are refused (Java writes an object's address), that
temporals are written in ISO form, and that an unknown `converter.encoding` is refused at once.
"""

import codecs
import re
from collections.abc import Mapping, Sequence
from types import NoneType

from pyconnect_agent.builtin.converters.base import DataConverter, converter_config_def
from pyconnect_api import (
    OPTIONAL_STRING_SCHEMA,
    ConfigDef,
    ConfigException,
    ConfigType,
    Importance,
    KafkaHeaders,
    Schema,
    SchemaAndValue,
    Width,
    java_text,
    pair_of,
)

ENCODING_CONFIG = "converter.encoding"

# Without a byte order mark Java takes big-endian, Python the machine's order; writing, Java puts
# a mark before UTF-16 and none before UTF-32.
_SURROGATE = re.compile("[\ud800-\udfff]")
_BIG_ENDIAN = {"utf-16": "utf-16-be", "utf-32": "utf-32-be"}


class StringConverter(DataConverter):
    """Writes text, reads OPTIONAL_STRING; what cannot be encoded or decoded is replaced."""

    def __init__(self) -> None:
        self._encoding = "utf-8"
        self._prefix = b""

    def config(self) -> ConfigDef:
        return converter_config_def().define(
            ENCODING_CONFIG,
            ConfigType.STRING,
            default="UTF-8",
            importance=Importance.HIGH,
            documentation="The name of the Java character set to use for encoding strings as "
            "byte arrays.",
            width=Width.MEDIUM,
            display_name="Encoding",
        )

    def _configured(self, options: Mapping[str, object]) -> None:
        name = str(options[ENCODING_CONFIG])
        try:
            encoding = codecs.lookup(name).name
        except LookupError as exc:
            raise ConfigException(
                f"Invalid value {name} for configuration {ENCODING_CONFIG}: no such character set"
            ) from exc
        self._encoding = _BIG_ENDIAN.get(encoding, encoding)
        self._prefix = codecs.BOM_UTF16_BE if encoding == "utf-16" else b""

    def from_connect_data(
        self, topic: str, headers: KafkaHeaders, schema: Schema | None, value: object
    ) -> bytes | None:
        if value is None:
            return None
        text = value if isinstance(value, str) else java_text.to_string(schema, value)
        if self._encoding == "utf-8":
            return text.encode("utf-8", "replace")
        return self._encoded(text)

    def from_connect_many(
        self, topic: str, schema: Schema | None, values: Sequence[object]
    ) -> list[bytes | None]:
        if self._encoding == "utf-8":
            kinds = set(map(type, values))
            if kinds <= {NoneType}:
                return [None] * len(values)
            if kinds == {str}:
                return [value.encode() for value in values]  # type: ignore[attr-defined]
        return super().from_connect_many(topic, schema, values)

    def to_connect_data(
        self, topic: str, headers: KafkaHeaders, data: bytes | None
    ) -> SchemaAndValue:
        if data is None:
            return _NULL_STRING
        try:
            text = data.decode() if self._encoding == "utf-8" else self._text(data)
        except UnicodeDecodeError:
            text = self._text(data)
        return pair_of((OPTIONAL_STRING_SCHEMA, text))

    def to_connect_many(
        self, topic: str, data: Sequence[bytes | None]
    ) -> tuple[list[Schema | None], list[object]]:
        absent = data.count(None)
        texts: Sequence[object] = data
        if absent < len(data):
            if absent or self._encoding != "utf-8":
                return super().to_connect_many(topic, data)
            texts = [each.decode() for each in data]  # type: ignore[union-attr]  # none is None
        return [OPTIONAL_STRING_SCHEMA] * len(data), list(texts)

    def _encoded(self, text: str) -> bytes:
        if self._encoding.startswith("utf-"):
            # Java puts U+FFFD for a lone surrogate, Python a question mark.
            text = _SURROGATE.sub("\ufffd", text)
        encoded = text.encode(self._encoding, "replace")
        return self._prefix + encoded if encoded else encoded

    def _text(self, data: bytes) -> str:
        encoding = self._encoding
        if encoding == "utf-16-be" and data[:2] in {codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE}:
            encoding = "utf-16"
        elif encoding == "utf-32-be" and data[:4] in {codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE}:
            encoding = "utf-32"
        return data.decode(encoding, "replace")


_NULL_STRING = SchemaAndValue(OPTIONAL_STRING_SCHEMA, None)
