"""Guesses schema and value of a text, as header values in Kafka are read.

Corresponds to the parser inside `org.apache.kafka.connect.data.Values`:

- `null`, `true`, `false` alone have these values; blanks around them are allowed;
- `[…]` and `{…}` are arrays and maps; strings inside are quoted;
- `yyyy-MM-dd`, `HH:mm:ss.SSSZ`, `yyyy-MM-ddTHH:mm:ss.SSSZ` are Date, Time, Timestamp, in UTC;
- numbers are the smallest integer type that holds them, else FLOAT32 (losing digits), FLOAT64
  if that is not finite, else Decimal;
- every other text, also one with a mistake, is a STRING: the whole text.

Unlike Kafka, text after a complete value makes the whole text a STRING instead of being dropped
(`8080:tcp`), dates are not read leniently (`2020-13-45` is a STRING), blanks inside quotes stay,
and values of one base type but different meaning have no common schema.
"""

import re
from collections.abc import Iterable
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any

from pyconnect_api.errors import DataException
from pyconnect_api.java_text import decimal_to_float32
from pyconnect_api.logical import DATE_SCHEMA, TIME_SCHEMA, TIMESTAMP_SCHEMA, decimal_schema
from pyconnect_api.schema import (
    BOOLEAN_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    NULL,
    STRING_SCHEMA,
    Schema,
    SchemaAndValue,
    Type,
)
from pyconnect_api.validation import INTEGER_RANGES, hashable_key

