"""JSON documents that users and servers give. Pure."""

from __future__ import annotations

import json
import math
from typing import NoReturn

from pyconnect_cli.errors import UsageError

DEEPEST = 200
TOO_DEEP = f"its arrays and objects are nested more than {DEEPEST} deep"


def shallow(document: object) -> object:
    """Return a JSON document as it is; RecursionError if it is nested too deep to work with."""
    level: list[object] = [document]
    for _ in range(DEEPEST + 1):
        inside = (
            item.values() if isinstance(item, dict) else item
            for item in level
            if isinstance(item, dict | list)
        )
        level = [child for items in inside for child in items]
        if not level:
            return document
    raise RecursionError(TOO_DEEP)


def _same_number(value: float, text: str) -> bool:
    from decimal import Decimal  # most commands read no numbers

    return Decimal(repr(value)) == Decimal(text)


def parse_json(text: str, place: str, *, exact: bool = False) -> object:
    """Read JSON; UsageError for other texts, and for a member that occurs twice.

    `exact`: also for a number that a double does not hold with all its digits.
    """

    def members(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in pairs:
            if key in found:
                raise UsageError(f"{place}: member `{key}` occurs twice in one object")
            found[key] = value
        return found

    def no_constant(text: str) -> NoReturn:
        raise UsageError(f"{place}: {text} is not a JSON number")

    def number(text: str) -> float:
        value = float(text)
        if exact and not _same_number(value, text):
            raise UsageError(f"{place}: {text} has more digits than a double")
        return no_constant(text) if math.isinf(value) else value

    def whole(text: str) -> int:
        if exact:
            number(text)
        return int(text)

    try:
        return shallow(
            json.loads(
                text,
                object_pairs_hook=members,
                parse_constant=no_constant,
                parse_float=number,
                parse_int=whole,
            )
        )
    except json.JSONDecodeError as exc:
        raise UsageError(
            f"{place}: line {exc.lineno}, column {exc.colno}: is not JSON: {exc.msg}",
            hint="put keys and texts in double quotes",
        ) from exc
    except ValueError as exc:
        raise UsageError(f"{place}: cannot be read: {exc}") from exc
    except RecursionError as exc:
        raise UsageError(f"{place}: cannot be read: {TOO_DEEP}") from exc
