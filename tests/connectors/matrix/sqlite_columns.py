"""SQLite 3: the declared types of "Datatypes In SQLite", with values of each storage class.

A column of SQLite takes values of any class: those that are not of the declared type are odd.
"""

from datetime import datetime, time
from decimal import Decimal

from tests.connectors.matrix.columns import Column, Kind, Odd, column

_INTEGERS = {"ordinary": "5", "least": "-9223372036854775808", "largest": "9223372036854775807"}
_TEXT_IN_NUMBERS = {"text": ("'five'", Odd("five")), "bytes": ("x'00'", Odd("\0"))}
_TEXTS = {
    "ordinary": "'tea'",
    "empty": "''",
    "quotes": """'a"b''c\\d,e;f'""",
    "lines": ("'a' || char(10) || 'b'", "a\nb"),
    "wide": "'äé中😀'",
    "backslash N": "'\\N'",
}
_NUL = {
    "NUL": ("CAST(x'610062' AS TEXT)", "a\0b"),
    "not UTF-8": ("CAST(x'ff' AS TEXT)", Odd("\xff")),
}
_DECIMALS = {"ordinary": "'123.45'", "integer": "5", "zero": "0", "negative": "'-0.01'"}

SQLITE: tuple[Column, ...] = (
    *(
        column(
            name,
            Kind.INT,
            _INTEGERS,
            odd=_TEXT_IN_NUMBERS | {"fraction": ("1.5", Odd("1.5"))} if name == "INTEGER" else {},
        )
        for name in (
            "INTEGER",
            "INT",
            "TINYINT",
            "SMALLINT",
            "MEDIUMINT",
            "BIGINT",
            "UNSIGNED BIG INT",
            "INT2",
            "INT8",
        )
    ),
    *(
        column(
            name,
            Kind.TEXT,
            _TEXTS,
            odd=_NUL | {"bytes": ("x'00'", Odd("\0"))} if name == "TEXT" else {},
        )
        for name in (
            "TEXT",
            "CHARACTER(20)",
            "VARCHAR(255)",
            "VARYING CHARACTER(255)",
            "NCHAR(55)",
            "NATIVE CHARACTER(70)",
            "NVARCHAR(100)",
            "CLOB",
        )
    ),
    column(
        "BLOB",
        Kind.BYTES,
        {
            "ordinary": ("x'616263'", b"abc"),
            "empty": ("x''", b""),
            "not UTF-8": ("x'c328'", b"\xc3("),
        },
        odd={"text": ("'tea'", Odd("tea")), "integer": ("5", Odd("5"))},
    ),
    *(
        column(
            name,
            Kind.FLOAT64,
            {
                "ordinary": "1.5",
                "integer": "5.0",
                "tenth": "0.1",
                "largest": "1.7976931348623157e308",
                "least": "5e-324",
            },
            odd={}
            if name != "REAL"
            else {
                "text": ("'five'", Odd("five")),
                "Infinity": ("9e999", float("inf")),
                "-Infinity": ("-9e999", float("-inf")),
            },
        )
        for name in ("REAL", "DOUBLE", "DOUBLE PRECISION", "FLOAT")
    ),
    column(
        "DECIMAL(10,5)",
        Kind.DECIMAL,
        _DECIMALS,
        odd={
            "text": ("'five'", Odd("five")),
            "Infinity": ("9e999", Odd("inf")),
            "more digits": ("'0.123456'", Decimal("0.123456"), "more digits"),
            "bytes": ("x'00'", Odd("\0")),
        },
    ),
    column("NUMERIC(10,2)", Kind.DECIMAL, _DECIMALS),
    column("STRING", Kind.TEXT, {"ordinary": "'tea'", "empty": "''", "wide": "'äé中😀'"}),
    column("UUID", Kind.TEXT, {"ordinary": "'8d2f1c3e-0000-4000-8000-00000000000a'"}),
    column("NUMERIC", Kind.DECIMAL, {"integer": "5", "fraction": "1.5"}),
    column(
        "BOOLEAN",
        Kind.BOOL,
        {"true": "1", "false": "0"},
        odd={"two": ("2", Odd("2")), "text": ("'yes'", Odd("yes"))},
    ),
    column(
        "DATE",
        Kind.DATE,
        {"ordinary": "'2024-06-01'", "least": "'0001-01-01'"},
        odd={
            "text": ("'soon'", Odd("soon")),
            "integer": ("20240601", Odd("20240601")),
            "with time": ("'2024-06-01 10:20:30'", Odd("2024-06-01 10:20:30")),
            "year 10000": "'10000-01-01'",
            "month 13": "'2024-13-01'",
        },
    ),
    column(
        "TIME",
        Kind.TIME,
        {"ordinary": "'10:20:30'", "milliseconds": "'10:20:30.123'"},
        odd={
            "minutes": ("'10:20'", time(10, 20)),
            "text": ("'soon'", Odd("soon")),
            "24:00": "'24:00:00'",
            "integer": ("5", Odd("5")),
        },
    ),
    *(
        column(
            name,
            Kind.STAMP,
            {
                "ordinary": "'2024-06-01 10:20:30'",
                "microseconds": "'2024-06-01 10:20:30.123456'",
                "T": "'2024-06-01T10:20:30'",
                "Z": "'2024-06-01T10:20:30Z'",
                "zone": "'2024-06-01 10:20:30+05:30'",
                "minutes": ("'2024-06-01 10:20'", datetime.fromisoformat("2024-06-01 10:20:00")),
            },
            odd={
                "date": ("'2024-06-01'", datetime.fromisoformat("2024-06-01")),
                "text": ("'soon'", Odd("soon")),
                "integer": ("1717237230", Odd("1717237230")),
                "Julian day": ("2460463.5", Odd("2460463.5")),
                "year 10000": "'10000-01-01 00:00:00'",
                "month 13": "'2024-13-01 00:00:00'",
            },
        )
        for name in ("DATETIME", "TIMESTAMP")
    ),
    column(
        "JSON",
        Kind.JSON,
        {
            "object": """'{"a": 1, "b": [true, null]}'""",
            "number": "'[12345678901234567890.123456789]'",
            "text": "'\"tea\"'",
        },
        odd={"null of JSON": "'null'"},
    ),
)
