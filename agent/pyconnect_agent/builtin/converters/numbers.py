"""Converters of single numbers and booleans to big-endian bytes.

Layer: builtin. Correspond to `ShortConverter`, `IntegerConverter`, `LongConverter`,
`FloatConverter`, `DoubleConverter` and `BooleanConverter` in `org.apache.kafka.connect.converters`.
None is written as a Kafka null and read back as None. Nothing is widened: an INT16 is refused by
the LongConverter, as a Java `Short` is.
"""

from struct import Struct as BinaryLayout
from struct import error as BinaryLayoutError  # noqa: N812  # the library's lower-case class
from typing import ClassVar

from pyconnect_agent.builtin.converters.base import DataConverter
from pyconnect_api import (
    OPTIONAL_BOOLEAN_SCHEMA,
    OPTIONAL_FLOAT32_SCHEMA,
    OPTIONAL_FLOAT64_SCHEMA,
    OPTIONAL_INT16_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    DataException,
    KafkaHeaders,
    Schema,
    SchemaAndValue,
    Type,
)


class NumberConverter(DataConverter):
    """One fixed layout of `struct` for one schema type; subclasses name both."""

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