_BLANKS = "".join(map(chr, range(0x21)))
_TOKEN = re.compile(r'[:,{}\[\]"]|(?:\\.|\\$|[^:,{}\[\]"\\])+', re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
_TIMESTAMP = re.compile(rf"{_DATE.pattern}T{_TIME.pattern}")
_LITERALS = {
    "null": NULL,
    "true": SchemaAndValue(BOOLEAN_SCHEMA, True),
    "false": SchemaAndValue(BOOLEAN_SCHEMA, False),
}
_INTEGER_SCHEMAS = (INT8_SCHEMA, INT16_SCHEMA, INT32_SCHEMA, INT64_SCHEMA)
_WIDENING = (*INTEGER_RANGES, Type.FLOAT32, Type.FLOAT64)
_HIGHEST_EXPONENT = 2**31 - 1
_DIGITS_BEYOND_DOUBLE = 400
_TOKENS_OF_A_TIME = 5


def parse_string(text: str | None) -> SchemaAndValue:
    """Return the value of a text; NULL for None and for `null`."""
    if text is None:
        return NULL
    parser = _Parser(text)
    try:
        found = parser.value()
        if parser.only_blanks_left():
            return found
    except (DataException, RecursionError):
        # Not an error: a text that is not a value is a string.
        pass
    return SchemaAndValue(STRING_SCHEMA, text)


def decimal_from_text(text: str) -> Decimal | None:
    """Return the number, keeping its scale, or None if the text is not one."""
    match = _NUMBER.fullmatch(text)
    if match is None or abs(int(match.group(1) or 0)) > _HIGHEST_EXPONENT:
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


class _Parser:
    """Position among the tokens of one text; delimiters are tokens unless escaped."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._position = 0

    def value(self) -> SchemaAndValue:
        """Read one value; DataException if there is none."""
        token = self._next()
        match token:
            case '"':
                if self._position == 1:
                    raise DataException("A quoted text is a string, quotes included")
                return self._quoted()
            case "[":
                return self._array()
            case "{":
                return self._map()
        literal = _LITERALS.get(token)
        if literal is not None:
            return literal
        return self._temporal(token) or _number(token)

    def only_blanks_left(self) -> bool:
        return all(not token.strip(_BLANKS) for token in self._tokens[self._position :])

    def _next(self) -> str:
        """Return the next token that is not blank, blanks around it removed."""
        while self._position < len(self._tokens):
            token: str = self._tokens[self._position].strip(_BLANKS)
            self._position += 1
            if token:
                return token
        raise DataException("The text ends within a value")

    def _follows(self, expected: str) -> bool:
        """Consume the next token if it is the expected one."""
        start = self._position
        if self._next() == expected:
            return True
        self._position = start
        return False

    def _quoted(self) -> SchemaAndValue:
        start = self._position
        try:
            end = self._tokens.index('"', start)
        except ValueError:
            raise DataException("A quoted string has no end") from None
        self._position = end + 1
        content = "".join(self._tokens[start:end])
        return _temporal(content) or SchemaAndValue(STRING_SCHEMA, content)

    def _temporal(self, token: str) -> SchemaAndValue | None:
        # A time is split at its colons.
        rest = self._tokens[self._position : self._position + _TOKENS_OF_A_TIME - 1]
        found = _temporal("".join([token, *rest]).rstrip(_BLANKS))
        if found is not None:
            self._position += len(rest)
            return found
        return _temporal(token)

    def _array(self) -> SchemaAndValue:
        elements: list[SchemaAndValue] = []
        while not self._follows("]"):
            if self._follows(","):
                raise DataException("An array has an empty element")
            elements.append(self.value())
            if not self._follows(","):
                if self._follows("]"):
                    break
                raise DataException("Array elements missing ',' delimiter")
        element_schema = _common_schema(elements)
        values = _aligned(element_schema, elements)
        return SchemaAndValue(Schema(Type.ARRAY, value_schema=element_schema), values)

    def _map(self) -> SchemaAndValue:
        keys: list[SchemaAndValue] = []
        values: list[SchemaAndValue] = []
        while not self._follows("}"):
            if self._follows(","):
                raise DataException("A map has an empty entry")
            key = self.value()
            if key.value is None:
                raise DataException("A map has a null key")
            if not self._follows(":"):
                raise DataException("A map entry is missing ':'")
            keys.append(key)
            values.append(self.value())
            self._follows(",")
        key_schema = _common_schema(keys)
        # Kafka keeps the schema of the values only together with that of the keys.
        value_schema = None if key_schema is None else _common_schema(values)
        schema = Schema(Type.MAP, key_schema=key_schema, value_schema=value_schema)
        aligned_keys = map(hashable_key, _aligned(key_schema, keys))
        entries = zip(aligned_keys, _aligned(value_schema, values), strict=True)
        return SchemaAndValue(schema, dict(entries))


def _temporal(token: str) -> SchemaAndValue | None:
    text = token.replace("\\:", ":")
    try:
        if _DATE.fullmatch(text):
            return SchemaAndValue(DATE_SCHEMA, date.fromisoformat(text))
        if _TIME.fullmatch(text):
            return SchemaAndValue(TIME_SCHEMA, time.fromisoformat(text[:-1]))
        if _TIMESTAMP.fullmatch(text):
            return SchemaAndValue(TIMESTAMP_SCHEMA, datetime.fromisoformat(text))
    except ValueError:
        return None
    return None


def _number(token: str) -> SchemaAndValue:
    number = decimal_from_text(token) if token[0] != "." else None
    if number is None:
        raise DataException("Failed to parse embedded value")
    if number.adjusted() < _DIGITS_BEYOND_DOUBLE and number == (whole := int(number)):
        for schema in _INTEGER_SCHEMAS:
            lowest, highest = INTEGER_RANGES[schema.type]
            if lowest <= whole <= highest:
                return SchemaAndValue(schema, whole)
    scale = -int(number.as_tuple().exponent)
    if scale != 0:
        single = decimal_to_float32(number)
        if isfinite(single):
            return SchemaAndValue(FLOAT32_SCHEMA, single)
        double = float(number)
        if isfinite(double):
            return SchemaAndValue(FLOAT64_SCHEMA, double)
    return SchemaAndValue(decimal_schema(scale), number)


def _common_schema(elements: Iterable[SchemaAndValue]) -> Schema | None:
    """Return the schema that all elements fit, except nulls; None if there is none."""
    common: Schema | None = None
    for schema, _ in elements:
        if schema is None or schema == common:
            continue
        if common is None:
            common = schema
        elif all(each.type in _WIDENING and each.name is None for each in (common, schema)):
            common = max(common, schema, key=lambda each: _WIDENING.index(each.type))
        else:
            return None
    return common


def _aligned(schema: Schema | None, elements: Iterable[SchemaAndValue]) -> list[object]:
    """Return the values in the common type; as in Kafka, null beside a common schema is refused."""
    if schema is None:
        return [element.value for element in elements]
    # With a numeric common type all values are numbers.
    values: list[Any] = [element.value for element in elements]
    if None in values:
        raise DataException("Unable to convert a null value to a schema that requires a value")
    if schema.type is Type.FLOAT32:
        return [decimal_to_float32(Decimal(value)) for value in values]
    if schema.type is Type.FLOAT64:
        return [float(value) for value in values]
    return values
