"""MariaDB 10.11: the types of the chapter "Data Types" of its documentation."""

from tests.connectors.matrix.columns import Column, Kind, Odd, column

_TEXTS = {
    "ordinary": "'tea'",
    "empty": "''",
    "spaces": "'  a  '",
    "quotes": ("'a\"b''c\\\\d,e;f'", "a\"b'c\\d,e;f"),
    "lines": ("'a\\nb\\r\\nc\\td'", "a\nb\r\nc\td"),
    "wide": "'äé中😀'",
    "decomposed": ("_utf8mb4 x'65cc81'", "e\u0301"),
    "controls": ("_utf8mb4 x'011f7f'", "\x01\x1f\x7f"),
    "looks like null": "'NULL'",
    "backslash N": ("'\\\\N'", "\\N"),
    "looks like a number": "'007.50'",
}
_NUL = {"NUL": ("_utf8mb4 x'610062'", "a\0b")}
_BYTES = {
    "ordinary": ("x'616263'", b"abc"),
    "zeros": ("x'0000ff'", b"\0\0\xff"),
    "not UTF-8": ("x'c328'", b"\xc3("),
    "empty": ("''", b""),
}
_WKB = "0101000000000000000000f83f00000000000000c0"
_POINT = "ST_GeomFromText('POINT(1.5 -2)')"


def _integers(name: str, bits: int, *, odd: bool = False) -> list[Column]:
    least, largest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    unsigned = 2**bits - 1
    return [
        column(name, Kind.INT, {"ordinary": "5", "least": str(least), "largest": str(largest)}),
        column(
            f"{name} unsigned",
            Kind.INT,
            {"ordinary": "5", "middle": str(largest + 1)} if not odd else {"ordinary": "5"},
            odd={"middle": str(largest + 1), "largest": str(unsigned)}
            if odd
            else {"largest": str(unsigned)},
        ),
    ]


def _texts(type_: str, *names: str, nul: bool = True) -> Column:
    return column(
        type_, Kind.TEXT, {n: _TEXTS[n] for n in names or _TEXTS}, odd=_NUL if nul else None
    )


_FLOATS = {"ordinary": "1.5", "zero": "0", "negative": "-2.25", "tenth": ("0.1", 0.1)}
_STAMPS = {
    "ordinary": "'2024-06-01 10:20:30'",
    "largest": "'9999-12-31 23:59:59'",
    "least": "'1000-01-01 00:00:00'",
    "before 1970": "'1969-12-31 23:59:59'",
}
_ZEROS = {
    "zero": "'0000-00-00 00:00:00'",
    "zero day": "'2024-06-00 00:00:00'",
    "zero year": "'0000-06-01 00:00:00'",
}

