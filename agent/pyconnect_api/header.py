"""Headers of a record: an ordered list of keys with a schema and a value each.

Corresponds to `org.apache.kafka.connect.header.ConnectHeaders` and `Header`. Keys may repeat.
A `ConnectHeaders` belongs to one record and one thread; share a `duplicate()` of it.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import NamedTuple, Self

from pyconnect_api import logical
from pyconnect_api.errors import DataException
from pyconnect_api.schema import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_BYTES_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    StructValue,
    Type,
)
from pyconnect_api.validation import fits_class

KafkaHeaders = list[tuple[str, bytes | None]]
"""Headers as in Kafka: key and raw bytes, in order."""


class Header(NamedTuple):
    """One header; schema None means a schemaless value."""

    key: str
    schema: Schema | None
    value: object

    def with_key(self, key: str) -> "Header":
        """Return this header under another key."""
        return Header(key, self.schema, self.value)


class ConnectHeaders:
    """Ordered, mutable collection of headers; every mutator returns the collection itself.

    `add_string` to `add_timestamp` append a header with the schema of that type: a byte is INT8, a
    short INT16, an int INT32, a long INT64, a float FLOAT32, a double FLOAT64. They raise
    DataException for a value that does not fit, such as a number beyond the width.
    """

    __slots__ = ("_headers",)

    def __init__(self, headers: "Iterable[Header] | None" = None) -> None:
        """Copy the given headers; the header objects themselves are shared."""
        self._headers: list[Header] = [] if headers is None else list(headers)

    def __len__(self) -> int:
        return len(self._headers)

    def __iter__(self) -> Iterator[Header]:
        return iter(self._headers)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConnectHeaders):
            return NotImplemented
        return self._headers == other._headers

    __hash__ = None  # type: ignore[assignment]  # mutable, so it must not be a key

    def __repr__(self) -> str:
        return f"ConnectHeaders({self._headers!r})"

    def add(self, key: str, value: object, schema: Schema | None = None) -> Self:
        """Append a header; DataException if the value does not fit the schema's type."""
        if schema is not None:
            if value is None:
                if not schema.optional:
                    raise DataException(
                        f"A null value requires an optional schema but was {schema}"
                    )
            elif not fits_class(schema, value):
                raise DataException(
                    f"The value of class {type(value).__qualname__} is not compatible with the "
                    f"schema {schema}"
                )
        return self.add_header(Header(key, schema, value))

    def add_header(self, header: Header) -> Self:
        """Append a header without checks."""
        if header.key is None:
            raise DataException("Header key cannot be null")
        self._headers.append(header)
        return self

    def add_string(self, key: str, value: str | None) -> Self:
        return self.add(key, value, OPTIONAL_STRING_SCHEMA if value is None else STRING_SCHEMA)

    def add_bytes(self, key: str, value: bytes | None) -> Self:
        return self.add(key, value, OPTIONAL_BYTES_SCHEMA if value is None else BYTES_SCHEMA)

    def add_boolean(self, key: str, value: bool) -> Self:
        return self.add(key, value, BOOLEAN_SCHEMA)

    def add_byte(self, key: str, value: int) -> Self:
        return self.add(key, value, INT8_SCHEMA)

    def add_short(self, key: str, value: int) -> Self:
        return self.add(key, value, INT16_SCHEMA)

    def add_int(self, key: str, value: int) -> Self:
        return self.add(key, value, INT32_SCHEMA)

    def add_long(self, key: str, value: int) -> Self:
        return self.add(key, value, INT64_SCHEMA)

    def add_float(self, key: str, value: float) -> Self:
        return self.add(key, value, FLOAT32_SCHEMA)

    def add_double(self, key: str, value: float) -> Self:
        return self.add(key, value, FLOAT64_SCHEMA)

    def add_list(self, key: str, value: "list[object] | None", schema: Schema) -> Self:
        return self._add_complex(key, value, schema, Type.ARRAY)

    def add_map(self, key: str, value: "dict[object, object] | None", schema: Schema) -> Self:
        return self._add_complex(key, value, schema, Type.MAP)

    def add_struct(self, key: str, value: StructValue | None) -> Self:
        if value is None:
            return self.add(key, None)
        return self._add_complex(key, value, value.schema, Type.STRUCT)

    def add_decimal(self, key: str, value: Decimal | None) -> Self:
        """Append a Decimal header whose schema has the scale of the value."""
        if value is None:
            return self.add(key, None)
        return self.add(key, value, logical.decimal_schema(logical.decimal_scale(value)))

    def add_date(self, key: str, value: date) -> Self:
        return self.add(key, value, logical.DATE_SCHEMA)

    def add_time(self, key: str, value: time) -> Self:
        return self.add(key, value, logical.TIME_SCHEMA)

    def add_timestamp(self, key: str, value: datetime) -> Self:
        return self.add(key, value, logical.TIMESTAMP_SCHEMA)

    def all_with_name(self, key: str) -> Iterator[Header]:
        """Iterate over the headers of that key, in order."""
        return (header for header in self._headers if header.key == key)

    def last_with_name(self, key: str) -> Header | None:
        """Return the newest header of that key."""
        for header in reversed(self._headers):
            if header.key == key:
                return header
        return None

    def remove(self, key: str) -> Self:
        """Remove every header of that key."""
        self._headers = [header for header in self._headers if header.key != key]
        return self

    def retain_latest(self, key: str | None = None) -> Self:
        """Keep only the newest header of that key, or of each key."""
        seen: set[str] = set()
        kept: list[Header] = []
        for header in reversed(self._headers):
            if key is None or header.key == key:
                if header.key in seen:
                    continue
                seen.add(header.key)
            kept.append(header)
        kept.reverse()
        self._headers = kept
        return self

    def clear(self) -> Self:
        """Remove all headers."""
        self._headers.clear()
        return self

    def duplicate(self) -> "ConnectHeaders":
        """Return another collection of the same header objects."""
        return ConnectHeaders(self._headers)

    def apply(self, function: Callable[[Header], Header | None], key: str | None = None) -> Self:
        """Replace each header (of that key) by the function's result; None removes it."""
        changed: list[Header] = []
        for header in self._headers:
            result = function(header) if key is None or header.key == key else header
            if result is not None:
                changed.append(result)
        self._headers = changed
        return self

    def _add_complex(self, key: str, value: object, schema: Schema, expected: Type) -> Self:
        if value is None:
            return self.add(key, None)
        if schema.type is not expected:
            raise DataException(f"Expecting {expected} but instead found {schema.type}")
        return self.add(key, value, schema)
