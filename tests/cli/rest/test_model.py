"""Reading JSON into types, and the line of a stack trace that names the cause."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import pytest

from pyconnect_cli.rest.model import Json, bind, member, root_cause
from tests.support.cases import cases


class _Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    size: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whole:
    url: str
    kind: str = member("class")
    colour: _Colour = _Colour.RED
    parts: tuple[_Part, ...] = ()
    tags: Mapping[str, str | None]
    raw: Json


def test_members_become_the_types_of_their_fields() -> None:
    """A missing or null member gives the field's default; a member without default is required."""
    body = {"class": 7, "colour": "red", "parts": [{"size": "3"}], "tags": {"a": 1, "b": None}}
    assert bind(_Whole, body, url="u") == _Whole(
        url="u", kind="7", parts=(_Part(size=3),), tags={"a": "1", "b": None}, raw=body
    )
    body = {"class": "c", "parts": None, "tags": {}}
    found = bind(_Whole, body, url="u")
    assert (found.parts, found.colour) == ((), _Colour.RED)
    assert bind(_Part, {"size": None}) == _Part(size=None)
    with pytest.raises(KeyError, match="size"):
        bind(_Part, {})


@cases("body", [], {"size": "many"})
def test_another_shape_or_value_is_refused(body: object) -> None:
    """The error is TypeError or ValueError, which the caller reports."""
    with pytest.raises((TypeError, ValueError)):
        bind(_Part, body)


def test_lists_and_maps_are_types_too() -> None:
    """An answer may be a list or a map."""
    assert bind(list[_Part], [{"size": 1}]) == [_Part(size=1)]
    assert bind(dict[str, list[str]], {"a": [1]}) == {"a": ["1"]}


JAVA = """\
org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to an exception.
\tat org.apache.kafka.connect.runtime.WorkerSinkTask.deliver(WorkerSinkTask.java:1)
\tSuppressed: java.io.IOException: while closing
\tCaused by: java.io.IOException: of the suppressed
Caused by: java.lang.RuntimeException: cannot write
\t... 9 more
Caused by: java.io.IOException: disk full
\t... 10 more
"""
PYTHON = """\
Traceback (most recent call last):
  File "a.py", line 1, in put
OSError: disk full
while writing b

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "b.py", line 1, in run
ConnectError: the sink failed
"""
HANDLING = """\
Traceback (most recent call last):
  File "a.py", line 1, in get
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in get
ValueError: no x
"""


@cases(
    "trace, line",
    ("java.lang.Error: full\n\tat org.example.A.b\n", "java.lang.Error: full"),
    ('Traceback (most recent call last):\n  File "x"\nOSError: full\n', "OSError: full"),
    (JAVA, "java.io.IOException: disk full"),
    (PYTHON, "OSError: disk full"),
    (HANDLING, "ValueError: no x"),
    ("\n", ""),
)
def test_the_line_of_a_trace_that_names_the_cause(trace: str, line: str) -> None:
    """Java writes the cause last and Python first; the operator needs the cause."""
    assert root_cause(trace) == line
