"""Levels that change at run time (KIP-495)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.errors import InternalError, NotFoundError
from pyconnect_agent.core.log_lines import (
    LEVELS,
    effective_level,
    initial_loggers,
    parse_level,
    set_level,
)

NAMES = st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map(".".join)


@pytest.mark.parametrize("level", LEVELS)
def test_levels_ignore_case_and_blanks(level: str) -> None:
    """As Log4j reads them."""
    assert parse_level(f" {level.lower()} ") == level


def test_an_empty_level_is_another_error_than_an_unknown_one() -> None:
    """Both are Apache's answers."""
    with pytest.raises(InternalError, match=r"^Illegal null or empty Level name\.$"):
        parse_level("")
    with pytest.raises(NotFoundError, match=r"^invalid log level 'warning'\.$"):
        parse_level("warning")


def test_a_change_affects_names_by_their_text() -> None:
    """Prefixes need not end at a dot; ROOT affects all; equal levels stay undated."""
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
    """After a change the logger has the level; the same change again is empty."""
    loggers = initial_loggers({})
    for namespace, earlier in changes:
        loggers = dict(set_level(loggers, namespace, earlier, 1).loggers)
    after = set_level(loggers, name, level, 2)
    assert effective_level(after.loggers, name) == level
    again = set_level(after.loggers, name, level, 3)
    assert (again.changed, again.loggers) == ((), after.loggers)
