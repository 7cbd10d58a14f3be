"""PostgreSQL 15: the types of chapter 8 of its documentation."""

from tests.connectors.matrix.columns import Column, Kind, Odd, Value, column
from tests.connectors.matrix.meanings import parsed_json

_TEXTS = {
    "ordinary": "'tea'",
    "empty": "''",
    "spaces": "'  a  '",
    "quotes": """'a"b''c\\d,e;f'""",
    "lines": ("E'a\\nb\\r\\nc\\td'", "a\nb\r\nc\td"),
    "wide": "'äé中😀'",
    "decomposed": ("U&'e\\0301'", "e\u0301"),
    "controls": ("E'\\x01\\x1f\\x7f'", "\x01\x1f\x7f"),
    "looks like null": "'NULL'",
    "backslash N": "'\\N'",
    "backslash dot": "'\\.'",
    "looks like a number": "'007.50'",
    "line separator": ("U&'\\2028\\FEFF'", "\u2028\ufeff"),
}
_DATES = {
    "ordinary": "'2024-06-01'",
    "leap day": "'2024-02-29'",
    "epoch": "'1970-01-01'",
    "before 1970": "'1969-12-31'",
    "Julian": "'1582-10-14'",
    "least": "'0001-01-01'",
    "largest": "'9999-12-31'",
}
_FAR_DATES = {
    "infinity": "'infinity'",
    "minus infinity": "'-infinity'",
    "before Christ": "'0044-03-15 BC'",
    "year 10000": "'10000-01-01'",
}
_STAMPS = {
    "ordinary": "'2024-06-01 10:20:30.123'",
    "microseconds": "'2024-06-01 10:20:30.123456'",
    "last microsecond": "'2024-06-01 23:59:59.999999'",
    "before 1970": "'1969-12-31 23:59:59.999999'",
    "Julian": "'1582-10-04 12:00:00'",
    "least": "'0001-01-01 00:00:00'",
    "largest": "'9999-12-31 23:59:59.999'",
}
_FAR_STAMPS = {
    "infinity": "'infinity'",
    "minus infinity": "'-infinity'",
    "before Christ": "'0044-03-15 10:00:00 BC'",
    "year 10000": "'10000-01-01 00:00:00'",
    "year 294276": "'294276-12-31 23:59:59.999999'",
}
_TIMES = {
    "ordinary": "'10:20:30'",
    "milliseconds": "'10:20:30.123'",
    "midnight": "'00:00:00'",
    "microseconds": "'10:20:30.123456'",
    "last microsecond": "'23:59:59.999999'",
}
_FLOATS = {"ordinary": "'1.5'", "zero": "'0'", "minus zero": "'-0'", "tenth": "'0.1'"}
_NOT_FINITE = {
    "NaN": ("'NaN'", float("nan")),
    "Infinity": ("'Infinity'", float("inf")),
    "-Infinity": ("'-Infinity'", float("-inf")),
}
_JSONS = {
    "object": """'{"a": 1, "b": [true, null, "x"], "ü": {"c": ""}}'""",
    "array": "'[1, 2.50, \"x\"]'",
    "text": "'\"tea\"'",
    "number": "'12345678901234567890.123456789'",
    "wide integer": "'123456789012345678901234567890'",
    "small number": "'1e-20'",
    "null of JSON": "'null'",
    "true": "'true'",
    "empty object": "'{}'",
    "escapes": """'{"a\\"b": "c\\nd\\u00e9\\ud83d\\ude00"}'""",
}


def _texts(type_: str, *names: str) -> Column:
    return column(type_, Kind.TEXT, {n: _TEXTS[n] for n in names or _TEXTS})


def _as_text(type_: str, setup: str = "", **values: str) -> Column:
    """Return a column whose type Connect lacks: the database's own text arrives."""
    return column(type_, Kind.TEXT, dict(values), setup=setup)


def _money(**values: str) -> Column:
    """Return a column of money, which arrives as a number without the signs of a locale."""
    found = [
        Value(
            name=name,
            given=f"'{number}'::numeric::money",
            own=f"${float(number):,.2f}".replace("$-", "-$")
            if len(number) < 12
            else "$92,233,720,368,547,758.07",
            meaning=number,
        )
        for name, number in values.items()
    ]
    null = Value(name="null", given="NULL", meaning=None)
    return Column(type="money", kind=Kind.TEXT, values=(*found, null))


