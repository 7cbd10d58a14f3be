r"""JSON text as Jackson writes and reads it, for schemaless data.

Used for the internal topics' keys and values (JsonConverter with `schemas.enable=false`) and by the
JSON converter, which adds schemas.

Writing is equal to an Apache worker's, byte for byte: no whitespace; `"`, `\` and C0 controls
escaped, with upper-case hex digits; characters beyond U+FFFF and lone surrogates as `\uXXXX`
escapes; everything else raw UTF-8; floats in Java's form (see `java_text` for what Java 17 does
differently), NaN and infinities as strings.

| value                    | JSON                                       |
|--------------------------|--------------------------------------------|
| None, bool, str          | null, boolean, string                      |
| int                      | integer; DataException beyond 64 bits      |
| float                    | number, or `"NaN"`, `"±Infinity"`          |
| Decimal                  | number; DataException if it is not finite  |
| bytes                    | base64 string                              |
| list, tuple              | array                                      |
| dict with only str keys  | object, in the dict's order                |
| dict with any other key  | array of `[key,value]` pairs               |

Reading is `loads` (as Kafka's internal topics are read) or `parse` (strict, nothing lost).
UTF-16 and UTF-32, which Jackson detects, are not read.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from json import JSONDecoder
from json.encoder import encode_basestring
from typing import NoReturn

from pyconnect_api import DataException, java_text

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_NOT_PLAIN = re.compile("[\ud800-\udfff\U00010000-\U0010ffff]")
_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)")
_WHITESPACE_CHARACTERS = " \t\n\r"
_WHITESPACE = re.compile(f"[{_WHITESPACE_CHARACTERS}]*")
_MAYBE_LEADING_ZERO = re.compile(r"(?:^|[\[:,\s])-?0[0-9]")
_STRING_OR_LEADING_ZEROS = re.compile(
    r'("(?:[^"\\]|\\.)*")|(?<![0-9.eE+])(-?)0+(?=[0-9])', re.DOTALL
)
_MAYBE_BEYOND_64_BITS = re.compile(r"[0-9]{19}")
_BYTE_ORDER_MARK = "\ufeff"


class JsonTextError(ValueError):
    """The bytes are not the UTF-8 text of a JSON value."""


def dumps(value: object) -> bytes:
    """Return the JSON bytes of schemaless data; DataException if it has no JSON form."""
    return text_of(value).encode()


def text_of(value: object) -> str:
    """Return the JSON text of schemaless data; DataException if it has no JSON form."""
    try:
        return _written(value)
    except RecursionError as exc:
        raise DataException("The value is nested too deeply to be written as JSON") from exc


def string_text(value: str) -> str:
    """Return the JSON string, quotes included."""
    text = encode_basestring(value)
    if "\\u" in text:
        text = _ESCAPE.sub(_upper_case_hex, text)
    if not value.isascii():
        text = _NOT_PLAIN.sub(_surrogate_escapes, text)
    return text


def double_text(value: float) -> str:
    """Return the JSON text of a binary64 value; what is not finite becomes a string."""
    text = java_text.double_text(value)
    return text if text[-1].isdigit() else f'"{text}"'


def float_text(value: float) -> str:
    """Return the JSON text of a binary32 value; what is not finite becomes a string."""
    text = java_text.float_text(value)
    return text if text[-1].isdigit() else f'"{text}"'


def loads(data: bytes) -> object:
    """Return the value that an Apache worker reads from an internal topic's bytes.

    Whitespace alone is None; integers are cut to their low 64 bits; other numbers are float; of
    equal member names the last counts; text behind the first value is ignored. Raises
    JsonTextError, a ValueError.
    """
    text = decode(data)
    start = _after_whitespace(text, 0)
    if start == len(text):
        return None
    decoder = _WRAPPING if _MAYBE_BEYOND_64_BITS.search(text) else _PLAIN
    return _first_value(decoder, text, start)[0]


def parse(data: bytes) -> object:
    """Return the JSON value of the bytes with integers unbounded and other numbers as Decimal.

    Raises JsonTextError unless the bytes hold exactly one value.
    """
    return parse_text(decode(data))


def parse_text(text: str) -> object:
    """Return the JSON value of a decoded text, with the rules of `parse`."""
    try:
        value, end = _EXACT.raw_decode(text)
        if end == len(text):
            return value
    except (ValueError, InvalidOperation, RecursionError):
        pass  # `_first_value` decides below
    value, rest = _first_value(_EXACT, text, _after_whitespace(text, 0))
    if rest.strip(_WHITESPACE_CHARACTERS):
        raise JsonTextError("unexpected characters after the JSON value")
    return value


def parse_prefix(text: str, start: int) -> tuple[object, int]:
    """Return the JSON value that begins at `start`, and the position after it.

    Raises JsonTextError also for numbers with leading zeros, which `parse_text` can read, unless
    the value itself is one: then only its first zero is read.
    """
    try:
        return _EXACT.raw_decode(text, start)
    except (ValueError, InvalidOperation, RecursionError) as exc:
        raise JsonTextError(f"not a JSON value: {exc}") from exc


def decode(data: bytes) -> str:
    """Return the text of UTF-8 bytes without a byte order mark; raises JsonTextError."""
    try:
        return data.decode().removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError as exc:
        raise JsonTextError(f"invalid UTF-8 at byte {exc.start}") from exc


def _after_whitespace(text: str, start: int) -> int:
    match = _WHITESPACE.match(text, start)
    return start if match is None else match.end()


def _first_value(decoder: JSONDecoder, text: str, start: int) -> tuple[object, str]:
    """Return the first value and the text after it."""
    try:
        value, end = decoder.raw_decode(text, start)
        if not text[end : end + 1].isdigit():
            return value, text[end:]
    except (ValueError, InvalidOperation, RecursionError) as exc:
        if not _MAYBE_LEADING_ZERO.search(text):
            raise JsonTextError(f"not a JSON value: {exc}") from exc
    # Kafka's reader allows leading zeros, Python's does not.
    plain = _STRING_OR_LEADING_ZEROS.sub(r"\1\2", text[start:])
    try:
        value, end = decoder.raw_decode(plain)
    except (ValueError, InvalidOperation, RecursionError) as exc:
        raise JsonTextError(f"not a JSON value: {exc}") from exc
    return value, plain[end:]


def _refused_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _wrapped(digits: str) -> int:
    return (int(digits) - _LOWEST & 0xFFFF_FFFF_FFFF_FFFF) + _LOWEST


_PLAIN = JSONDecoder(parse_constant=_refused_constant)
_WRAPPING = JSONDecoder(parse_constant=_refused_constant, parse_int=_wrapped)
_EXACT = JSONDecoder(parse_constant=_refused_constant, parse_float=Decimal)

scan: Callable[[str, int], tuple[object, int]] = _EXACT.scan_once  # type: ignore[attr-defined]  # what `raw_decode` itself calls
"""As `parse_prefix`, but quicker, for many texts; raises the parser's own errors."""


