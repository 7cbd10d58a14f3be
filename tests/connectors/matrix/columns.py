"""Columns of the matrix: a type as its documentation names it, with values and their meanings."""

import re
from dataclasses import dataclass, field
from typing import Any

from tests.connectors.matrix.meanings import Kind, Odd, of_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value; `given` is an SQL expression, or the object that a file's writer takes."""

    name: str
    given: Any = field(hash=False, compare=False)
    meaning: Any = field(hash=False, compare=False)
    plain: Any = field(default=None, hash=False, compare=False)
    """The meaning in JSON without schemas; None: the kind decides."""
    own: str | None = None
    """The source's own text form, if a different one arrives in other systems."""
    refused: str = ""
    """Why a source refuses the value although the column's kind has it."""
    is_odd: bool = False
    """Whether a refusal is likely, so that the value is tried alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One type of a system."""

    type: str
    kind: Kind
    values: tuple[Value, ...] = field(hash=False, compare=False)
    setup: str = field(default="", hash=False, compare=False)
    """Statement that creates the type."""
    scale: int | None = None

    @property
    def name(self) -> str:
        # The prefix keeps the name of a column different from each type's name.
        text = self.type.lower().replace("[]", " array")
        return f"v_{re.sub(r'[^a-z0-9]+', '_', text).strip('_')}"


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of a column."""

    column: Column
    value: Value


def column(
    type_: str,
    kind: Kind,
    values: dict[str, Any],
    *,
    odd: dict[str, Any] | None = None,
    setup: str = "",
    scale: int | None = None,
) -> Column:
    """Return a column of SQL; each value is an expression, or a tuple of it, its meaning and, if a
    source refuses it, the reason.

    The meaning of an expression alone is that of the text between its quotes.
    """
    found = [
        *(_value(kind, name, given, is_odd=False) for name, given in values.items()),
        *(_value(kind, name, given, is_odd=True) for name, given in (odd or {}).items()),
        Value(name="null", given="NULL", meaning=None),
    ]
    if scale is None and kind is Kind.DECIMAL and (digits := re.search(r",\s*(-?\d+)\)", type_)):
        scale = int(digits[1])
    return Column(type=type_, kind=kind, values=tuple(found), setup=setup, scale=scale)


def _value(kind: Kind, name: str, given: Any, *, is_odd: bool) -> Value:
    if isinstance(given, tuple):
        expression, meaning, *refused = given
        reason = refused[0] if refused else ""
        return Value(name=name, given=expression, meaning=meaning, refused=reason, is_odd=is_odd)
    text = str(given)
    if text.startswith("'"):
        text = text[1:-1].replace("''", "'")
    return Value(name=name, given=given, meaning=of_text(kind, text), is_odd=is_odd)


__all__ = ["Cell", "Column", "Kind", "Odd", "Value", "column"]