MARIADB: tuple[Column, ...] = (
    *_integers("tinyint", 8),
    *_integers("smallint", 16),
    *_integers("mediumint", 24),
    *_integers("int", 32),
    *_integers("bigint", 64, odd=True),
    column("int(6) zerofill", Kind.INT, {"ordinary": ("7", 7), "large": "1234567"}),
    column("boolean", Kind.INT, {"true": ("true", 1), "false": ("false", 0), "two": ("2", 2)}),
    column(
        "decimal(10,2)",
        Kind.DECIMAL,
        {"ordinary": "123.45", "zero": "0", "negative": "-0.01", "largest": "99999999.99"},
    ),
    column("decimal(38,10)", Kind.DECIMAL, {"largest": "9999999999999999999999999999.9999999999"}),
    column(
        "decimal(65,30)",
        Kind.DECIMAL,
        {"ordinary": "1.5"},
        odd={"largest": f"{'9' * 35}.{'9' * 30}"},
    ),
    column("decimal(5)", Kind.DECIMAL, {"ordinary": "12345"}, scale=0),
    column("decimal(10,2) unsigned", Kind.DECIMAL, {"ordinary": "123.45"}, scale=2),
    column(
        "float",
        Kind.FLOAT32,
        {
            **_FLOATS,
            "tenth": "'0.1'",
            "largest": "3.4028234663852886e38",
            "least": "1e-45",
            "seven digits": "1.2345678",
        },
    ),
    column("float(7,3)", Kind.FLOAT32, {"ordinary": "1234.567"}),
    column(
        "double",
        Kind.FLOAT64,
        {**_FLOATS, "largest": "1.7976931348623157e308", "sum": "0.30000000000000004e0"},
    ),
    column("bit(1)", Kind.BYTES, {"ordinary": ("b'1'", b"\1"), "zero": ("b'0'", b"\0")}),
    column("bit(10)", Kind.BYTES, {"ordinary": ("b'1000000001'", b"\2\1")}),
    column("bit(64)", Kind.BYTES, {"largest": (f"b'{'1' * 64}'", b"\xff" * 8)}),
    _texts("varchar(40)"),
    _texts("varchar(40) character set utf8mb3", "ordinary", "decomposed"),
    _texts("varchar(40) character set latin1", "ordinary", "quotes", "spaces"),
    column("varchar(40) character set ucs2", Kind.TEXT, {"ordinary": "'äé中'"}),
    column("char(8)", Kind.TEXT, {"ordinary": "'tea'", "full": "'12345678'", "empty": "''"}),
    _texts("tinytext"),
    _texts("text"),
    _texts("mediumtext", "ordinary", "empty"),
    _texts("longtext", "ordinary", "wide"),
    column(
        "binary(4)",
        Kind.BYTES,
        {"ordinary": ("x'616263'", b"abc\0"), "full": ("x'00ff00ff'", b"\0\xff\0\xff")},
    ),
    column("varbinary(40)", Kind.BYTES, _BYTES),
    column("tinyblob", Kind.BYTES, _BYTES),
    column("blob", Kind.BYTES, _BYTES),
    column("mediumblob", Kind.BYTES, _BYTES),
    column("longblob", Kind.BYTES, _BYTES),
    column(
        "json",
        Kind.JSON,
        {
            "object": """'{"a": 1, "b": [true, null, "x"], "ü": {"c": ""}}'""",
            "array": "'[1, 2.50, \"x\"]'",
            "text": "'\"tea\"'",
            "null of JSON": "'null'",
            "number": "'12345678901234567890.123456789'",
            "small number": "'1e-20'",
        },
    ),
    column("enum('sad','ok','a,b')", Kind.TEXT, {"ordinary": "'ok'", "comma": "'a,b'"}),
    column(
        "set('a','b','c d')",
        Kind.TEXT,
        {"one": "'a'", "several": "'a,b'", "all": "'a,b,c d'", "empty": "''"},
    ),
    column("inet4", Kind.TEXT, {"ordinary": "'192.168.0.1'"}),
    column("inet6", Kind.TEXT, {"ordinary": "'::1'", "mapped": "'::ffff:192.168.0.1'"}),
    column("uuid", Kind.TEXT, {"ordinary": "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"}),
    column(
        "date",
        Kind.DATE,
        {
            "ordinary": "'2024-06-01'",
            "least": "'1000-01-01'",
            "largest": "'9999-12-31'",
            "year 1": "'0001-01-01'",
        },
        odd={
            "zero": "'0000-00-00'",
            "zero day": "'2024-06-00'",
            "zero month": "'2024-00-01'",
            "zero year": "'0000-06-01'",
            "thirtieth of February": "'2024-02-30'",
        },
    ),
    column(
        "time",
        Kind.TIME,
        {"ordinary": "'10:20:30'", "midnight": "'00:00:00'", "last second": "'23:59:59'"},
        odd={
            "24:00": "'24:00:00'",
            "25:30": "'25:30:00'",
            "largest": "'838:59:59'",
            "negative": "'-00:00:01'",
            "least": "'-838:59:59'",
        },
    ),
    column(
        "time(6)",
        Kind.TIME,
        {"ordinary": "'10:20:30.123456'", "last microsecond": "'23:59:59.999999'"},
        odd={"negative": "'-01:00:00.000001'"},
    ),
    column("datetime", Kind.STAMP, _STAMPS, odd=_ZEROS),
    column("datetime(3)", Kind.STAMP, {"ordinary": "'2024-06-01 10:20:30.123'"}),
    column(
        "datetime(6)",
        Kind.STAMP,
        {
            "ordinary": "'2024-06-01 10:20:30.123456'",
            "before 1970": "'1969-12-31 23:59:59.999999'",
            "last": "'9999-12-31 23:59:59.999999'",
        },
        odd={"zero": "'0000-00-00 00:00:00'"},
    ),
    column(
        "timestamp",
        Kind.STAMP,
        {
            "ordinary": "'2024-06-01 10:20:30'",
            "least": "'1970-01-01 00:00:01'",
            "largest": "'2038-01-19 03:14:07'",
        },
        odd={"zero": "'0000-00-00 00:00:00'"},
    ),
    column("timestamp(6)", Kind.STAMP, {"ordinary": "'2024-06-01 10:20:30.123456'"}),
    column(
        "year",
        Kind.INT,
        {"ordinary": "2024", "least": "1901", "largest": "2155", "zero": ("'0000'", 0)},
    ),
    column("point", Kind.BYTES, {}, odd={"ordinary": (_POINT, bytes.fromhex(f"00000000{_WKB}"))}),
    column("geometry", Kind.BYTES, {}, odd={"point": (_POINT, bytes.fromhex(f"00000000{_WKB}"))}),
    column(
        "linestring",
        Kind.BYTES,
        {},
        odd={
            "ordinary": (
                "ST_GeomFromText('LINESTRING(0 0,1 1)')",
                bytes.fromhex("00000000010200000002000000" + "00" * 16 + "000000000000f03f" * 2),
            )
        },
    ),
)
__all__ = ["MARIADB", "Odd"]
