"""The live view on a terminal: keys and looks become events, the state becomes a table.

`state` decides the effect of each key, and `table` and `keys` the text on the screen. Requests run
on daemon threads; their results return as messages.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import ClassVar, TypeVar, cast

from rich.text import Text
from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import DataTable, Input, Static

from pyconnect_cli.errors import PyconnectError
from pyconnect_cli.overview.status import ClusterRow
from pyconnect_cli.rest.endpoint import in_background
from pyconnect_cli.top.commands import Ended, Source
from pyconnect_cli.top.screens import AskScreen, LiveTable, TextScreen, styled
from pyconnect_cli.top.state import KEYS, CommandLine, Page, State, Words, command_line_of
from pyconnect_cli.top.table import help_lines, hints, sort_columns, summary, table

Answer = TypeVar("Answer")
LAG_EVERY_S = 5.0
"""Each sink's offsets take a request, so they are read less often than states."""

BY_KEY = {key.key: key for key in KEYS}


class Top(App[None]):
    """The view. `interval_s`: time between looks; a longer look delays the next one.

    `interrupted`: a signal has ended it.
    """

    CSS = """
    Screen { layout: vertical; }
    #cluster, #running, #title, #hints, #message { height: 1; padding: 0 1; }
    #title { text-style: bold; color: $accent; }
    #hints { color: $text-muted; }
    DataTable { height: 1fr; }
    #prompt { height: 1; border: none; padding: 0 1; display: none; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        # Priority: a character typed after `/` is text, not a key of the table.
        Binding("colon", "prompt(':')", priority=True),
        Binding("slash", "prompt('/')", priority=True),
        Binding("question_mark", "help"),
        Binding("escape,q", "leave_page"),
        Binding("ctrl+c", "quit", priority=True),
        Binding("space", "mark"),
        Binding("j", "move('cursor_down')"),
        Binding("k", "move('cursor_up')"),
        Binding("g", "move('scroll_top')"),
        Binding("G", "move('scroll_bottom')"),
        *(Binding(key.key, f"verb('{key.key}')") for key in KEYS),
        *(Binding(letter, f"sort('{letter}')") for letter in "NSRLMTWA"),
    ]

    class Returned(Message):
        """A thread's future is done; `take` gets its result on the view's own thread."""

        def __init__(self, future: Future[object], take: Callable[[Future[object]], None]) -> None:
            super().__init__()
            self.future = future
            self.take = take

    def __init__(self, source: Source, interval_s: float) -> None:
        super().__init__(ansi_color=True)
        self.state = State(contexts=source.contexts)
        self.interrupted = False
        self._source = source
        self._interval_s = interval_s
        self._mounted = False
        self._looking = False
        self._looking_at_all = False
        self._switching = False
        self._lag_read_s: float | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="cluster")
        yield Static(id="running")
        yield Static(id="hints")
        yield Static(id="title")
        yield LiveTable()
        yield Static(id="message")
        yield Input(id="prompt", compact=True, select_on_focus=False)

    def on_mount(self) -> None:
        self._table.focus()
        self._mounted = True
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                # An exception in a signal handler would end the process without restoring the
                # terminal.
                loop.add_signal_handler(number, self._interrupt)
        self._draw()
        self._look()
        self.set_interval(self._interval_s, self._look)

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def on_top_returned(self, message: Returned) -> None:
        """Take the result of a thread, unless the view is ending."""
        if self.screen_stack and self.screen_stack[0].query(DataTable):
            message.take(message.future)

    def on_data_table_row_selected(self, selected: DataTable.RowSelected) -> None:
        self._apply(self.state.entered(str(selected.row_key.value)))

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        """Handle the text of a prompt; its first character is the prompt's kind."""
        kind, text = submitted.value[:1], submitted.value[1:]
        self._close_prompt()
        if kind == ":":
            self._apply(self.state.commanded(text, self._table.row))
        elif kind == "/":
            self._apply(self.state.filtered(text, self._table.row))

    def on_input_changed(self, changed: Input.Changed) -> None:
        """Filter while the pattern is typed; a prompt without its first character is closed."""
        if not self._prompt.display:
            return
        if not changed.value:
            self._close_prompt()
        elif changed.value.startswith("/"):
            self._apply(self.state.filtered(changed.value[1:], self._table.row))

    def action_prompt(self, kind: str) -> None:
        prompt = self._prompt
        prompt.display = True
        prompt.value = kind + (self.state.place.pattern if kind == "/" else "")
        self.screen.set_focus(prompt)
        prompt.cursor_position = len(prompt.value)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave `:` and `/` to an open prompt, and to other screens."""
        if action == "prompt":
            return len(self.screen_stack) == 1 and not self._prompt.display
        return super().check_action(action, parameters)

    def action_leave_page(self) -> None:
        if self._prompt.display:
            self._close_prompt()
        else:
            self._apply(self.state.went_back())

    def action_mark(self) -> None:
        if self._table.row is not None:
            self._apply(self.state.toggled(self._table.row))
            self._table.action_cursor_down()

    def action_move(self, where: str) -> None:
        getattr(self._table, f"action_{where}")()

    def action_sort(self, letter: str) -> None:
        if column := sort_columns(self.state.place.page).get(letter):
            self._apply(self.state.sorted_by(column))

    def action_help(self) -> None:
        self.push_screen(TextScreen("pyconnect top: keys", help_lines(self.state.place.page)))

    def action_verb(self, key: str) -> None:
        found, page = BY_KEY[key], self.state.place.page
        row = self._table.row
        marked = [line.name for line in self._table.shown.lines if line.name in self.state.marked]
        rows = [row] if row and (found.one or not marked) else marked
        command = command_line_of(found, page, rows)
        if command is None:
            places = " and ".join(sorted(place.value for place in found.pages))
            self._apply(self.state.acted(f"{found.shown} ({found.help}) is for rows of {places}"))
        elif found.terminal:
            # Give the terminal to a verb until the verb has ended.
            try:
                with self.suspend():
                    code = self._source.run_on_terminal(command.words)
            except SuspendNotSupported:
                self._apply(self.state.acted(f"this terminal cannot be lent; run: {command.title}"))
                return
            self._apply(self.state.acted(f"{command.title}: {f'exit {code}' if code else 'done'}"))
            self._look()
        elif not found.changes:
            # Show a verb's output on a separate screen; `live` output is read again and again.

            def reload(screen: TextScreen) -> None:
                self._run(command.words, lambda ended: screen.show(ended.lines or ("nothing",)))

            every_s = self._interval_s if command.key.live else None
            screen = TextScreen(command.title, ("reading…",), reload, every_s=every_s)
            self.push_screen(screen)
            reload(screen)
        else:
            plan = (*command.words[:2], "--dry-run", *command.words[2:])
            self._run(plan, partial(self._ask, command))

    def _ask(self, command: CommandLine, planned: Ended) -> None:
        """Show a plan and ask; after a failed plan show the error and do not ask."""
        if planned.code:
            self.push_screen(TextScreen(command.title, planned.lines))
            return

        def answered(agreed: bool | None) -> None:
            if agreed:
                self._apply(self.state.acted(f"{command.title} …"))
                self._run(command.words, acted, agreed=True)
            else:
                self._apply(self.state.acted("nothing was done"))

        def acted(ended: Ended) -> None:
            lines = [line for line in ended.lines if line]
            text = Text.from_ansi("; ".join(lines)).plain if lines else "done"
            self._apply(self.state.acted(text))
            if ended.code:
                self.push_screen(TextScreen(command.title, ended.lines))
            self._look()

        self.push_screen(AskScreen(command.title, planned.lines), answered)

    def _look(self) -> None:
        """Look at the cluster, on the page of contexts at all; a look under way is not repeated."""
        if self.state.place.page is Page.CONTEXTS and not self._looking_at_all:
            self._looking_at_all = True
            self._in_background(self._source.clusters, self._all_looked)
        if self._looking:
            return
        self._looking = True
        last = self._lag_read_s
        lag = last is None or time.monotonic() - last >= LAG_EVERY_S
        if lag:
            self._lag_read_s = time.monotonic()
        source = self._source
        self._in_background(lambda: source.look(lag=lag), partial(self._looked, source))

    def _looked(self, source: Source, future: Future[object]) -> None:
        if source is not self._source:
            return
        self._looking = False
        try:
            look = future.result()
        except PyconnectError as error:
            self._apply(self.state.look_failed(error.message))
        else:
            self._apply(self.state.looked(look))  # type: ignore[arg-type] # what `look` returns

    def _all_looked(self, future: Future[object]) -> None:
        self._looking_at_all = False
        rows = cast("Sequence[ClusterRow]", future.result())
        self._apply(self.state.clusters_looked(rows))

    def _switched(self, future: Future[object]) -> None:
        self._switching = False
        try:
            source = future.result()
        except PyconnectError as error:
            self._apply(self.state.not_switched(error.message))
            return
        while len(self.screen_stack) > 1:
            # Questions and texts belong to the cluster that is left.
            self.pop_screen()
        self._source.close()
        self._source = cast("Source", source)
        self._lag_read_s = None
        self._looking = False
        self._apply(self.state.switched(self._source.contexts))
        self._look()

    def _run(self, words: Words, take: Callable[[Ended], None], *, agreed: bool = False) -> None:
        width = max(self.size.width - 4, 40)
        source = self._source

        def taken(future: Future[object]) -> None:
            # The user must not agree to a plan for the cluster that was shown before.
            if agreed or source is self._source:
                take(cast("Ended", future.result()))

        self._in_background(lambda: source.run(words, width=width, agreed=agreed), taken)

    def _in_background(
        self, work: Callable[[], Answer], take: Callable[[Future[object]], None]
    ) -> None:
        future = in_background(work)
        # Any thread may post a message; after the end of the view the message is dropped.
        future.add_done_callback(lambda done: self.post_message(self.Returned(done, take)))  # type: ignore[arg-type]

    def _apply(self, state: State) -> None:
        before = self.state.place
        self.state = state
        if self.state.leaving:
            self.exit()
            return
        if self.state.wanted is not None and not self._switching:
            # Another thread opens the cluster, because its secrets may come from a slow command.
            context = self.state.wanted
            self._switching = True
            self._in_background(lambda: self._source.other(context), self._switched)
        if self.state.place.page is Page.CONTEXTS is not before.page:
            self._look()
        self._draw(self.state.place.row if self.state.place != before else self._table.row)

    def _draw(self, row: str | None = None) -> None:
        """Draw the state; the cursor stays on the row named `row`."""
        if not self._mounted:
            return
        width = self.size.width
        first, second = summary(self.state, self._source.title)
        self._static("cluster").update(styled(first))
        self._static("running").update(styled(second))
        self._static("hints").update(hints(self.state.place.page, width - 2))
        self._static("message").update(Text(self.state.message, no_wrap=True, overflow="ellipsis"))
        shown = table(self.state, width=width - 2, now_ms=round(time.time() * 1000))
        self._static("title").update(Text(shown.title))
        self._table.show(shown, row)

    def _fatal_error(self) -> None:
        """End without the library's own report, which prints local variables and so secrets."""
        self._close_messages_no_wait()

    def _interrupt(self) -> None:
        self.interrupted = True
        self.exit()

    @property
    def fault(self) -> Exception | None:
        return self._exception

    def _close_prompt(self) -> None:
        self._prompt.display = False
        self.screen_stack[0].set_focus(self._table)

    @property
    def _table(self) -> LiveTable:
        return self.screen_stack[0].query_one(LiveTable)

    @property
    def _prompt(self) -> Input:
        return self.screen_stack[0].query_one("#prompt", Input)

    def _static(self, name: str) -> Static:
        return self.screen_stack[0].query_one(f"#{name}", Static)