_NUMBERS = [
    column("smallint", Kind.INT, {"ordinary": "5", "least": "-32768", "largest": "32767"}),
    column("integer", Kind.INT, {"zero": "0", "least": "-2147483648", "largest": "2147483647"}),
    column(
        "bigint",
        Kind.INT,
        {
            "beyond 2^53": "9007199254740993",
            "least": "-9223372036854775808",
            "largest": "9223372036854775807",
        },
    ),
    column(
        "numeric(10,2)",
        Kind.DECIMAL,
        {"ordinary": "123.45", "zero": "0", "negative": "-0.01", "largest": "99999999.99"},
        odd={"NaN": "'NaN'"},
    ),
    column(
        "numeric(38,10)",
        Kind.DECIMAL,
        {"largest": "9999999999999999999999999999.9999999999", "least": "0.0000000001"},
    ),
    column(
        "numeric(65,30)",
        Kind.DECIMAL,
        {"ordinary": "1.5"},
        odd={"largest": f"{'9' * 35}.{'9' * 30}"},
    ),
    column("numeric(1000,500)", Kind.DECIMAL, {}, odd={"wide": f"-{'7' * 500}.{'3' * 500}"}),
    column("numeric(5)", Kind.DECIMAL, {"ordinary": "12345", "negative": "-1"}, scale=0),
    column("numeric(2,-3)", Kind.DECIMAL, {"ordinary": "99000"}, scale=-3),
    column("numeric(3,5)", Kind.DECIMAL, {"ordinary": "0.00999"}, scale=5),
    column(
        "numeric",
        Kind.TEXT,
        {
            "ordinary": "1.10",
            "wide": "12345678901234567890123456789012345678901.5",
            "tiny": "'0.00000000000000000001'",
            "NaN": "'NaN'",
            "Infinity": "'Infinity'",
            "large": f"'1{'0' * 50}'",
        },
    ),
    column(
        "real",
        Kind.FLOAT32,
        {**_FLOATS, "largest": "'3.4028235e38'", "least": "'1e-45'"},
        odd=_NOT_FINITE,
    ),
    column(
        "double precision",
        Kind.FLOAT64,
        {
            **_FLOATS,
            "largest": "'1.7976931348623157e308'",
            "least": "'5e-324'",
            "sum": "'0.30000000000000004'",
        },
        odd=_NOT_FINITE,
    ),
    _money(ordinary="1234.50", negative="-0.01", largest="92233720368547758.07"),
    _as_text("oid", ordinary="'1'", largest="'4294967295'"),
    column("boolean", Kind.BOOL, {"true": "'true'", "false": "'false'"}),
]
_TEXT_COLUMNS = [
    _texts("text"),
    _texts("varchar(40)"),
    _texts("varchar"),
    column(
        "char(8)",
        Kind.TEXT,
        {"ordinary": "'tea     '", "full": "'12345678'", "empty": "'        '"},
    ),
    column("bpchar", Kind.TEXT, {"ordinary": "'tea'"}),
    _as_text('"char"', ordinary="'x'"),
    _as_text("name", ordinary="'tea'"),
    _as_text(
        "mood",
        "CREATE TYPE mood AS ENUM ('sad', 'ok', 'très ''gai''')",
        ordinary="'ok'",
        quotes="'très ''gai'''",
    ),
    _as_text("uuid", ordinary="'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"),
    _as_text("xml", ordinary="'<a b=\"c\">ü</a>'"),
    _as_text("tsvector", ordinary="'''cat'':3 ''fat'':2'"),
    _as_text("tsquery", ordinary="'''fat'' & ''rat'''"),
    column(
        "bytea",
        Kind.BYTES,
        {
            "ordinary": ("'\\x616263'", b"abc"),
            "empty": ("'\\x'", b""),
            "zeros": ("'\\x0000ff'", b"\0\0\xff"),
            "not UTF-8": ("'\\xc328'", b"\xc3("),
        },
    ),
    column("bit(3)", Kind.TEXT, {"ordinary": ("B'101'", "101")}),
    column("bit varying(9)", Kind.TEXT, {"ordinary": ("B'10101'", "10101"), "empty": ("B''", "")}),
]
_TIME_COLUMNS = [
    column("date", Kind.DATE, _DATES, odd=_FAR_DATES),
    column("time", Kind.TIME, _TIMES, odd={"24:00": "'24:00:00'"}),
    column("time(0)", Kind.TIME, {"ordinary": "'10:20:30'"}),
    column(
        "time with time zone",
        Kind.TEXT,
        {"ordinary": "'10:20:30+02'", "microseconds": "'10:20:30.123456-05:30'"},
        odd={"24:00": "'24:00:00+00'"},
    ),
    column("timestamp", Kind.STAMP, _STAMPS, odd=_FAR_STAMPS),
    column("timestamp(3)", Kind.STAMP, {"ordinary": "'2024-06-01 10:20:30.123'"}),
    column(
        "timestamp with time zone",
        Kind.STAMP,
        {
            **{name: f"'{text[1:-1]}+00'" for name, text in _STAMPS.items()},
            "zone": "'2024-06-01 10:20:30+05:30'",
        },
        odd={
            **_FAR_STAMPS,
            "before Christ": ("'0044-03-15 10:00:00 BC'", Odd("0044-03-15 10:00:00+00 BC")),
            "year 10000": ("'10000-01-01 00:00:00'", Odd("10000-01-01 00:00:00+00")),
            "year 294276": ("'294276-12-31 23:59:59'", Odd("294276-12-31 23:59:59+00")),
        },
    ),
    _as_text(
        "interval",
        ordinary="'1 year 2 mons 3 days 04:05:06.789'",
        negative="'-1 mons +1 day'",
        zero="'00:00:00'",
        long="'178000000 years'",
        microseconds="'00:00:00.000001'",
    ),
    _as_text("interval year to month", ordinary="'1 year 2 mons'"),
]
_OTHERS = [
    column("json", Kind.JSON, _JSONS),
    column("jsonb", Kind.JSON, _JSONS),
    _as_text("jsonpath", ordinary="'$.\"a\"[*]'"),
    _as_text("inet", ordinary="'192.168.0.1'", net="'10.1.0.0/16'", six="'::1'"),
    _as_text("cidr", ordinary="'10.1.0.0/16'"),
    _as_text("macaddr", ordinary="'08:00:2b:01:02:03'"),
    _as_text("macaddr8", ordinary="'08:00:2b:01:02:03:04:05'"),
    _as_text("point", ordinary="'(1.5,-2)'", tenth="'(0.1,1e+300)'"),
    _as_text("line", ordinary="'{1,-1,0}'"),
    _as_text("lseg", ordinary="'[(1,2),(3,4)]'"),
    _as_text("box", ordinary="'(3,4),(1,2)'"),
    _as_text("path", ordinary="'((1,2),(3,4))'"),
    _as_text("polygon", ordinary="'((1,2),(3,4),(5,6))'"),
    _as_text("circle", ordinary="'<(1,2),3>'"),
    _as_text("pg_lsn", ordinary="'16/B374D848'"),
    _as_text("xid8", ordinary="'123456789012'"),
    _as_text("regclass", ordinary="'pg_type'"),
    _as_text("int4range", ordinary="'[1,5)'", empty="'empty'", unbounded="'(,)'"),
    _as_text("int8range", ordinary="'[1,5)'"),
    _as_text("numrange", ordinary="'[1.10,5.50]'"),
    _as_text("tsrange", ordinary="""'["2024-01-01 10:00:00","2024-01-02 00:00:00")'"""),
    _as_text("tstzrange", ordinary="""'["2024-01-01 10:00:00+00",infinity)'"""),
    _as_text("daterange", ordinary="'[2024-01-01,2024-02-01)'"),
    _as_text("int4multirange", ordinary="'{[1,5),[7,9)}'"),
    _as_text("datemultirange", ordinary="'{[2024-01-01,2024-02-01)}'"),
    _as_text(
        "pair", "CREATE TYPE pair AS (a int, b text)", ordinary="'(1,\"x y\")'", nulls="'(,)'"
    ),
    column(
        "posint", Kind.INT, {"ordinary": "5"}, setup="CREATE DOMAIN posint AS int CHECK (VALUE > 0)"
    ),
    column(
        "amount",
        Kind.DECIMAL,
        {"ordinary": "5.25"},
        scale=2,
        setup="CREATE DOMAIN amount AS numeric(10,2)",
    ),
    column("email", Kind.TEXT, {"ordinary": "'a@b'"}, setup="CREATE DOMAIN email AS varchar(40)"),
    column(
        "born",
        Kind.DATE,
        {"ordinary": "'2024-06-01'"},
        odd={"infinity": "'infinity'"},
        setup="CREATE DOMAIN born AS date",
    ),
]


