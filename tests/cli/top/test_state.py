"""The user's place in the live view, and the memory between looks."""

from __future__ import annotations

import pytest

from pyconnect_cli.top.state import (
    Acted,
    Commanded,
    Entered,
    Event,
    Filtered,
    Looked,
    LookFailed,
    Marked,
    Page,
    Place,
    Sorted,
    State,
    WentBack,
    after,
    matches,
)
from tests.cli.overview.worlds import agent, child, look, positions, view


def reached(*events: Event, start: State | None = None) -> State:
    """The state after all events."""
    state = start or State()
    for event in events:
        state = after(state, event)
    return state


def test_enter_leads_to_the_tasks_and_escape_back_to_the_row() -> None:
    """The page before is as it was left."""
    state = reached(Entered("orders"))
    assert state.place == Place(page=Page.TASKS, connector="orders")
    assert after(state, WentBack()).place == Place(row="orders")


def test_a_worker_leads_to_its_tasks() -> None:
    """Those of every connector."""
    state = reached(Commanded("w"), Entered("w1:8083"))
    assert state.place == Place(page=Page.TASKS, worker="w1:8083")


def test_escape_takes_one_thing_away_at_a_time() -> None:
    """Marks, filter, page: what was done last is undone first."""
    state = reached(Commanded("tasks"), Filtered("orders"), Marked("orders/0"))
    state = after(state, WentBack())
    assert (state.marked, state.place.pattern) == (frozenset(), "orders")
    state = after(state, WentBack())
    assert (state.place.pattern, state.place.page) == ("", Page.TASKS)
    state = after(state, WentBack())
    assert state.place.page is Page.CONNECTORS
    assert after(state, WentBack()).place == state.place


@pytest.mark.parametrize(
    ("word", "page"),
    [("c", Page.CONNECTORS), ("Tasks", Page.TASKS), (" workers ", Page.WORKERS)],
)
def test_the_prompt_goes_to_a_page(word: str, page: Page) -> None:
    """By its name or first letter, in any case."""
    assert reached(Commanded(word)).place.page is page


def test_an_unknown_word_is_answered_with_the_near_one() -> None:
    """The page stays."""
    state = reached(Commanded("conectors"))
    assert state.place == Place()
    assert state.message == "`conectors` is not a command: did you mean `connectors`?"
    assert "workers" in reached(Commanded("zzz")).message


def test_q_leaves() -> None:
    """An empty prompt does nothing."""
    assert reached(Commanded("q")).leaving
    assert not reached(Commanded("")).leaving


def test_a_filter_is_a_regular_expression_or_text() -> None:
    """Text that is not an expression is searched for literally; ! inverts the filter."""
    assert matches("ord.rs", "ORDERS")
    assert matches("", "anything")
    assert matches("!", "anything")
    assert not matches("!orders", "orders RUNNING")
    assert matches("a(b", "xa(b")
    assert "taken as plain text" in reached(Filtered("a(b")).message


def test_sorting_twice_turns_round() -> None:
    """Another column starts in its first direction."""
    assert reached(Sorted("LAG"), Sorted("LAG")).descending
    state = reached(Sorted("LAG"), Sorted("LAG"), Sorted("NAME"))
    assert (state.sort, state.descending) == ("NAME", False)


def test_marks_end_with_the_action_and_the_page() -> None:
    """Space twice takes one away."""
    assert reached(Marked("a"), Marked("b"), Marked("a")).marked == {"b"}
    assert reached(Marked("a"), Acted("a: paused")).marked == frozenset()
    assert reached(Marked("a"), Commanded("t")).marked == frozenset()


def test_a_process_that_was_replaced_counts_as_a_restart() -> None:
    """One that is gone for a while and comes back with another pid does too; a new one does not."""

    def seen(pid: int | None) -> Looked:
        return Looked(look(view("a"), workers=[agent(children=[child("a", 0, pid=pid)])]))

    state = reached(seen(10), seen(10), seen(None), seen(11))
    assert state.restarts == {"a/0": 1}
    assert reached(seen(10)).restarts == {}


def test_a_look_without_positions_keeps_the_last_ones() -> None:
    """Rates of commits span the looks that have positions."""
    first, second = positions(1, s=[(0, 9)]), positions(6, s=[(5, 9)])
    state = reached(
        Looked(look(positions=first)),
        Looked(look()),
        Looked(look(positions=second)),
        Looked(look()),
    )
    assert (state.before, state.positions) == (first, second)
    assert state.look is not None
    assert state.look.positions == second


def test_a_failed_look_keeps_the_last_look() -> None:
    """The reason goes with the next look that succeeds."""
    state = reached(Looked(look(view("a"))), LookFailed("no answer"))
    assert (state.fault, state.look is not None) == ("no answer", True)
    assert after(state, Looked(look())).fault == ""
