"""The view on textual's test terminal: keys in, cells and questions out."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.widgets import Input, Static

from pyconnect_cli.overview.status import ClusterRow
from pyconnect_cli.top.commands import Ended
from pyconnect_cli.top.screens import AskScreen, LiveTable, TextScreen
from pyconnect_cli.top.state import KEYS, Key, KnownContext, Page
from pyconnect_cli.top.table import NAVIGATION, sort_columns
from pyconnect_cli.top.view import Top
from tests.cli.overview.worlds import look, view
from tests.cli.top.shown import ShownCluster, busy_cluster
from tests.support.cases import cases

# These tests use an event loop and threads.
pytestmark = pytest.mark.wire


class Stage:
    """A running view with its terminal and cluster."""

    def __init__(self, top: Top, pilot: Pilot[None], cluster: ShownCluster) -> None:
        self.top = top
        self.pilot = pilot
        self.cluster = cluster

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a condition; fail after ten seconds."""
        async with asyncio.timeout(10):
            while not holds():
                await self.pilot.pause(0.01)

    async def screen(self, kind: type[AskScreen | TextScreen], text: str) -> None:
        """Wait for a screen that shows a text."""
        await self.until(lambda: isinstance(self.top.screen, kind) and text in self.text)

    @property
    def text(self) -> str:
        """Return the text around the table of the topmost screen."""
        return "\n".join(str(static.render()) for static in self.top.screen.query(Static))

    @property
    def names(self) -> list[str]:
        return [str(row.value) for row in self.table.rows]

    @property
    def row(self) -> str:
        return self.names[self.table.cursor_row]

    @property
    def table(self) -> LiveTable:
        return self.top.screen_stack[0].query_one(LiveTable)


@asynccontextmanager
async def playing(
    cluster: ShownCluster | None = None, width: int = 100, interval_s: float = 3600
) -> AsyncIterator[Stage]:
    """Show a view on a terminal; return after the first look."""
    shown = cluster or ShownCluster(busy_cluster())
    top = Top(shown, interval_s=interval_s)
    async with top.run_test(size=(width, 24)) as pilot:
        stage = Stage(top, pilot, shown)
        await stage.until(lambda: top.state.look is not None or bool(top.state.fault))
        yield stage


async def test_the_first_look_fills_the_table() -> None:
    """The cursor is on the failed connector; G, enter and escape open and leave its tasks."""
    async with playing() as stage:
        assert stage.names == ["orders-lake", "clicks", "inventory", "invoices", "orders"]
        assert "3 of 3 workers healthy" in stage.text
        assert "connectors (5)" in stage.text
        await stage.press("G", "enter")
        assert stage.names == ["orders/0", "orders/1", "orders/2"]
        assert "tasks of orders (3)" in stage.text
        await stage.press("escape")
        assert stage.row == "orders"


async def test_the_cursor_stays_on_its_row_when_others_come_and_go() -> None:
    """The cursor follows the row's name when the order of rows changes."""
    async with playing() as stage:
        await stage.press("j", "j", "j")
        assert stage.row == "invoices"
        stage.cluster.now = look(view("a"), view("b"), view("invoices"))
        stage.top._look()
        await stage.until(lambda: stage.names == ["a", "b", "invoices"])
        assert stage.row == "invoices"


async def test_a_cell_changes_in_place() -> None:
    """If the rows are the same, only changed cells are drawn."""
    async with playing(ShownCluster(look(view("a")))) as stage:
        before = list(stage.table.rows)
        stage.cluster.now = look(view("a", state="PAUSED"))
        stage.top._look()
        await stage.until(lambda: str(stage.table.get_cell("a", "STATE")) == "PAUSED")
        assert list(stage.table.rows) == before


async def test_the_filter_follows_the_typing_and_ends_with_escape() -> None:
    """Letters in the prompt are text; a key of another page runs no verb."""
    async with playing() as stage:
        await stage.press("slash", "o", "r", "d")
        assert stage.names == ["orders-lake", "orders"]
        await stage.press("enter", "escape")
        assert len(stage.names) == 5
        assert stage.cluster.ran == []
        await stage.press("ctrl+k")
        assert "is for rows of tasks" in stage.top.state.message
        assert stage.cluster.ran == []