def _of_extension(type_: str, extension: str = "", **values: str) -> Column:
    return _as_text(type_, f"CREATE EXTENSION {extension or type_}", **values)


# Debezium has hstore as JSON or as a map, and leaves out unknown types unless
# `include.unknown.datatypes` is set.
_EXTENSIONS = [
    _of_extension("citext", **{name: str(_TEXTS[name]) for name in ("ordinary", "spaces", "wide")}),
    _of_extension("hstore", ordinary="""'"a"=>"1", "b"=>NULL, "c d"=>"e\\"f"'""", empty="''"),
    _of_extension("ltree", ordinary="'Top.Science.a_1'", empty="''"),
    _of_extension("cube", ordinary="'(1, 2),(3, 4)'", tenth="'(0.1)'"),
    _of_extension("seg", ordinary="'1.0 .. 2.50'", open="'>5'"),
    _of_extension("ean13", "isn", ordinary="'978-0-393-04002-9'"),
]


def _array(type_: str, **values: tuple[str, str]) -> Column:
    """Return a column of an array, read as JSON: pairs of the database's text and of JSON."""
    found = [
        Value(
            name=name,
            given=f"'{text.replace(chr(39), chr(39) * 2)}'",
            own=text,
            meaning=parsed_json(json),
        )
        for name, (text, json) in values.items()
    ]
    null = Value(name="null", given="NULL", meaning=None)
    return Column(type=type_, kind=Kind.JSON, values=(*found, null))


