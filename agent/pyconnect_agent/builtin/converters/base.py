"""The base of the shipped converters, and the converters of texts, bytes, numbers and headers.

Corresponds to `ConverterConfig`, to the way Apache's converters implement both `Converter` and
`HeaderConverter`, and to `org.apache.kafka.connect.storage` and `.converters`.

- StringConverter writes what `toString` of the value's Java class returns; the schema does not
  matter. Differs from Apache's in that bytes are refused (Java writes an object's address), that
  temporals are written in ISO form, and that an unknown `converter.encoding` is refused at once.
- Numbers and booleans are big-endian bytes. None is written as a Kafka null and read back as None.
  Nothing is widened: an INT16 is refused by the LongConverter, as a Java `Short` is.
- SimpleHeaderConverter, the worker's default for headers, writes the text form of `values` and
  reads by guessing a schema from the text, so types do not survive: the string `"12"` comes back as
  the INT8 12. Unlike Apache's, malformed UTF-8 is kept as BYTES instead of being damaged.
"""

import codecs
import logging
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from struct import Struct as BinaryLayout
from struct import error as BinaryLayoutError  # noqa: N812  # the library's lower-case class
from types import NoneType
from typing import ClassVar, Generic, TypeVar

from pyconnect_api import (
    BYTES_SCHEMA,
    CONVERTER_TYPE_CONFIG,
    NULL,
    OPTIONAL_BOOLEAN_SCHEMA,
    OPTIONAL_BYTES_SCHEMA,
    OPTIONAL_FLOAT32_SCHEMA,
    OPTIONAL_FLOAT64_SCHEMA,
    OPTIONAL_INT16_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    ConfigDef,
    ConfigException,
    ConfigType,
    Converter,
    DataException,
    HeaderConverter,
    Importance,
    KafkaHeaders,
    Schema,
    SchemaAndValue,
    Type,
    ValidString,
    Width,
    java_text,
    pair_of,
    values,
)
from pyconnect_api.configdef import define_table


def converter_config_def() -> ConfigDef:
    """Return a new definition of the settings that every converter has."""
    return define_table(
        ConfigDef(),
        f"{CONVERTER_TYPE_CONFIG}  STRING  LOW  !\n    How this converter will be used.",
        {CONVERTER_TYPE_CONFIG: ValidString.one_of("key", "value", "header")},
    )


class DataConverter(Converter, HeaderConverter):
    """A converter of keys, values and headers, which treats all three alike."""

    def configure(self, configs: Mapping[str, object], is_key: bool | None = None) -> None:
        """Take the options; without `is_key` they must hold `converter.type`.

        Raises ConfigException for options that `config()` refuses.
        """
        options = dict(configs)
        if is_key is not None:
            options[CONVERTER_TYPE_CONFIG] = "key" if is_key else "value"
        self.configured(self.config().parse(options))

    def configured(self, options: Mapping[str, object]) -> None:
        """Take the parsed options."""

    def from_connect_header(
        self, topic: str, header_key: str, schema: Schema | None, value: object
    ) -> bytes | None:
        return self.from_connect_data(topic, [], schema, value)

    def to_connect_header(self, topic: str, header_key: str, data: bytes | None) -> SchemaAndValue:
        return self.to_connect_data(topic, [], data)

    def config(self) -> ConfigDef:
        return converter_config_def()

    def close(self) -> None:
        """Do nothing: the converter holds no resource."""


class ByteArrayConverter(DataConverter):
    """Writes bytes-like values, reads OPTIONAL_BYTES."""

    def from_connect_data(
        self, topic: str, headers: KafkaHeaders, schema: Schema | None, value: object
    ) -> bytes | None:
        if schema is not None and schema.type is not Type.BYTES:
            raise DataException(f"Invalid schema type for ByteArrayConverter: {schema.type}")
        if value is None or value.__class__ is bytes:
            return value
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        raise DataException(
            "ByteArrayConverter is not compatible with objects of type "
            f"class {type(value).__qualname__}"
        )

    def from_connect_many(
        self, topic: str, schema: Schema | None, values: Sequence[object]
    ) -> list[bytes | None]:
        if set(map(type, values)) <= {bytes, NoneType} and values:
            self.from_connect_data(topic, [], schema, None)
            return list(values)  # type: ignore[arg-type]  # looked at
        return super().from_connect_many(topic, schema, values)

    def to_connect_many(
        self, topic: str, data: Sequence[bytes | None]
    ) -> tuple[list[Schema | None], list[object]]:
        return [OPTIONAL_BYTES_SCHEMA] * len(data), list(data)

    def to_connect_data(
        self, topic: str, headers: KafkaHeaders, data: bytes | None
    ) -> SchemaAndValue:
        return pair_of((OPTIONAL_BYTES_SCHEMA, data))


ENCODING_CONFIG = "converter.encoding"

# Without a byte order mark Java takes big-endian, and Python the machine's order. Java writes a
# mark before UTF-16 and none before UTF-32.
_SURROGATE = re.compile("[\ud800-\udfff]")
_BIG_ENDIAN = {"utf-16": "utf-16-be", "utf-32": "utf-32-be"}


class StringConverter(DataConverter):
    """Writes text, reads OPTIONAL_STRING; characters that cannot be converted are replaced."""

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

    def configured(self, options: Mapping[str, object]) -> None:
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
        if self._encoding.startswith("utf-"):
            # Java writes U+FFFD for a lone surrogate, and Python a question mark.
            text = _SURROGATE.sub("\ufffd", text)
        encoded = text.encode(self._encoding, "replace")
        return self._prefix + encoded if encoded else encoded

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

    def _text(self, data: bytes) -> str:
        encoding = self._encoding
        if encoding == "utf-16-be" and data[:2] in {codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE}:
            encoding = "utf-16"
        elif encoding == "utf-32-be" and data[:4] in {codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE}:
            encoding = "utf-32"
        return data.decode(encoding, "replace")


