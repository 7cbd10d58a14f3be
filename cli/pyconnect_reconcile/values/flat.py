r"""Members of JSON objects without nesting, which one regular expression proves and cuts.

A parse that loses nothing is dear (`canonical`). Most values need none: objects whose members are
in the order of the first one, each at most once, with texts, plain numbers, booleans and nulls. The
expression matches only such texts as a whole and leaves one part for each member:

    "TEXT     a text, with its escapes
    -1.5      a number as in its token: 1.50 and 1.0 lose their zeros, and -0 does not match
    t  f      a boolean
    (empty)   null, or no such member

Numbers with exponents or hundreds of digits, surrogates, arrays, objects, members twice or in
another order, and what is not JSON do not match: such values are for the parsers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from pyconnect_reconcile.data_sides import MARK
from pyconnect_reconcile.values.canonical import text_token
from pyconnect_reconcile.values.releases import is_utf8

# The expression is matched by recursion over its members.
MOST_MEMBERS = 200
SAMPLE = 10
_PARTS = "pyconnect_parts_"
# No JSON text has this character.
_CUT = "\x02"
_SPACE = r"[ \t\r\n]*+"
_PLAIN = r'[^"\\\x00-\x1f]*+'
_ESCAPED = r'\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4})'
_INTEGER = r"(?:-(?!0(?:\.0*+)?+[^0-9.]))?+(?:0|[1-9][0-9]{0,300}+)"
_VALUE = (
    rf'(?:("{_PLAIN}(?:{_ESCAPED}{_PLAIN})*+)"'
    rf"|({_INTEGER})(?:(\.[0-9]{{0,300}}[1-9])0*+|\.0++)?+|(t)rue|(f)alse|null)"
)
_GROUPS = 5
_REST = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatObjects:
    """The members that such objects among the values of a frame may have, in order.

    `parts` is the column with what their values are cut into.
    """

    names: Sequence[str] = ()
    parts: str = ""

    @property
    def holds(self) -> Column:
        """Whether a value is such an object."""
        if not self.names:
            return sql.lit(False)
        return sql.coalesce(sql.col(self.parts)[0] == "", sql.lit(False))

    def token(self, name: str) -> Column:
        """Return the token of a member of such an object."""
        if name not in self.names:
            return sql.lit(None).cast("string")
        part = sql.col(self.parts)[self.names.index(name) + 1]
        text = part.substr(2, _REST)
        read = sql.from_json(sql.concat(sql.lit("["), part, sql.lit('"]')), "ARRAY<STRING>")
        return (
            sql.when(part.contains("\\"), sql.transform(read, text_token)[0])
            .when(
                part.startswith('"{') | part.startswith('"['), sql.concat(sql.lit(f"{MARK}s"), text)
            )
            .when(part.startswith('"'), text)
            .when(part != "", sql.concat(sql.lit(MARK), part))
        )


def with_flat_objects(
    frame: DataFrame, known: Sequence[str], *, closed: bool, of: str = "value", within: str = ""
) -> tuple[DataFrame, FlatObjects]:
    """Return the frame with what `FlatObjects` needs of the column `of`.

    An object among the first values shows the order of members. Others than `known` are left out of
    the objects, or with `closed` an object that has one is for the parsers. `within` is the last of
    two members in which the object is; all that is before it has to be the same then.
    """
    text, parts = sql.col(of).cast("string"), f"{_PARTS}{of}"
    sample = frame.where(sql.col(of).isNotNull()).select(text).limit(SAMPLE).collect()
    first = next((row[0] for row in sample if row[0].startswith("{")), "")
    before, after = "", ""
    if within:
        head, _, rest = first.partition(f',"{within}":{{')
        others = [name for name, _ in _members(f"{head}}}")]
        if len(others) != 1 or within in others or "\\" in head:
            return frame, FlatObjects()
        before, first, after = f'\\Q{head},"{within}":\\E', f"{{{rest[:-1]}", rf"{_SPACE}\}}"
    names = _in_order(_members(first), known, closed=closed)
    if not names or len(names) > MOST_MEMBERS:
        return frame, FlatObjects()
    space, end = _SPACE, rf'{_SPACE}(?:,{_SPACE}(?=")|(?=\}}))'
    members = (rf'(?:"\Q{name}\E"{space}:{space}{_VALUE}{end})?+' for name in names)
    pattern = rf"\A{before}\{{{space}{''.join(members)}\}}{after}{space}\z"
    groups = range(1, _GROUPS * len(names) + 1)
    replaced = "".join(f"{_CUT if n % _GROUPS == 1 else ''}${n}" for n in groups)
    # Spark's texts may hold any bytes. A character that stands for those that are no UTF-8 is for
    # the parsers, too.
    is_text = is_utf8(text) & ~text.contains("\ufffd")
    cut = sql.split(sql.regexp_replace(text, pattern, replaced), _CUT)
    frame = frame.withColumn(parts, sql.when(text.startswith("{") & is_text, cut))
    return frame, FlatObjects(names=names, parts=parts)


def _members(text: str) -> list[tuple[str, object]]:
    """Return the members of an object; in them arrays and objects are lists. Nothing of others."""
    try:
        return list(json.loads(text, object_pairs_hook=list))
    except (ValueError, RecursionError):
        return []


def _in_order(
    members: Sequence[tuple[str, object]], known: Sequence[str], *, closed: bool
) -> list[str]:
    """Return the members of an object, with known ones that it lacks behind those before them."""
    if not members or any(isinstance(value, list) for _, value in members):
        return []
    names = [name for name, _ in members if not closed or name in known]
    for before, name in pairwise(["", *known]):
        if name not in names:
            names.insert(names.index(before) + 1 if before in names else 0, name)
    # A name that is written with escapes is not found.
    return [
        name for name in dict.fromkeys(names) if json.dumps(name, ensure_ascii=False)[1:-1] == name
    ]
