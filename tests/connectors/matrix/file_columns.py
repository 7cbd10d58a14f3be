"""Columns of files: Parquet with Arrow's types, JSON with kinds of values, CSV with texts."""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.connectors.matrix.columns import Column, Kind, Value
from tests.connectors.matrix.meanings import Odd, float32, parsed_json

_DAY = date(2024, 6, 1)
_AT = datetime.fromisoformat("2024-06-01 10:20:30.123456")
_EARLY = datetime.fromisoformat("1969-12-31 23:59:59.999999")
_US = pa.timestamp("us")


def _column(type_: str, kind: Kind, values: Mapping[str, Any], odd: Mapping[str, Any]) -> Column:
    found = []
    for name, given in {**values, **odd}.items():
        expression, meaning, *plain = given if isinstance(given, tuple) else (given, given)
        found.append(
            Value(
                name=name,
                given=expression,
                meaning=meaning,
                is_odd=name in odd,
                plain=plain[0] if plain else None,
            )
        )
    found.append(Value(name="null", given=None, meaning=None))
    return Column(type=type_, kind=kind, values=tuple(found))


def _arrow(
    kind: Kind,
    arrow_type: Any,
    values: Mapping[str, Any],
    odd: Mapping[str, Any] | None = None,
    type_: str | None = None,
) -> tuple[Column, Any]:
    made = _column(type_ or str(arrow_type), kind, values, odd or {})
    if pa.types.is_decimal(arrow_type):
        made = Column(type=made.type, kind=kind, values=made.values, scale=arrow_type.scale)
    return made, arrow_type


def _integer(arrow_type: Any, bits: int, *, signed: bool) -> tuple[Column, Any]:
    least = -(2 ** (bits - 1)) if signed else 0
    values = {"ordinary": 5, "least": least, "largest": 2 ** (bits - 1 if signed else bits) - 1}
    if not signed:
        values["middle"] = 2 ** (bits - 1)
    if bits == 64 and not signed:
        # An INT64 cannot hold these, so the topic has texts.
        return _arrow(Kind.NUMBER, arrow_type, {n: (v, Decimal(v)) for n, v in values.items()})
    return _arrow(Kind.INT, arrow_type, values)


_TEXTS = {
    "ordinary": "tea",
    "empty": "",
    "quotes": "a\"b'c\\d,e;f",
    "lines": "a\nb\r\nc\td",
    "wide": "äé中😀",
    "controls": "\x01\x1f\x7f",
    "backslash N": "\\N",
    "spaces": "  a  ",
    "looks like null": "NULL",
}
_NUL = {"NUL": "a\0b"}
_BYTES = {"ordinary": b"abc", "empty": b"", "not UTF-8": b"\xc3(\0\xff"}
_STAMPS = {
    "ordinary": _AT,
    "before 1970": _EARLY,
    "least": datetime.fromisoformat("0001-01-01"),
    "largest": datetime.fromisoformat("9999-12-31 23:59:59"),
}
_MICROS_OF_10000 = 253402300800_000000
_FAR = {
    "year 10000": (_MICROS_OF_10000, Odd("year 10000")),
    "year 0": (-62135596800_000000 - 1, Odd("year 0")),
}
_NOT_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_FLOATS = {"ordinary": 1.5, "zero": 0.0, "minus zero": -0.0}


def _seconds(values: Mapping[str, datetime], unit: timedelta) -> dict[str, Any]:
    epoch = datetime.fromisoformat("1970-01-01")
    return {n: (v - (v - epoch) % unit) for n, v in values.items()}


