"""The user's place in the live view, and the state kept between looks."""

from pyconnect_cli.overview.rows import ClusterLook
from pyconnect_cli.top.state import Page, Place, State, matches
from tests.cli.overview.worlds import agent, child, look, positions, view


def test_enter_leads_to_the_tasks_and_escape_back_to_the_row() -> None:
    """Enter works on a connector or worker; the previous page has its row again."""
    state = State().entered("orders")
    assert state.place == Place(page=Page.TASKS, connector="orders")
    assert state.went_back().place == Place(row="orders")
    state = State().commanded("w").entered("w1:8083")
    assert state.place == Place(page=Page.TASKS, worker="w1:8083")


def test_escape_takes_one_thing_away_at_a_time() -> None:
    """Escape removes the marks first, then the filter, then the page."""
    state = State().commanded("tasks").filtered("orders").toggled("orders/0")
    state = state.went_back()
    assert (state.marked, state.place.pattern) == (frozenset(), "orders")
    state = state.went_back()
    assert (state.place.pattern, state.place.page) == ("", Page.TASKS)
    state = state.went_back()
    assert state.place.page is Page.CONNECTORS
    assert state.went_back().place == state.place


def test_words_of_the_prompt() -> None:
    """A name or first letter of a page, in any case, opens it; an unknown word keeps the page."""
    pages = {"c": Page.CONNECTORS, "Tasks": Page.TASKS, " workers ": Page.WORKERS}
    assert {word: State().commanded(word).place.page for word in pages} == pages
    state = State().commanded("conectors")
    assert state.place == Place()
    assert state.message == "`conectors` is not a command: did you mean `connectors`?"
    assert "workers" in State().commanded("zzz").message
    assert State().commanded("q").leaving
    assert not State().commanded("").leaving


def test_a_filter_is_a_regular_expression_or_text() -> None:
    """Text that is not a valid expression is searched literally; `!` inverts the filter."""
    assert matches("ord.rs", "ORDERS")
    assert matches("", "anything")
    assert matches("!", "anything")
    assert not matches("!orders", "orders RUNNING")
    assert matches("a(b", "xa(b")
    assert "taken as plain text" in State().filtered("a(b").message


def test_sorting_turns_round_and_marks_end() -> None:
    """Another column starts in its first direction; an action or another page removes the marks."""
    assert State().sorted_by("LAG").sorted_by("LAG").descending
    state = State().sorted_by("LAG").sorted_by("LAG").sorted_by("NAME")
    assert (state.sort, state.descending) == ("NAME", False)
    assert State().toggled("a").toggled("b").toggled("a").marked == {"b"}
    assert State().toggled("a").acted("a: paused").marked == frozenset()
    assert State().toggled("a").commanded("t").marked == frozenset()


def test_a_process_that_was_replaced_counts_as_a_restart() -> None:
    """A new pid of the same task counts, also after a look without the process."""

    def seen(pid: int | None) -> ClusterLook:
        return look(view("a"), workers=[agent(children=[child("a", 0, pid=pid)])])

    state = State().looked(seen(10)).looked(seen(10)).looked(seen(None)).looked(seen(11))
    assert state.restarts == {"a/0": 1}
    assert State().looked(seen(10)).restarts == {}


def test_looks_keep_positions_and_the_last_success() -> None:
    """Positions stay when a look has none, for rates between looks; a failure keeps both."""
    first, second = positions(1, s=[(0, 9)]), positions(6, s=[(5, 9)])
    state = (
        State()
        .looked(look(positions=first))
        .looked(look())
        .looked(look(positions=second))
        .looked(look())
    )
    assert (state.before, state.positions) == (first, second)
    assert state.look is not None
    assert state.look.positions == second
    state = State().looked(look(view("a"))).look_failed("no answer")
    assert (state.fault, state.look is not None) == ("no answer", True)
    assert state.looked(look()).fault == ""