async def test_the_prompt_goes_to_another_page() -> None:
    """`:w` opens the workers; deleting the `:` closes the prompt, and `:q` leaves."""
    async with playing() as stage:
        await stage.press("colon", "w", "enter")
        assert stage.top.state.place.page is Page.WORKERS
        await stage.press("colon", "backspace")
        assert not stage.top.screen.query_one(Input).display
        await stage.press("colon", "q", "enter")
        await stage.until(lambda: not stage.top.is_running)
        assert stage.top.fault is None


async def test_a_change_shows_its_plan_and_is_done_only_with_y() -> None:
    """The plan is the verb's output with --dry-run; enter and n do not agree."""
    plan = ("connectors", "restart", "--dry-run", "orders-lake")
    cluster = ShownCluster(busy_cluster(), answers={plan: Ended(0, ("would restart orders-lake",))})

    async with playing(cluster) as stage:
        await stage.press("r")
        await stage.screen(AskScreen, "would restart orders-lake")
        assert "pyconnect connectors restart orders-lake" in stage.text
        await stage.press("enter", "n")
        assert cluster.ran == [(plan, False)]
        assert stage.top.state.message == "nothing was done"
        await stage.press("r")
        await stage.screen(AskScreen, "would restart")
        await stage.press("y")
        act = ("connectors", "restart", "orders-lake")
        await stage.until(lambda: cluster.ran[-1] == (act, True))
        await stage.until(lambda: cluster.looks > 1)


async def test_marked_rows_are_one_batch() -> None:
    """Marked rows have the order of the table; the action removes the marks."""
    async with playing() as stage:
        await stage.press("G", "space", "k", "space", "p")
        await stage.screen(AskScreen, "pyconnect connectors pause")
        assert "pause invoices orders" in stage.text
        await stage.press("y")
        await stage.until(lambda: not stage.top.state.marked)


async def test_a_failed_plan_asks_no_question() -> None:
    """The error of the plan is shown instead of a question."""
    words = ("tasks", "kill", "--dry-run", "orders-lake/1")
    cluster = ShownCluster(busy_cluster(), answers={words: Ended(9, ("error: a Java worker",))})

    async with playing(cluster) as stage:
        await stage.press("enter", "ctrl+k")
        await stage.screen(TextScreen, "a Java worker")
        await stage.press("escape")
        assert stage.row == "orders-lake/1"


async def test_a_failed_change_shows_all_that_the_verb_printed() -> None:
    """The user sees the error and the hint."""
    act = ("connectors", "stop", "orders-lake")
    cluster = ShownCluster(busy_cluster(), answers={act: Ended(6, ("error: busy", "hint: wait"))})

    async with playing(cluster) as stage:
        await stage.press("s")
        await stage.screen(AskScreen, "stop")
        await stage.press("y")
        await stage.screen(TextScreen, "hint: wait")


async def test_texts_are_read_again_on_demand() -> None:
    """`r` runs the verb again; other keys do nothing on a text."""
    async with playing() as stage:
        await stage.press("d")
        await stage.screen(TextScreen, "connectors describe orders-lake")
        await stage.press("r")
        await stage.until(lambda: len(stage.cluster.ran) == 2)
        await stage.press("d", "p", "q")
        assert len(stage.cluster.ran) == 2
        assert not isinstance(stage.top.screen, TextScreen)


async def test_shifted_letters_sort() -> None:
    """The same letter reverses the order; the help page lists all keys."""
    async with playing() as stage:
        await stage.press("R")
        assert stage.names[0] == "orders"
        await stage.press("R")
        assert stage.names[0] == "orders-lake"
        await stage.press("question_mark")
        await stage.screen(TextScreen, "kill a task's process")
        assert "shift-l" in stage.text


async def test_a_silent_cluster_stays_on_the_screen_with_its_reason() -> None:
    """The last look stays with the reason of the failure; without a look it is alone."""
    async with playing() as stage:
        stage.cluster.unreachable = "no worker answered"
        stage.top._look()
        await stage.until(lambda: "not up to date: no worker answered" in stage.text)
        assert len(stage.names) == 5
    async with playing(ShownCluster(look(), unreachable="connection refused")) as stage:
        assert "prod  connection refused" in stage.text


@cases("width", 60, 80, 120)
async def test_the_table_fits_its_terminal(width: int) -> None:
    """The table does not scroll sideways."""
    async with playing(width=width) as stage:
        assert stage.table.virtual_size.width <= width
        assert stage.table.max_scroll_x == 0


CONTEXTS = tuple(
    KnownContext(name=name, urls=f"http://{name}:8083", current=name == "prod")
    for name in ("lost", "prod", "test")
)


