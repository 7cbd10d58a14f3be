"""The level that a temporary change restores, against the rules by which an agent sets levels."""

from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.log_lines import effective_level, initial_loggers, set_level
from pyconnect_cli.loggers import levels_to_restore

PARTS = ("a", "b", "ab")
NAMES = st.one_of(
    st.just("root"), st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map(".".join)
)
LEVELS = st.sampled_from(("DEBUG", "INFO", "ERROR"))


@given(levels=st.dictionaries(NAMES, LEVELS), logger=NAMES, level=LEVELS)
def test_every_logger_has_its_level_again(levels: dict[str, str], logger: str, level: str) -> None:
    """After a temporary change every logger has its level from before the change."""
    first = initial_loggers(levels)
    before = {name: known.level for name, known in first.items()}
    now = set_level(first, logger, level, 1).loggers
    for name, restored in levels_to_restore(before, logger, level):
        now = set_level(now, name, restored, 2).loggers
    assert {name: now[name].level for name in first} == before
    assert effective_level(now, logger) == effective_level(first, logger)


def test_only_changed_levels_are_set_back() -> None:
    """Only loggers whose level changed are set back, parents before their children."""
    before = {"root": "INFO", "x": "ERROR", "x.a": "ERROR", "x.b": "TRACE"}
    assert levels_to_restore(before, "x", "DEBUG") == (("x", "ERROR"), ("x.b", "TRACE"))
    assert levels_to_restore(before, "root", "INFO") == (("x", "ERROR"), ("x.b", "TRACE"))
    assert levels_to_restore(before, "x.a", "ERROR") == ()
    before = {"root": "INFO", "x": "WARN", "xy": "ERROR"}
    assert levels_to_restore(before, "x.a.b", "DEBUG") == (("x.a.b", "WARN"),)
    assert levels_to_restore(before, "z", "DEBUG") == (("z", "INFO"),)
