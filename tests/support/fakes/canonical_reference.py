"""The canonical form of JSON values in plain Python, and the verdict on two topics. Pure."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

Canonical = tuple[object, ...]
_LONE = re.compile("[\ud800-\udfff]")


def canonical(text: bytes | None) -> Canonical | None:
    """Return kind and value; bytes for a value that no parser keeps, None for no value."""
    if text is None:
        return None
    try:
        decoded = text.decode()
        document = json.loads(
            decoded, parse_int=_number, parse_float=_number, parse_constant=_constant,
            object_pairs_hook=_pairs,
        )  # fmt: skip
        found = _of(document)
    except (ValueError, InvalidOperation, RecursionError):
        return ("bytes", text)
    return found


def _number(text: str) -> Canonical:
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    kept = "".join(map(str, digits)).lstrip("0")
    plain = kept.rstrip("0")
    if not plain:
        return ("number", 0, "0", 0)
    return ("number", sign, plain, exponent + len(kept) - len(plain))


def _constant(text: str) -> Canonical:
    return ("number", text)


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a member is there twice")
    return dict(pairs)


def _of(value: object) -> Canonical:
    match value:
        case None:
            return ("null",)
        case bool():
            return ("boolean", value)
        case tuple():
            return value
        case str():
            if _LONE.search(value):
                raise ValueError("a lone surrogate")
            return ("text", value)
        case list():
            return ("array", *map(_of, value))
        case dict():
            return ("object", frozenset((name, _of(each)) for name, each in value.items()))
    raise AssertionError(value)


def difference(
    left: Iterable[tuple[bytes, bytes | None]], right: Iterable[tuple[bytes, bytes | None]]
) -> dict[str, int]:
    """Return missing, extra and repeated rows of two topics with keys and values."""
    before, after = (
        Counter((key, canonical(value)) for key, value in side) for side in (left, right)
    )
    found = {"missing": 0, "extra": 0, "repeated": 0}
    for row in {*before, *after}:
        found["missing"] += max(before[row] - after[row], 0)
        surplus = max(after[row] - before[row], 0)
        found["repeated" if before[row] else "extra"] += surplus
    return found