PARQUET_TYPES: tuple[tuple[Column, Any], ...] = (
    _arrow(Kind.BOOL, pa.bool_(), {"true": True, "false": False}),
    *(_integer(getattr(pa, f"int{bits}")(), bits, signed=True) for bits in (8, 16, 32, 64)),
    *(_integer(getattr(pa, f"uint{bits}")(), bits, signed=False) for bits in (8, 16, 32, 64)),
    _arrow(Kind.FLOAT32, pa.float16(), _FLOATS),
    _arrow(
        Kind.FLOAT32,
        pa.float32(),
        {**_FLOATS, "tenth": float32(0.1), "largest": float32(3.4028234663852886e38)},
        _NOT_FINITE,
    ),
    _arrow(
        Kind.FLOAT64,
        pa.float64(),
        {**_FLOATS, "sum": 0.1 + 0.2, "least": 5e-324, "largest": 1.7976931348623157e308},
        _NOT_FINITE,
    ),
    _arrow(
        Kind.DECIMAL,
        pa.decimal128(10, 2),
        {"ordinary": Decimal("123.45"), "negative": Decimal("-0.01")},
    ),
    _arrow(Kind.DECIMAL, pa.decimal128(38, 10), {"largest": Decimal(f"{'9' * 28}.{'9' * 10}")}),
    _arrow(
        Kind.DECIMAL,
        pa.decimal256(76, 40),
        {"ordinary": Decimal("1.5")},
        {"largest": Decimal(f"{'9' * 36}.{'9' * 40}")},
    ),
    _arrow(Kind.TEXT, pa.string(), _TEXTS, _NUL),
    _arrow(Kind.TEXT, pa.large_string(), {"ordinary": "tea"}),
    _arrow(Kind.TEXT, pa.string_view(), {"ordinary": "tea"}),
    _arrow(
        Kind.TEXT,
        pa.dictionary(pa.int32(), pa.string()),
        {"ordinary": "tea", "empty": ""},
        type_="dictionary of string",
    ),
    _arrow(Kind.BYTES, pa.binary(), _BYTES),
    _arrow(Kind.BYTES, pa.large_binary(), {"ordinary": b"abc"}),
    _arrow(Kind.BYTES, pa.binary(3), {"ordinary": b"a\0\xff"}),
    _arrow(
        Kind.BYTES,
        pa.dictionary(pa.int32(), pa.binary()),
        {"ordinary": b"a\0\xff"},
        type_="dictionary of binary",
    ),
    _arrow(
        Kind.DATE,
        pa.date32(),
        {
            "ordinary": _DAY,
            "before 1970": date(1969, 12, 31),
            "least": date(1, 1, 1),
            "largest": date(9999, 12, 31),
        },
        {"year 10000": (2932897, Odd("year 10000")), "year 0": (-719163, Odd("year 0"))},
    ),
    _arrow(Kind.DATE, pa.date64(), {"ordinary": _DAY}),
    _arrow(Kind.TIME, pa.time32("s"), {"ordinary": time(10, 20, 30)}),
    _arrow(Kind.TIME, pa.time32("ms"), {"ordinary": time(10, 20, 30, 123000), "midnight": time(0)}),
    _arrow(
        Kind.TIME,
        pa.time64("us"),
        {"ordinary": time(10, 20, 30, 123456), "last": time(23, 59, 59, 999999)},
    ),
    _arrow(Kind.TIME, pa.time64("ns"), {"ordinary": (37230_123456789, time(10, 20, 30, 123456))}),
    _arrow(Kind.STAMP, pa.timestamp("s"), _seconds(_STAMPS, timedelta(seconds=1))),
    _arrow(Kind.STAMP, pa.timestamp("ms"), _seconds(_STAMPS, timedelta(milliseconds=1))),
    _arrow(Kind.STAMP, _US, _STAMPS, _FAR),
    _arrow(
        Kind.STAMP,
        pa.timestamp("ns"),
        {
            "ordinary": (1717237230_123456789, _AT),
            "before 1970": (-1, datetime.fromisoformat("1969-12-31 23:59:59.999999")),
        },
    ),
    _arrow(
        Kind.STAMP,
        pa.timestamp("us", "UTC"),
        {n: (v.replace(tzinfo=UTC), v) for n, v in _STAMPS.items()},
        _FAR,
    ),
    _arrow(
        Kind.STAMP,
        pa.timestamp("us", "Europe/Berlin"),
        {
            "ordinary": (
                datetime(2024, 6, 1, 10, 20, 30, tzinfo=UTC),
                datetime.fromisoformat("2024-06-01 10:20:30"),
            )
        },
    ),
    _arrow(
        Kind.TEXT,
        pa.duration("us"),
        # ISO 8601 in seconds: a day may have another length.
        {"ordinary": (timedelta(days=1, seconds=2), "PT86402S")},
    ),
    _arrow(Kind.JSON, pa.list_(pa.int32()), {"ordinary": [1, 2, None], "empty": []}),
    _arrow(Kind.JSON, pa.large_list(pa.string()), {"ordinary": ["a", ""]}),
    _arrow(Kind.JSON, pa.list_(pa.int32(), 2), {"ordinary": [1, 2]}, type_="list of two"),
    _arrow(Kind.JSON, pa.list_(pa.list_(pa.bool_())), {"ordinary": [[True], [], None]}),
    _arrow(
        Kind.JSON, pa.list_(pa.date32()), {"ordinary": ([_DAY], ["2024-06-01"], [Decimal(19875)])}
    ),
    _arrow(
        Kind.JSON,
        pa.list_(pa.decimal128(10, 2)),
        {"ordinary": ([Decimal("1.10")], [Decimal("1.10")], ["bg=="])},
    ),
    _arrow(Kind.JSON, pa.list_(pa.binary()), {"ordinary": ([b"\0\xff"], ["AP8="])}),
    _arrow(Kind.JSON, pa.list_(_US), {}, {"year 10000": ([_MICROS_OF_10000], Odd("year 10000"))}),
    _arrow(
        Kind.JSON,
        pa.map_(pa.string(), pa.int64()),
        {"ordinary": ([("a", 1), ("", None)], {"a": 1, "": None})},
    ),
    _arrow(
        Kind.JSON,
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        {"ordinary": {"a": 1, "b": None}},
    ),
    _arrow(Kind.TEXT, pa.null(), {}),
)
PARQUET = tuple(each for each, _ in PARQUET_TYPES)