async def test_another_context_is_watched() -> None:
    """A context is chosen by enter in the list or by name; nothing of the first cluster is kept."""
    other = ShownCluster(look(view("elsewhere")), title="test", contexts=CONTEXTS)
    cluster = ShownCluster(busy_cluster(), contexts=CONTEXTS, others={"test": other})
    other.others = {"prod": cluster}

    async with playing(cluster) as stage:
        await stage.press("space", "colon", *"ctx", "enter")
        assert stage.names == ["lost", "prod", "test"]
        await stage.press("G", "enter")
        await stage.until(lambda: stage.names == ["elsewhere"])
        assert cluster.closed
        assert stage.top.state.marked == frozenset()
        assert "test" in stage.text
        await stage.press("colon", *"ctx", "space", *"prod", "enter")
        await stage.until(lambda: "orders" in stage.names)


async def test_the_page_of_contexts_is_the_fleet() -> None:
    """Clusters with faults come first, with their causes; enter opens one."""
    silent = ClusterRow(name="test", silence="no answer within 5s")
    other = ShownCluster(look(view("elsewhere")), title="test", contexts=CONTEXTS)
    cluster = ShownCluster(busy_cluster(), contexts=CONTEXTS, others={"test": other})
    cluster.fleet = (silent,)

    async with playing(cluster, interval_s=0.05) as stage:
        await stage.press("colon", *"ctx", "enter")
        await stage.until(lambda: stage.names[:1] == ["test"])
        cells = [cell.text for cell in stage.table.shown.lines[0].cells]
        assert {"unreachable", "no answer within 5s"} <= set(cells)
        await stage.press("g", "enter")
        await stage.until(lambda: "elsewhere" in stage.names)


@cases(
    "typed, message",
    ("lost", "lost: its password command failed"),
    ("tset", "context `tset` is not defined; did you mean `test`?"),
)
async def test_a_context_that_cannot_be_used_leaves_the_cluster(typed: str, message: str) -> None:
    """The view stays on its cluster and shows the reason."""
    cluster = ShownCluster(busy_cluster(), contexts=CONTEXTS)

    async with playing(cluster) as stage:
        await stage.press("colon", *"ctx", "space", *typed, "enter")
        await stage.until(lambda: stage.top.state.message == message)
        assert "orders" in stage.names
        assert not cluster.closed


async def test_a_log_is_followed_until_that_is_switched_off() -> None:
    """New lines appear without a key, and the end stays visible; `s` stops that."""
    words = ("connectors", "logs", "--tail", "500", "orders-lake")
    lines = tuple(f"line {number}" for number in range(100))
    cluster = ShownCluster(busy_cluster(), answers={words: Ended(0, lines)})

    async with playing(cluster, interval_s=0.05) as stage:
        await stage.press("l")
        await stage.screen(TextScreen, "line 99")
        cluster.answers[words] = Ended(0, (*lines, "line 100"))
        await stage.screen(TextScreen, "line 100")
        scroll = stage.top.screen.query_one(VerticalScroll)
        await stage.until(lambda: scroll.max_scroll_y > 0 and scroll.is_vertical_scroll_end)
        await stage.press("s")
        assert "follow off" in stage.text
        looks = len(cluster.ran)
        cluster.answers[words] = Ended(0, (*lines, "line 100", "line 101"))
        await stage.pilot.pause(0.2)
        assert len(cluster.ran) <= looks + 1
        await stage.press("s")
        await stage.screen(TextScreen, "line 101")


async def test_a_question_goes_with_the_cluster_that_it_is_about() -> None:
    """The question is closed with its cluster, so y does not reach the next one."""
    other = ShownCluster(look(view("elsewhere")), title="test", contexts=CONTEXTS)
    cluster = ShownCluster(busy_cluster(), contexts=CONTEXTS, others={"test": other})
    cluster.reachable.clear()

    async with playing(cluster) as stage:
        await stage.press("colon", *"ctx", "space", *"test", "enter", "p")
        await stage.screen(AskScreen, "connectors pause")
        cluster.reachable.set()
        await stage.until(lambda: stage.names == ["elsewhere"])
        await stage.press("y")
        await stage.until(lambda: len(other.ran) == 1)
        assert other.ran == [(("connectors", "get", "-o", "yaml", "elsewhere"), False)]


