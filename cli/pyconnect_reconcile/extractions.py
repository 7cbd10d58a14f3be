"""The texts that name a value of a record, checked before Spark starts. Pure.

`values.extract` describes each kind and makes columns of them.
"""

from __future__ import annotations

import re
import warnings

from pyconnect_reconcile.errors import ReconcileError

KINDS = "header:NAME, json:PATH, avro:PATH, key, key.json:PATH, text, regex:PATTERN, timestamp"
_BARE = frozenset({"key", "text", "timestamp"})
_WITH_ARGUMENT = frozenset({"header", "json", "avro", "key.json", "regex"})
# Java's own notations, and what Python has in their place; the meaning does not matter here.
_JAVA_ONLY = (
    (re.compile(r"\\Q.*?(\\E|$)", re.DOTALL), "q"),
    (re.compile(r"\\[pP](\{\w+(=\w+)?\}|\w)"), "p"),
    (re.compile(r"\\x\{[0-9a-fA-F]+\}"), "x"),
    (re.compile(r"\\k<\w+>"), "k"),
    (re.compile(r"\\[hHRvVXzZGe]"), "v"),
    (re.compile(r"&&"), ""),
    (re.compile(r"\(\?<(?=[A-Za-z])"), "(?P<"),
)
_PYTHON_ONLY = re.compile(r"\(\?P|\(\?\(|\(\?#")


def check_extraction(text: str) -> None:
    """Raise ReconcileError for a text that is no extraction, or whose pattern is not valid."""
    kind, colon, argument = text.partition(":")
    bare = kind in _BARE and not colon
    if not bare and not (kind in _WITH_ARGUMENT and argument):
        raise ReconcileError(f"`{text}` is not the place of a value", hint=f"write {KINDS}")
    if kind == "regex":
        _check_pattern(argument)


def _check_pattern(pattern: str) -> None:
    """Raise ReconcileError for a pattern that Java would refuse, or that has no group.

    Python reads the pattern, with what only Java knows replaced. So a rare pattern may pass here
    and be refused by Spark; `spark.errors` words that in the same way.
    """
    if _PYTHON_ONLY.search(pattern):
        raise invalid_pattern(pattern, "Java does not support `(?P`, `(?(` and `(?#`")
    readable = pattern
    for java, python in _JAVA_ONLY:
        readable = java.sub(python, readable)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            groups = re.compile(readable).groups
    except (re.error, RecursionError, OverflowError) as exc:
        raise invalid_pattern(pattern, str(exc)) from exc
    if groups == 0:
        raise invalid_pattern(pattern, "it has no group")


def invalid_pattern(pattern: str, why: str) -> ReconcileError:
    """Return the error for a pattern."""
    return ReconcileError(
        f"regex:{pattern} is not a valid pattern for a value: {why}",
        hint=r"write a Java regular expression whose first group is the value: regex:id=(\d+)",
    )
