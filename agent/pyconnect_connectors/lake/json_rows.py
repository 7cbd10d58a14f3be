"""Rows of JSON files: one value of any kind a line, without a schema.

Numbers keep their digits: those that 64 bits would change are Decimals. Of two members with one
name the last one counts, as in Jackson.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import Any, NoReturn

import msgspec

from pyconnect_api import DataException
from pyconnect_api.validation import kept_number
from pyconnect_connectors.lake.file_rows import Chunk, Source
from pyconnect_connectors.odd_values import OddValues

_CLASSES = bytes(
    ord("0" if chr(octet) in "0123456789." else "e" if chr(octet) in "eE" else " ")
    for octet in range(256)
)
_LONG = b"0" * 17
"""A point and 16 digits. A double has any 15 digits, and an integer of 64 bits any 18."""
_DIGITS = bytes(ord("0" if chr(octet) in "0123456789" else " ") for octet in range(256))
_DIGITS_OF_MORE = b"0" * 19
_MORE = re.compile(rb"[1-9]\d{19}|9[2-9]\d{17}")
"""An integer of more than 64 bits."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def json_chunks(file: Any, source: Source) -> Iterator[Chunk]:
    """Yield the rows of a binary file; DataException if it is broken."""
    if file.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
        file.read(len(BOM_UTF8))
    quick, exact = msgspec.json.Decoder().decode, msgspec.json.Decoder(float_hook=_number).decode
    # Without a loop in Python, and without a text of each line, which the decoder does not need.
    lines = filter(bytes.strip, file)
    row = sum(1 for _ in islice(lines, source.begin))
    source.check_length(row)
    while chunk := list(islice(lines, source.batch_rows)):
        bad: dict[int, DataException] = {}
        try:
            text = b"".join(chunk)
            # There may be a float that 64 bits would change: found without a loop in Python.
            classes = text.translate(_CLASSES)
            is_long = _LONG in classes or b"0e" in classes
            values = list(map(exact if is_long else quick, chunk))
            if _DIGITS_OF_MORE in text.translate(_DIGITS):
                values = [
                    _of_64_bits(value) if _MORE.search(line) else value
                    for value, line in zip(values, chunk, strict=True)
                ]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            values = []
            for index, line in enumerate(chunk):
                try:
                    values.append(_exactly(line, row + index, source))
                except DataException as error:
                    values.append(None)
                    bad[index] = error
            if row == 0 and 0 in bad and _is_unfinished(chunk[0]):
                raise source.broken(
                    "the JSON value does not end on its line; a file has one value a line", 0
                ) from None
        yield Chunk(schema=None, values=values, bad=bad)
        row += len(chunk)


def _number(digits: str) -> object:
    number = float(digits)
    # Most numbers have few digits, or those that programs write of the nearest double.
    if (len(digits) <= 15 and "e" not in digits and "E" not in digits) or repr(number) == digits:
        return number
    try:
        return kept_number(Decimal(digits))
    except InvalidOperation:
        raise ValueError("a number has an exponent that is too large") from None


def _of_64_bits(value: Any) -> Any:
    match value:
        case dict():
            return {name: _of_64_bits(member) for name, member in value.items()}
        case list():
            return list(map(_of_64_bits, value))
        case int():
            return value if isinstance(value, bool) else kept_number(value)
    return value


def _exactly(line: bytes, row: int, source: Source) -> Any:
    """Return the value of a line that may be wrong; DataException that says why it is."""
    try:
        text, kind = line.decode(), "a lone surrogate"
    except UnicodeDecodeError:
        text, kind = line.decode("utf-8", "surrogateescape"), "a text that is not UTF-8"

    def no_constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a JSON value")

    try:
        value = json.loads(text, parse_float=_number, parse_constant=no_constant)
        return _of_64_bits(_with_texts(value, "", row, source, kind))
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at character {error.pos + 1}"
    except RecursionError:
        problem = "it is nested too deeply"
    except ValueError as error:
        problem = str(error)
    raise source.bad_row(row, f"is not JSON: {problem}") from None


def _with_texts(value: Any, path: str, row: int, source: Source, kind: str) -> Any:
    """Return a value whose texts are all text; those that are not are null or an error."""
    match value:
        case str() if _LONE_SURROGATE.search(value):
            if source.odd_values is OddValues.NULL:
                return None
            raise source.odd(path or "(value)", row, kind, "STRING")
        case list():
            return [_with_texts(element, path, row, source, kind) for element in value]
        case dict():
            found = {}
            for name, member in value.items():
                if _LONE_SURROGATE.search(name):
                    raise source.odd(path or "(value)", row, f"{kind} in a name", "STRING")
                inner = f"{path}.{name}" if path else name
                found[name] = _with_texts(member, inner, row, source, kind)
            return found
    return value


def _is_unfinished(line: bytes) -> bool:
    """Return whether a line is the beginning of an array or object."""
    try:
        json.loads(line)
    except json.JSONDecodeError as error:
        return line.lstrip().startswith((b"[", b"{")) and error.pos >= len(error.doc.rstrip())
    except (ValueError, RecursionError):
        pass
    return False