async def test_lines_of_a_log_are_filtered_as_rows_are() -> None:
    """The filter applies to new lines; escape removes the filter first, then closes the log."""
    words = ("connectors", "logs", "--tail", "500", "orders-lake")
    lines = ("INFO began", "\x1b[31mERROR failed\x1b[0m")
    cluster = ShownCluster(busy_cluster(), answers={words: Ended(0, lines)})

    async with playing(cluster) as stage:
        await stage.until(lambda: stage.row == "orders-lake")
        await stage.press("l")
        await stage.screen(TextScreen, "INFO began")
        await stage.press("slash", "e", "r", "r")
        await stage.until(lambda: "INFO began" not in stage.text)
        assert "ERROR failed" in stage.text
        assert "/err" in stage.text
        assert stage.names, "the table behind keeps its rows"
        await stage.press("enter")
        cluster.answers[words] = Ended(0, (*lines, "INFO goes on", "ERROR failed again"))
        await stage.press("r")
        await stage.screen(TextScreen, "ERROR failed again")
        assert "INFO" not in stage.text
        await stage.press("escape")
        await stage.screen(TextScreen, "INFO goes on")
        await stage.press("slash", "!", "e", "r", "r")
        await stage.until(lambda: "ERROR" not in stage.text)
        await stage.press("enter", "escape", "escape")
        await stage.until(lambda: not isinstance(stage.top.screen, TextScreen))


@pytest.mark.parametrize(
    ("key", "page"),
    [(key, page) for key in KEYS for page in sorted(key.pages, key=lambda page: page.value)],
    ids=lambda value: value.key if isinstance(value, Key) else value.value,
)
async def test_each_key_of_a_verb_runs_its_command_line(key: Key, page: Page) -> None:
    """A changing verb shows its plan first; a verb that needs the terminal cannot run here."""
    async with playing() as stage:
        await stage.press("colon", *page.value, "enter")
        await stage.until(lambda: stage.top.state.place.page is page and bool(stage.names))
        await stage.press(key.key)
        words = key.words(page, [stage.row])
        if key.terminal:
            await stage.until(lambda: " ".join(words) in stage.top.state.message)
            return
        run = (*words[:2], "--dry-run", *words[2:]) if key.changes else words
        await stage.until(lambda: (run, False) in stage.cluster.ran)
        await stage.screen(AskScreen if key.changes else TextScreen, " ".join(words))


@pytest.mark.parametrize(
    ("page", "letter", "title"),
    [(page, letter, title) for page in Page for letter, title in sort_columns(page).items()],
)
async def test_each_key_that_sorts_sorts(page: Page, letter: str, title: str) -> None:
    """Each letter sorts by the column that the help names."""
    async with playing() as stage:
        await stage.press("colon", *page.value, "enter")
        await stage.until(lambda: stage.top.state.place.page is page)
        await stage.press(letter)
        await stage.until(lambda: stage.top.state.sort == title)


MOVES: dict[str, tuple[Sequence[str], Callable[[Stage], bool]]] = {
    "enter": (["enter"], lambda stage: stage.top.state.place.page is Page.TASKS),
    "esc": (["enter", "escape"], lambda stage: "connectors (5)" in stage.text),
    ":": (["colon", "w", "enter"], lambda stage: stage.top.state.place.page is Page.WORKERS),
    ":ctx NAME": (
        ["colon", *"ctx", "space", *"test", "enter"],
        lambda stage: stage.names == ["elsewhere"],
    ),
    "/": (["slash", *"clicks", "enter"], lambda stage: stage.names == ["clicks"]),
    "space": (["space"], lambda stage: stage.top.state.marked == {"orders-lake"}),
    "j k g G": (["G", "k", "g", "j"], lambda stage: stage.row == "clicks"),
    "?": (["question_mark"], lambda stage: isinstance(stage.top.screen, TextScreen)),
    "ctrl-c": (["ctrl+c"], lambda stage: not stage.top.is_running or stage.top._exit),
}


@pytest.mark.parametrize("shown", [shown for shown, _ in NAVIGATION])
async def test_each_key_that_moves_moves(shown: str) -> None:
    """Each key of the first section of the help page moves the view."""
    keys, moved = MOVES[shown]
    other = ShownCluster(look(view("elsewhere")), title="test", contexts=CONTEXTS)
    cluster = ShownCluster(busy_cluster(), contexts=CONTEXTS, others={"test": other})
    async with playing(cluster) as stage:
        await stage.press(*keys)
        await stage.until(lambda: moved(stage))
