"""Values for types of PostgreSQL that it would round or cut without an error."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from sqlalchemy import types

from pyconnect_connectors.sql.column_types import BINARIES
from pyconnect_connectors.sql.json_text import Convert, Unfit, array_literal, json_text, text_of

_INTERVALS = (
    r"(-?\d+ years?)?",
    r"(-?\d+ mons?)?",
    r"(-?\d+ days?)?",
    r"(-?\d+:00:00)?",
    r"(-?\d+:\d\d:00)?",
)
_UNITS = ("year", "month", "day", "hour", "minute", "second")
_PART_OF_YEAR = re.compile(r"[.]\d*[1-9]\d* *(y|dec|c|mil(?!lis))", re.IGNORECASE)
_DECIMALS = re.compile(r"[.](\d+)")
_ELEMENTS = re.compile(r'("(?:[^"\\]|\\.)*")|([^{},"\s][^{},"]*)', re.DOTALL)
"""Those of PostgreSQL's own form of an array."""


def uncut_text(value: Any, longest_bytes: int) -> str:
    text = text_of(value)
    if len(text.encode()) > longest_bytes:
        raise Unfit(f"a text of more than {longest_bytes} bytes")
    return text


def money(value: Any) -> str:
    text = text_of(value)
    if not re.fullmatch(r"-?\$?\d[\d,]*(\.\d{1,2})?", text, re.ASCII):
        raise Unfit("a value that is not an amount with two decimals")
    return text


def interval_conversion(precision: int | None, fields: str | None) -> Convert:
    """PostgreSQL rounds fractions, those of years to months, and leaves out shorter parts."""
    least = (fields or "second").split()[-1]
    kept = " ?".join(_INTERVALS[: list(_UNITS).index(least) + 1])
    form = re.compile(".*" if least == "second" else rf"{kept} ?(00:00:00)?", re.DOTALL)

    def convert(value: Any) -> str:
        text = text_of(value)
        if any(len(d) > (6 if precision is None else precision) for d in _DECIMALS.findall(text)):
            raise Unfit("a fraction of a second with more digits than the column")
        if _PART_OF_YEAR.search(text):
            raise Unfit("a fraction of a year")
        if not form.fullmatch(text):
            raise Unfit(f"an interval with parts shorter than a {least}, or of another form,")
        return text

    return convert


def array_conversion(convert: Convert, item: Any) -> Convert:
    """Elements are checked as values of a column are; of a type that is not known they are kept."""
    if isinstance(item, BINARIES):
        convert = _bytes
    elif isinstance(item, types.NullType):
        convert = _same

    def each(value: Any, change: Convert) -> Any:
        # A list is an inner array, or JSON of its own.
        if isinstance(value, list | tuple) and not isinstance(item, types.JSON):
            return [each(element, change) for element in value]
        return None if value is None else change(value)

    def convert_array(value: Any) -> str:
        if isinstance(value, str) and value.startswith("{"):
            # A boolean has words of its own there, which lose nothing.
            for quoted, plain in _ELEMENTS.findall(
                "" if isinstance(item, types.Boolean) else value
            ):
                if plain.upper() != "NULL":
                    convert(plain or re.sub(r"\\(.)", r"\1", quoted[1:-1]))
            return value
        change = convert
        if isinstance(value, str):
            value = json.loads(value, parse_float=Decimal, parse_int=Decimal)
            # A text within JSON is a text; one of a list is JSON already, as in a column of it.
            change = json_text if isinstance(item, types.JSON) else convert
        if not isinstance(value, list | tuple):
            raise Unfit("a value that is not a list")
        return array_literal(each(element, change) for element in value)

    return convert_array


def _bytes(value: Any) -> Any:
    """PostgreSQL would take another text, such as Base64, for the bytes of its letters."""
    if isinstance(value, bytes) or re.fullmatch(r"\\x([\da-fA-F]{2})*", text_of(value)):
        return value
    raise Unfit("a value that is not bytes")


def _same(value: Any) -> Any:
    return value
