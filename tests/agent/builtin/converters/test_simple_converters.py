"""Converters of strings, bytes, numbers and header texts."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.builtin.converters.base import (
    BooleanConverter,
    ByteArrayConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    NumberConverter,
    RecentlyUsed,
    ShortConverter,
    SimpleHeaderConverter,
    StringConverter,
)
from pyconnect_api import (
    BYTES_SCHEMA,
    INT8_SCHEMA,
    INT32_SCHEMA,
    NULL,
    OPTIONAL_BYTES_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    ConfigException,
    DataException,
    SchemaAndValue,
)
from tests.support.cases import cases

NUMBERS: list[tuple[type[NumberConverter], str]] = [
    (ShortConverter, ">h"),
    (IntegerConverter, ">i"),
    (LongConverter, ">q"),
    (FloatConverter, ">f"),
    (DoubleConverter, ">d"),
]


def strings(encoding: str | None = None) -> StringConverter:
    made = StringConverter()
    made.configure({} if encoding is None else {"converter.encoding": encoding}, True)
    return made


@given(st.text())
def test_strings_survive_the_round_trip(text: str) -> None:
    """Strings are UTF-8 unless the encoding is configured, and come back equal."""
    data = strings().from_connect_data("t", [], STRING_SCHEMA, text)
    assert data == text.encode()
    assert strings().to_connect_data("t", [], data) == SchemaAndValue(OPTIONAL_STRING_SCHEMA, text)


@cases(
    "encoding, text, data",
    ("UTF-16", "aü", b"\xfe\xff\x00a\x00\xfc"), ("UTF-16", "", b""), ("UTF-16LE", "a", b"a\x00"),
    ("UTF-32", "a", b"\x00\x00\x00a"), ("ISO-8859-1", "ü", b"\xfc"), ("windows-1252", "€", b"\x80"),
)  # fmt: skip
def test_other_encodings_are_javas(encoding: str, text: str, data: bytes) -> None:
    """Byte order and byte order mark are those of a Java worker."""
    made = strings(encoding)
    assert made.from_connect_data("t", [], None, text) == data
    assert made.to_connect_data("t", [], data).value == text


def test_only_an_unknown_encoding_is_refused() -> None:
    """Characters that cannot be encoded or decoded are replaced, as in Java."""
    assert strings("US-ASCII").from_connect_data("t", [], None, "aü") == b"a?"
    assert strings().from_connect_data("t", [], None, "a\ud800") == b"a?"
    assert strings().to_connect_data("t", [], b"a\xff").value == "a\ufffd"
    assert strings("UTF-16").to_connect_data("t", [], b"\xff\xfea\x00").value == "a"
    with pytest.raises(ConfigException, match=r"Invalid value klingon.*converter\.encoding"):
        strings("klingon")


def test_strings_have_java_text_for_headers_too() -> None:
    """None stays a Kafka null and bytes are refused; one class serves keys, values and headers."""
    made = strings()
    assert made.from_connect_data("t", [], None, None) is None
    assert made.from_connect_data("t", [], INT32_SCHEMA, 5) == b"5"
    expected = b"{a=[1.0, null, true]}"
    assert made.from_connect_data("t", [], None, {"a": [1.0, None, True]}) == expected
    with pytest.raises(DataException, match="Bytes have no text form"):
        made.from_connect_data("t", [], BYTES_SCHEMA, b"x")
    made = StringConverter()
    made.configure({"converter.type": "header"})
    assert made.from_connect_header("t", "h", STRING_SCHEMA, "x") == b"x"
    assert made.to_connect_header("t", "h", None) == SchemaAndValue(OPTIONAL_STRING_SCHEMA, None)
    with pytest.raises(ConfigException):
        made.configure({"converter.type": "footer"})


def test_bytes_pass_as_they_are() -> None:
    """Only bytes pass, and they pass unchanged."""
    made = ByteArrayConverter()
    assert made.from_connect_data("t", [], BYTES_SCHEMA, b"\x00\xff") == b"\x00\xff"
    assert made.from_connect_data("t", [], None, bytearray(b"x")) == b"x"
    assert made.from_connect_data("t", [], BYTES_SCHEMA, None) is None
    assert made.to_connect_data("t", [], b"x") == SchemaAndValue(OPTIONAL_BYTES_SCHEMA, b"x")
    with pytest.raises(DataException, match="Invalid schema type for ByteArrayConverter: STRING"):
        made.from_connect_data("t", [], STRING_SCHEMA, b"x")
    with pytest.raises(DataException, match="is not compatible with objects of type"):
        made.from_connect_data("t", [], None, "x")


@pytest.mark.parametrize(("converter", "layout"), NUMBERS)
@given(data=st.binary(min_size=8, max_size=8))
def test_numbers_are_read_back(converter: type[NumberConverter], layout: str, data: bytes) -> None:
    """Numbers are big-endian and of fixed size, as in Java, and are read back."""
    made = converter()
    given_bytes = data[: struct.calcsize(layout)]
    read = made.to_connect_data("t", [], given_bytes)
    if read.value == read.value:
        assert made.from_connect_data("t", [], read.schema, read.value) == given_bytes
        assert struct.pack(layout, read.value) == given_bytes


@pytest.mark.parametrize(("converter", "layout"), NUMBERS)
def test_numbers_that_do_not_fit_are_refused(converter: type[NumberConverter], layout: str) -> None:
    """The converter neither widens nor cuts a number."""
    made = converter()
    with pytest.raises(DataException, match=f"is not {struct.calcsize(layout)}$"):
        made.to_connect_data("t", [], b"123")
    for schema, value in [(None, True), (None, "1"), (INT8_SCHEMA, 1)]:
        with pytest.raises(DataException, match="Failed to serialize to"):
            made.from_connect_data("t", [], schema, value)
    if converter is not DoubleConverter:
        beyond = 1e300 if converter is FloatConverter else 2**64
        with pytest.raises(DataException, match="out of range"):
            made.from_connect_data("t", [], None, beyond)
    assert made.from_connect_data("t", [], None, None) is None
    assert made.to_connect_data("t", [], None).value is None


def test_booleans_are_one_byte() -> None:
    """A boolean is a byte of 1 or 0, and no other byte is read."""
    made = BooleanConverter()
    for value, data in [(True, b"\x01"), (False, b"\x00"), (None, None)]:
        assert made.from_connect_data("t", [], None, value) == data
        assert made.to_connect_data("t", [], data).value is value
    with pytest.raises(DataException, match="Unexpected byte"):
        made.to_connect_data("t", [], b"\x02")
    with pytest.raises(DataException, match="is not 1"):
        made.to_connect_data("t", [], b"")
    with pytest.raises(DataException, match="is not compatible"):
        made.from_connect_data("t", [], None, 1)


def test_header_texts_lose_their_types() -> None:
    """Digits are read as a number, and bytes that are not UTF-8 stay bytes, unlike at Apache."""
    made = SimpleHeaderConverter()
    assert made.from_connect_header("t", "h", STRING_SCHEMA, "12") == b"12"
    assert made.to_connect_header("t", "h", b"12") == SchemaAndValue(INT8_SCHEMA, 12)
    assert made.from_connect_header("t", "h", None, None) is None
    assert made.to_connect_header("t", "h", None) == NULL
    read = SimpleHeaderConverter().to_connect_header("t", "h", b"\xff\x00")
    assert read == SchemaAndValue(BYTES_SCHEMA, b"\xff\x00")


def test_a_bounded_map_drops_the_least_recently_used_entry() -> None:
    """The least recently used entry is dropped, not the oldest one."""
    recent: RecentlyUsed[str, int] = RecentlyUsed(2)
    recent.put("a", 1)
    recent.put("b", 2)
    assert recent.get("a") == 1
    recent.put("c", 3)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]
    assert len(recent) == 2