def _upper_case_hex(escape: re.Match[str]) -> str:
    found = escape.group()
    return f"\\u{found[2:].upper()}" if found[1] == "u" else found


def _surrogate_escapes(character: re.Match[str]) -> str:
    units = character.group().encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def _written(value: object) -> str:
    write = _WRITERS.get(value.__class__)
    if write is not None:
        return write(value)
    for known, write_known in _WRITERS.items():
        if isinstance(value, known):
            return write_known(value)
    if isinstance(value, Mapping):
        return _map_text(value)
    raise DataException(
        f"Class {type(value).__qualname__} does not have corresponding schema type."
    )


def _integer_text(value: int) -> str:
    if not _LOWEST <= value <= _HIGHEST:
        raise DataException("An integer does not fit into 64 bits")
    return str(value)


def _decimal_text(value: Decimal) -> str:
    if not value.is_finite():
        raise DataException("A decimal is not finite, for which JSON has no number")
    return java_text.decimal_text(value)


def _bytes_text(value: bytes | bytearray | memoryview) -> str:
    return f'"{java_text.base64_text(value)}"'


def _array_text(value: list[object] | tuple[object, ...]) -> str:
    return f"[{','.join([_written(element) for element in value])}]"


def _map_text(value: Mapping[object, object]) -> str:
    members = []
    for key, member in value.items():
        if not isinstance(key, str):
            pairs = [f"[{_written(k)},{_written(v)}]" for k, v in value.items()]
            return f"[{','.join(pairs)}]"
        members.append(f"{string_text(key)}:{_written(member)}")
    return f"{{{','.join(members)}}}"


_WRITERS: dict[type, Callable[..., str]] = {
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    str: string_text,
    int: _integer_text,
    float: double_text,
    Decimal: _decimal_text,
    bytes: _bytes_text,
    bytearray: _bytes_text,
    memoryview: _bytes_text,
    list: _array_text,
    tuple: _array_text,
    dict: _map_text,
}
