r"""Characters that a property of a Java regular expression, as in `\p{Upper}`, stands for.

Layer: core. Known are the POSIX classes, general categories of Unicode, and the binary properties
that can be told from those; scripts, blocks and `javaXxx` methods are not.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache

_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t-\r",
    "L1": r"\x00-\xff",
    "all": r"\x00-\U0010ffff",
}
_CATEGORIES = frozenset(
    first + second
    for first, seconds in {
        "L": "ultmo",
        "M": "nce",
        "N": "dlo",
        "P": "cdseifo",
        "S": "mcko",
        "Z": "slp",
        "C": "cfson",
    }.items()
    for second in seconds
)
_GROUPS = frozenset("LMNPSZC")
_BINARY: dict[str, Callable[[str], bool]] = {
    "LETTER": lambda char: unicodedata.category(char).startswith("L"),
    "DIGIT": lambda char: unicodedata.category(char) == "Nd",
    "UPPERCASE": str.isupper,
    "LOWERCASE": str.islower,
    "TITLECASE": lambda char: unicodedata.category(char) == "Lt",
    "PUNCTUATION": lambda char: unicodedata.category(char).startswith("P"),
    "CONTROL": lambda char: unicodedata.category(char) == "Cc",
    "ASSIGNED": lambda char: unicodedata.category(char) != "Cn",
}


@cache
def property_characters(name: str) -> str:
    """Return the property's characters as what stands between the brackets of a Python set.

    Raises re.error for a property that is not known.
    """
    if name in _POSIX:
        return _POSIX[name]
    if name.startswith("Is") and name[2:].upper() in _BINARY:
        return _content(_BINARY[name[2:].upper()])
    category = re.sub(r"^(?:Is|gc=|general_category=)", "", name)
    if category in _CATEGORIES:
        return _content(lambda char: unicodedata.category(char) == category)
    if category in _GROUPS:
        return _content(lambda char: unicodedata.category(char)[0] == category)
    if category == "LC":
        return _content(lambda char: unicodedata.category(char) in {"Lu", "Ll", "Lt"})
    if category == "LD":
        return _content(lambda char: unicodedata.category(char)[0] == "L" or char.isdecimal())
    raise re.error(f"Unknown or unsupported character property name {{{name}}}")


def _content(belongs: Callable[[str], bool]) -> str:
    members = (code for code in range(sys.maxunicode + 1) if belongs(chr(code)))
    return "".join(
        f"\\U{first:08x}" if first == last else f"\\U{first:08x}-\\U{last:08x}"
        for first, last in _ranges(members)
    )


def _ranges(codes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of each run of consecutive numbers."""
    first = last = -2
    for code in codes:
        if code != last + 1:
            if first >= 0:
                yield first, last
            first = code
        last = code
    if first >= 0:
        yield first, last