_NULL_STRING = SchemaAndValue(OPTIONAL_STRING_SCHEMA, None)


class NumberConverter(DataConverter):
    """A converter of one schema type in a fixed layout of `struct`; subclasses name both."""

    type_name: ClassVar[str]
    deserializer_name: ClassVar[str]
    layout: ClassVar[BinaryLayout]
    number_class: ClassVar[type]
    read_schema: ClassVar[Schema]

    def __init_subclass__(cls, *, layout: str, schema: Schema) -> None:
        name = cls.__name__.removesuffix("Converter")
        cls.type_name, cls.deserializer_name = name.lower(), f"{name}Deserializer"
        cls.layout, cls.read_schema = BinaryLayout(layout), schema
        cls.number_class = float if layout in {">f", ">d"} else int

    def from_connect_data(
        self, topic: str, headers: KafkaHeaders, schema: Schema | None, value: object
    ) -> bytes | None:
        if value is None:
            return None
        if schema is not None and schema.type is not self.read_schema.type:
            raise DataException(f"Failed to serialize to {self.type_name} (was {schema.type}): ")
        if value.__class__ is not self.number_class:
            raise DataException(
                f"Failed to serialize to {self.type_name} (was class {type(value).__qualname__}): "
            )
        try:
            return self.layout.pack(value)
        except (BinaryLayoutError, OverflowError) as exc:
            raise DataException(
                f"Failed to serialize to {self.type_name}: the value is out of range"
            ) from exc

    def to_connect_data(
        self, topic: str, headers: KafkaHeaders, data: bytes | None
    ) -> SchemaAndValue:
        if data is None:
            return SchemaAndValue(self.read_schema, None)
        if len(data) != self.layout.size:
            raise DataException(
                f"Failed to deserialize {self.type_name}: Size of data received by "
                f"{self.deserializer_name} is not {self.layout.size}"
            )
        return SchemaAndValue(self.read_schema, self.layout.unpack(data)[0])


class ShortConverter(NumberConverter, layout=">h", schema=OPTIONAL_INT16_SCHEMA):
    """INT16 as 2 bytes."""


class IntegerConverter(NumberConverter, layout=">i", schema=OPTIONAL_INT32_SCHEMA):
    """INT32 as 4 bytes."""


class LongConverter(NumberConverter, layout=">q", schema=OPTIONAL_INT64_SCHEMA):
    """INT64 as 8 bytes."""


class FloatConverter(NumberConverter, layout=">f", schema=OPTIONAL_FLOAT32_SCHEMA):
    """FLOAT32 as 4 bytes of IEEE 754."""


class DoubleConverter(NumberConverter, layout=">d", schema=OPTIONAL_FLOAT64_SCHEMA):
    """FLOAT64 as 8 bytes of IEEE 754."""


class BooleanConverter(DataConverter):
    """BOOLEAN as one byte, 1 or 0."""

    def from_connect_data(
        self, topic: str, headers: KafkaHeaders, schema: Schema | None, value: object
    ) -> bytes | None:
        if schema is not None and schema.type is not Type.BOOLEAN:
            raise DataException(f"Invalid schema type for BooleanConverter: {schema.type}")
        if value is None:
            return None
        if not isinstance(value, bool):
            raise DataException(
                "BooleanConverter is not compatible with objects of type "
                f"class {type(value).__qualname__}"
            )
        return b"\x01" if value else b"\x00"

    def to_connect_data(
        self, topic: str, headers: KafkaHeaders, data: bytes | None
    ) -> SchemaAndValue:
        if data is None:
            return SchemaAndValue(OPTIONAL_BOOLEAN_SCHEMA, None)
        if len(data) != 1:
            raise DataException(
                "Failed to deserialize boolean: Size of data received by BooleanDeserializer is "
                "not 1"
            )
        if data[0] > 1:
            raise DataException(
                "Failed to deserialize boolean: Unexpected byte received by BooleanDeserializer: "
                f"{data[0]}"
            )
        return SchemaAndValue(OPTIONAL_BOOLEAN_SCHEMA, data == b"\x01")


_logger = logging.getLogger(__name__)


class SimpleHeaderConverter(HeaderConverter):
    """The converter of headers; it has no options."""

    def configure(self, configs: Mapping[str, object]) -> None:
        """Take no options."""

    def config(self) -> ConfigDef:
        return ConfigDef()

    def from_connect_header(
        self, topic: str, header_key: str, schema: Schema | None, value: object
    ) -> bytes | None:
        text = values.convert_to_string(schema, value)
        # A lone surrogate becomes `?`, as in Java.
        return None if text is None else text.encode("utf-8", "replace")

    def to_connect_header(self, topic: str, header_key: str, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return NULL
        try:
            text = data.decode()
        except UnicodeDecodeError:
            _logger.debug("header value is not UTF-8, kept as bytes")
            return SchemaAndValue(BYTES_SCHEMA, data)
        return values.parse_string(text)

    def close(self) -> None:
        """Do nothing: the converter holds no resource."""


K = TypeVar("K")
V = TypeVar("V")


class RecentlyUsed(Generic[K, V]):
    """The `size` entries that were used last; none if `size` is not positive."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        if self._size > 0:
            self._entries[key] = value
            self._entries.move_to_end(key)
            if len(self._entries) > self._size:
                self._entries.popitem(last=False)
