"""Reads documents member by member; an error names the place of a wrong or unknown member.

A dataclass is filled from the members that have the names of its fields, by their types.
"""

import difflib
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields, is_dataclass
from types import NoneType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from pyconnect_reconcile.errors import ReconcileError

Bounds = Mapping[str, Mapping[int, int]]
"""Offsets by topic and partition."""


Filled = TypeVar("Filled")
_CHOICES = "choices"


def one_of(choices: Sequence[str], default: Any = MISSING) -> Any:
    """Return the dataclass field of a member that must be one of `choices`."""
    return field(default=default, metadata={_CHOICES: choices})


class Members:
    """The members of one object of a document; `done` refuses those that were not read."""

    def __init__(self, document: object, where: str) -> None:
        if not isinstance(document, Mapping):
            raise ReconcileError(f"{where}: is not a map")
        self._left = {str(key): value for key, value in document.items()}
        self._known: list[str] = []
        self.where = where

    def fill(self, kind: type[Filled], **given: object) -> Filled:
        """Return a `kind` with the values of the members; the caller has read those `given`.

        ReconcileError for a member that is wrong, missing or not known.
        """
        hints = get_type_hints(kind)
        values = {
            each.name: self._field(each, hints[each.name])
            for each in fields(kind)  # type: ignore[arg-type]  # a dataclass
            if each.name not in given
        }
        self.done()
        return kind(**values, **given)

    def _field(self, declared: Field[Any], hint: Any) -> object:
        name = declared.name
        default = None if declared.default is MISSING else declared.default
        if choices := declared.metadata.get(_CHOICES):
            return self.choice(name, choices, default)
        if read := _READERS.get(hint):
            return read(self, name, default)
        parts = [part for part in get_args(hint) if part is not NoneType]
        where = f"{self.where}.{name}"
        if get_origin(hint) is Mapping:
            named = self._map(name)
            return {
                str(key): Members(each, f"{where}.{key}").fill(parts[1])
                for key, each in named.items()
            }
        kind = next(each for each in (hint, *parts) if is_dataclass(each))
        document = self.take(name, None if NoneType in get_args(hint) else {})
        return None if document is None else Members(document, where).fill(cast("type", kind))

    def take(self, name: str, default: object = None) -> object:
        """Return a member unchanged; `default` when it is missing or null."""
        self._known.append(name)
        value = self._left.pop(name, None)
        return default if value is None else value

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text; ReconcileError when it is missing and has no default."""
        found = self.optional_text(name, default)
        if found is None:
            raise ReconcileError(f"{self.where}: `{name}` is missing")
        return found

    def optional_text(self, name: str, default: str | None = None) -> str | None:
        """Return a text or None."""
        value = self.take(name, default)
        if isinstance(value, (Mapping, list, bool)):
            raise self.wrong(name, "a text")
        return None if value is None else str(value)

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        """Return one of the words `choices`."""
        value = self.text(name, default)
        if value not in choices:
            raise self.wrong(name, f"one of {', '.join(choices)}")
        return value

    def number(self, name: str, default: int) -> int:
        """Return a number that is not negative."""
        value = self.take(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.wrong(name, "a number")
        return value

    def optional_number(self, name: str) -> int | None:
        """Return a number that is not negative, or None."""
        value = self.number(name, -1) if self._left.get(name) is not None else None
        self._known.append(name)
        self._left.pop(name, None)
        return value

    def switch(self, name: str, *, default: bool = False) -> bool:
        """Return a boolean."""
        value = self.take(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; a single text is a list of one."""
        value = self.take(name, [])
        entries = value if isinstance(value, list) else [value]
        if any(isinstance(entry, (Mapping, list)) for entry in entries):
            raise self.wrong(name, "a list of texts")
        return tuple(map(str, entries))

    def text_map(self, name: str) -> dict[str, str]:
        found = {str(key): each for key, each in self._map(name).items()}
        return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in found.items()}

    def _map(self, name: str) -> Mapping[object, object]:
        value = self.take(name, {})
        if not isinstance(value, Mapping):
            raise self.wrong(name, "a map")
        return value

    def bounds(self, name: str) -> dict[str, dict[int, int]]:
        """Return offsets by topic and partition."""
        value = self.take(name, {})
        try:
            assert isinstance(value, Mapping)
            return {
                str(topic): {int(partition): int(offset) for partition, offset in offsets.items()}
                for topic, offsets in value.items()
            }
        except (AssertionError, ValueError, TypeError, AttributeError) as exc:
            raise self.wrong(name, "topic: {partition: offset}") from exc

    def items(self, name: str) -> list[object]:
        value = self.take(name, [])
        if not isinstance(value, list):
            raise self.wrong(name, "a list")
        return value

    def done(self) -> None:
        """Raise ReconcileError for members that were not taken."""
        for name in self._left:
            near = difflib.get_close_matches(name, self._known, n=1)
            raise ReconcileError(
                f"{self.where}: `{name}` is not a known member",
                hint=f"did you mean `{near[0]}`?"
                if near
                else f"known members: {', '.join(sorted(set(self._known)))}",
            )

    def wrong(self, name: str, what: str) -> ReconcileError:
        """Return the error of a member that is not a valid `what`."""
        return ReconcileError(f"{self.where}: `{name}` is not {what}")


_READERS: Mapping[object, Callable[[Members, str, Any], object]] = {
    str: Members.text,
    str | None: Members.optional_text,
    int: Members.number,
    int | None: lambda members, name, _: members.optional_number(name),
    bool: lambda members, name, default: members.switch(name, default=bool(default)),
    tuple[str, ...]: lambda members, name, _: members.texts(name),
    tuple[str, ...] | None: lambda members, name, _: members.texts(name) or None,
    Mapping[str, str]: lambda members, name, _: members.text_map(name),
    Bounds: lambda members, name, _: members.bounds(name),
}
"""Readers by the type of a field; other types are dataclasses, or maps of them."""


KINDS = "header:NAME, json:PATH, avro:PATH, key, key.json:PATH, text, regex:PATTERN, timestamp"
_BARE = frozenset({"key", "text", "timestamp"})
_WITH_ARGUMENT = frozenset({"header", "json", "avro", "key.json", "regex"})
# Java's own notations, and replacements that Python accepts; their meaning does not matter here.
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
    """Raise ReconcileError for a text that is not an extraction, or whose pattern is not valid."""
    kind, colon, argument = text.partition(":")
    bare = kind in _BARE and not colon
    if not bare and not (kind in _WITH_ARGUMENT and argument):
        raise ReconcileError(f"`{text}` is not the place of a value", hint=f"write {KINDS}")
    if kind != "regex":
        return
    # Python compiles the pattern after a replacement of Java's own notations. A rare pattern may
    # pass here and be refused by Spark; `errors` gives the same message.
    if _PYTHON_ONLY.search(argument):
        raise invalid_pattern(argument, "Java does not support `(?P`, `(?(` and `(?#`")
    readable = argument
    for java, python in _JAVA_ONLY:
        readable = java.sub(python, readable)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            groups = re.compile(readable).groups
    except (re.error, RecursionError, OverflowError) as exc:
        raise invalid_pattern(argument, str(exc)) from exc
    if groups == 0:
        raise invalid_pattern(argument, "it has no group")


def invalid_pattern(pattern: str, why: str) -> ReconcileError:
    """Return the error for a pattern."""
    return ReconcileError(
        f"regex:{pattern} is not a valid pattern for a value: {why}",
        hint=r"write a Java regular expression whose first group is the value: regex:id=(\d+)",
    )
