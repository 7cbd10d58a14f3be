"""JSON text as Jackson writes and reads it."""

import json
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.java_text.json_text import JsonTextError, dumps, loads, parse
from pyconnect_api import DataException
from tests.support.cases import cases

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@cases(
    "value, expected",
    ('"\\\b\t\n\f\r/', r'"\"\\\b\t\n\f\r/"'),
    ("\x00\x1f\x1b", r'"\u0000\u001F\u001B"'),
    ("\\u001f", r'"\\u001f"'),
    ("\x7f\x80ü€\u2028<&>'", '"\x7f\x80ü€\u2028<&>\'"'),
    ("😀", r'"\uD83D\uDE00"'),
    ("\ud800", r'"\uD800"'),
    ([1.0, 1e7, 1e-5, 0.001, -0.0], "[1.0,1.0E7,1.0E-5,0.001,-0.0]"),
    ([float("nan"), float("-inf")], '["NaN","-Infinity"]'),
    (b"ab?", '"YWI/"'),
    (["c", {"b": 1, "a": None}], '["c",{"b":1,"a":null}]'),
    ({"a": True, 1: False}, '[["a",true],[1,false]]'),
    ({}, "{}"),
    (None, "null"),
)
def test_the_bytes_are_jacksons(value: object, expected: str) -> None:
    """Offset keys are compared by bytes, so escapes, digits and order must be Jackson's."""
    assert dumps(value) == expected.encode()


@cases("value", 2**63, -(2**63) - 1, Decimal("NaN"), object(), [{"a": {1}}])
def test_values_without_a_json_form_are_refused(value: object) -> None:
    """Values that Kafka's JSON cannot have are refused."""
    with pytest.raises(DataException):
        dumps(value)


def test_endless_nesting_is_refused() -> None:
    """A list within itself raises an error and does not crash."""
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(DataException, match="nested too deeply"):
        dumps(endless)
    with pytest.raises(JsonTextError, match="not a JSON value"):
        loads(b"[" * 100_000)


@given(JSON_VALUES)
def test_written_values_are_read_back(value: object) -> None:
    """Written JSON has the same value for `loads` and for Python's reader."""
    assert loads(dumps(value)) == value
    assert json.loads(dumps(value)) == value


@cases(
    "data, expected",
    (b"", None),
    (b" \t\r\n", None),
    (b"null", None),
    (b"\xef\xbb\xbf1", 1),
    (b"007", 7),
    (b"-012 ", -12),
    (b'[00.5,"00",{"007":08}]', [0.5, "00", {"007": 8}]),
    (b"[1e05,0.05,10,0]", [1e5, 0.05, 10, 0]),
    (b"1 2", 1),
    (b"{} x", {}),
    (b'{"a":1,"a":2}', {"a": 2}),
    (b"9223372036854775808", -(2**63)),
    (b"18446744073709551617", 1),
    (b"-9223372036854775809", 2**63 - 1),
    (b"1e400", float("inf")),
)
def test_internal_topics_are_read_as_kafka_reads_them(data: bytes, expected: object) -> None:
    """Leading zeros, text after the value and too large integers are tolerated."""
    assert loads(data) == expected


@cases(
    "data",
    b"NaN", b"Infinity", b"'a'", b"{a:1}", b"[1,]", b"{", b'"\t"', b"\xff", b"+1", b".5", b"tru",
)  # fmt: skip
def test_text_that_is_not_json_is_a_value_error(data: bytes) -> None:
    """Stores catch a fault in JSON by its type."""
    with pytest.raises(JsonTextError):
        loads(data)
    with pytest.raises(JsonTextError):
        parse(data)


def test_strict_reading_loses_nothing() -> None:
    """Integers are unbounded, fractions exact, and nothing may follow the value."""
    assert parse(b"18446744073709551617") == 2**64 + 1
    assert parse(b" [0.10, 007] ") == [Decimal("0.10"), 7]
    assert str(parse(b"0.10")) == "0.10"
    for data in (b"1 2", b"", b" ", b"{}x"):
        with pytest.raises(JsonTextError):
            parse(data)
    assert json_text.parse_prefix('x{"a":1.5},y', 1) == ({"a": Decimal("1.5")}, 10)


@given(st.floats(width=32))
def test_binary32_numbers_are_read_back(value: float) -> None:
    """A float becomes a number that reads back as itself, or a string if it is not finite."""
    text = json_text.float_text(value)
    number = float(text.strip('"').replace("Infinity", "inf"))
    assert struct.pack(">f", number) == struct.pack(">f", value) or value != value
