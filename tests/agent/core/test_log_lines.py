"""The kept log lines of connectors and tasks, the search in them, and levels of loggers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.errors import InternalError, NotFoundError
from pyconnect_agent.core.log_lines import (
    LEVELS,
    OVERHEAD_BYTES,
    LineRings,
    LogLine,
    LogQuestion,
    effective_level,
    initial_loggers,
    parse_level,
    set_level,
)
from tests.support.cases import cases

ROOM = 10 * (OVERHEAD_BYTES + 10)
"""Room for ten lines of ten characters."""


def line(number: int, task: int | None = 0, **changes: str) -> LogLine:
    return LogLine(
        number=number,
        time_ms=number * 1_000,
        level=changes.get("level", "INFO"),
        logger="l",
        connector=changes.get("connector", "c"),
        task=task,
        pid=1,
        text=changes.get("text", f"line {number:05}"),
    )


def numbers(rings: LineRings, **question: object) -> list[int]:
    asked = LogQuestion(**{"connector": "c", **question})  # type: ignore[arg-type]
    return [found.number for found in rings.find(asked)]


def test_the_last_lines_are_kept() -> None:
    """New lines replace the oldest of their task; the last line is kept at any length."""
    rings = LineRings(ROOM)
    rings.add(line(1, task=1))
    for number in range(2, 40):
        rings.add(line(number))
    assert numbers(rings, task=0) == list(range(30, 40))
    assert numbers(rings, task=1) == [1]
    rings = LineRings(ROOM)
    rings.add(line(1))
    rings.add(line(2, text="x" * 10 * ROOM))
    assert numbers(rings) == [2]


def test_without_room_the_quietest_go() -> None:
    """At the total limit the task without new lines for longest loses its lines."""
    rings = LineRings(ROOM, total_bytes=ROOM)
    for number in range(1, 11):
        rings.add(line(number, task=number))
    rings.add(line(11, task=1))
    assert numbers(rings) == [1, *range(3, 12)]
    rings = LineRings(0)
    rings.add(line(1))
    assert numbers(rings) == []


def test_lines_of_all_tasks_come_in_order() -> None:
    """The lines of a connector and of all its tasks are in one order."""
    rings = LineRings(ROOM)
    for number, task in enumerate((0, None, 1, 0, None)):
        rings.add(line(number, task=task))
    rings.add(line(5, connector="other"))
    assert numbers(rings, after=0) == [1, 2, 3, 4]


@cases(
    "question, found",
    ({"level": "WARN"}, [2, 3, 4]),
    ({"level": "ERROR"}, [3, 4]),
    ({"since_ms": 3_000}, [3, 4]),
    ({"after": 3}, [4]),
    ({"limit": 2}, [3, 4]),
    ({"task": 7}, []),
)
def test_a_question_selects(question: dict[str, object], found: list[int]) -> None:
    """Level, time and number select lines; of too many the newest; unknown levels are shown."""
    rings = LineRings(ROOM)
    for number, level in enumerate(("INFO", "WARN", "ERROR", "LOUD"), 1):
        rings.add(line(number, level=level))
    assert numbers(rings, **question) == found


NAMES = st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map(".".join)


@pytest.mark.parametrize("level", LEVELS)
def test_levels_ignore_case_and_blanks(level: str) -> None:
    """Levels are read as by Log4j, in any case and with blanks around them."""
    assert parse_level(f" {level.lower()} ") == level


def test_an_empty_level_is_another_error_than_an_unknown_one() -> None:
    """Apache has different errors for an empty and an unknown level."""
    with pytest.raises(InternalError, match=r"^Illegal null or empty Level name\.$"):
        parse_level("")
    with pytest.raises(NotFoundError, match=r"^invalid log level 'warning'\.$"):
        parse_level("warning")


def test_a_change_affects_names_by_their_text() -> None:
    """A name also affects names that continue it without a dot, and ROOT affects all."""
    known = initial_loggers({"a.bc": "INFO", "a.b": "WARN", "ab": "DEBUG"})
    change = set_level(known, "a.b", "WARN", 5)
    assert change.changed == ("a.bc",)
    assert change.loggers["a.b"].last_modified_ms is None
    assert change.loggers["a.bc"].last_modified_ms == 5
    assert change.loggers["ab"].level == "DEBUG"
    change = set_level(initial_loggers({"a": "WARN"}), "a.b.c", "WARN", 5)
    assert change.changed == ()
    assert change.loggers["a.b.c"].to_json() == {"level": "WARN", "last_modified": None}
    change = set_level(initial_loggers({"a": "WARN", "b": "DEBUG"}), "ROOT", "DEBUG", 5)
    assert change.changed == ("a", "root")
    assert list(change.loggers) == ["a", "b", "root"]


@given(
    changes=st.lists(st.tuples(NAMES | st.just("root"), st.sampled_from(LEVELS))),
    name=NAMES,
    level=st.sampled_from(LEVELS),
)
def test_a_change_takes_effect_and_repeating_it_changes_nothing(
    changes: list[tuple[str, str]], name: str, level: str
) -> None:
    """After a change the logger has the level, and the same change again does nothing."""
    loggers = initial_loggers({})
    for namespace, earlier in changes:
        loggers = dict(set_level(loggers, namespace, earlier, 1).loggers)
    after = set_level(loggers, name, level, 2)
    assert effective_level(after.loggers, name) == level
    again = set_level(after.loggers, name, level, 3)
    assert (again.changed, again.loggers) == ((), after.loggers)