# Debezium has arrays of Connect instead, which most sinks for tables do not take.
_ARRAYS = [
    _array(
        "integer[]",
        ordinary=("{1,2,NULL}", "[1, 2, null]"),
        empty=("{}", "[]"),
        nested=("{{1,2},{3,4}}", "[[1, 2], [3, 4]]"),
    ),
    _array(
        "text[]",
        ordinary=('{a,"b c","NULL",""}', '["a", "b c", "NULL", ""]'),
        quotes=(r'{"a\"b","c\\d"}', r'["a\"b", "c\\d"]'),
    ),
    _array("boolean[]", ordinary=("{t,f}", "[true, false]")),
    _array("numeric[]", ordinary=("{1.10,NaN}", '[1.10, "NaN"]')),
    _array("double precision[]", ordinary=("{0.1,Infinity}", '[0.1, "Infinity"]')),
    _array("date[]", ordinary=("{2024-06-01,infinity}", '["2024-06-01", "infinity"]')),
    _array(
        "timestamp[]", ordinary=('{"2024-06-01 10:20:30.123456"}', '["2024-06-01T10:20:30.123456"]')
    ),
    _array("bytea[]", ordinary=(r'{"\\x00ff"}', r'["\\x00ff"]')),
    _array(
        "uuid[]",
        ordinary=(
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            '["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]',
        ),
    ),
    _array("jsonb[]", ordinary=(r'{"{\"a\": 1}"}', '[{"a": 1}]')),
    _array("interval[]", ordinary=("{01:00:00}", '["01:00:00"]')),
    _array("mood[]", ordinary=("{ok,sad}", '["ok", "sad"]')),
    _array("citext[]", ordinary=("{ok,Sad}", '["ok", "Sad"]')),
]
POSTGRES: tuple[Column, ...] = (
    *_NUMBERS,
    *_TEXT_COLUMNS,
    *_TIME_COLUMNS,
    *_OTHERS,
    *_EXTENSIONS,
    *_ARRAYS,
)