def _json(type_: str, kind: Kind, values: Mapping[str, str], odd: Mapping[str, Any]) -> Column:
    meant: dict[str, Any] = {}
    for name, text in {**values, **odd}.items():
        meant[name] = text if isinstance(text, tuple) else (text, _json_meaning(kind, text))
    return _column(type_, kind, {n: meant[n] for n in values}, {n: meant[n] for n in odd})


def _json_meaning(kind: Kind, text: str) -> object:
    if kind in (Kind.TEXT, Kind.BOOL):
        return json.loads(text)
    # Numbers with a fraction are doubles without a schema, as JsonConverter reads them.
    return {Kind.INT: int, Kind.FLOAT64: float, Kind.NUMBER: Decimal}.get(kind, parsed_json)(text)


JSON: tuple[Column, ...] = (
    _json("true, false", Kind.BOOL, {"true": "true", "false": "false"}, {}),
    _json(
        "integer",
        Kind.INT,
        {
            "ordinary": "5",
            "beyond 2^53": "9007199254740993",
            "largest": str(2**63 - 1),
            "least": str(-(2**63)),
        },
        {},
    ),
    _json(
        "number",
        Kind.FLOAT64,
        {"ordinary": "1.5", "tenth": "0.1", "exponent": "1e300", "minus zero": "-0.0"},
        {"NaN": ("NaN", Odd("NaN"))},
    ),
    # Without a schema Java's converter makes doubles of all numbers; these keep their digits.
    _json(
        "number that no double is",
        Kind.NUMBER,
        {},
        {
            "more digits": "0.12345678901234567890",
            "beyond 2^63": str(2**63),
            "beyond 2^64": str(2**64 + 1),
            "wide": "1" + "0" * 40,
            "1e400": "1e400",
        },
    ),
    _json(
        "string",
        Kind.TEXT,
        {n: json.dumps(t) for n, t in _TEXTS.items()} | {"not escaped": '"äé中😀"'},
        {"NUL": r'"a\u0000b"', "lone surrogate": (r'"\ud800"', Odd("\ud800"))},
    ),
    _json(
        "array",
        Kind.JSON,
        {"ordinary": '[1, "x", null, true, 1.5]', "empty": "[]"},
        {"numbers that no double is": "[1e400, 0.12345678901234567890]"},
    ),
    _json(
        "object",
        Kind.JSON,
        {"ordinary": '{"a": {"b": [1]}, "": "c"}', "empty": "{}"},
        {"a name twice": ('{"a": 1, "a": 2}', {"a": Decimal(2)})},
    ),
)

_CSV_TEXTS = {
    "ordinary": "tea",
    "empty": ("", None),
    "empty in quotes": ('""', None),
    "comma": ('"a,b"', "a,b"),
    "quotes": ('"a ""b"""', 'a "b"'),
    "lines": ('"a\nb\r\nc"', "a\nb\r\nc"),
    "spaces": "  a  ",
    "wide": "äé中😀",
    "backslash N": "\\N",
    "looks like null": "NULL",
    "apostrophe": "it's",
    "controls": "\x01\x1f\x7f",
    "number": "007.50",
    "200,000 characters": "x" * 200_000,
}
CSV: tuple[Column, ...] = (
    _column(
        "text",
        Kind.TEXT,
        _CSV_TEXTS,
        {
            "NUL": "a\0b",
            "quote within": ('a"b', 'a"b'),
            "open quote": ('"tea', Odd("open quote")),
            "text behind quotes": ('"tea"x', Odd("text behind quotes")),
        },
    ),
)
