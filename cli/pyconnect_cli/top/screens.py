"""The widgets: the table, a text to read, and a plan to agree to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Input, Static

from pyconnect_cli.top.state import matches
from pyconnect_cli.top.table import Line, Part, Table


class TextScreen(ModalScreen[None]):
    """Lines to scroll through; `reload` fetches them again, None if they never change.

    With `every_s` they are read again at that interval. The end stays in sight until the user
    scrolls away from it or presses `s`. The text of the `/` prompt chooses the lines that are
    shown, as it chooses rows of a table.
    """

    CSS = """
    TextScreen { layout: vertical; background: ansi_default; }
    TextScreen #title { text-style: bold; height: 1; padding: 0 1; }
    TextScreen #hints { height: 1; padding: 0 1; color: $text-muted; }
    TextScreen VerticalScroll { height: 1fr; padding: 0 1; }
    TextScreen #pattern { height: 1; border: none; padding: 0 1; display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "back"),
        Binding("r", "reload", "read again"),
        Binding("s", "follow", "follow"),
        Binding("slash", "filter", "filter"),
        Binding("j", "move('down')"),
        Binding("k", "move('up')"),
        Binding("g", "move('home')"),
        Binding("G", "move('end')"),
    ]

    def __init__(
        self,
        title: str,
        lines: Sequence[str],
        reload: Callable[[TextScreen], None] | None = None,
        *,
        every_s: float | None = None,
    ) -> None:
        super().__init__()
        self._title = title
        self._lines = lines
        self._reload = reload
        self._every_s = every_s
        self._following = every_s is not None
        self._reading = reload is not None
        self._pattern = ""

    def compose(self) -> ComposeResult:
        yield Static(Text(self._title), id="title")
        with VerticalScroll():
            yield Static(self._text(), id="text")
        yield Static(self._hints(), id="hints")
        yield Input(id="pattern", compact=True, select_on_focus=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        if self._every_s is not None:
            self.set_interval(self._every_s, self._read_again)

    def show(self, lines: Sequence[str]) -> None:
        """Replace the text; a user who is at its end is moved to the new end."""
        self._reading = False
        if not self.is_attached or tuple(lines) == tuple(self._lines):
            return
        scroll = self.query_one(VerticalScroll)
        at_end = scroll.scroll_offset.y >= scroll.max_scroll_y
        self._lines = lines
        self.query_one("#text", Static).update(self._text())
        if self._following and at_end:
            self.call_after_refresh(scroll.scroll_end, animate=False)

    def on_input_changed(self, changed: Input.Changed) -> None:
        """Filter while the pattern is typed; a prompt without its `/` is closed."""
        changed.stop()
        if changed.input.display:
            self._filter(changed.value[1:])
            if not changed.value:
                self._close_prompt()

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        """Keep the filter, and give the focus back to the text."""
        submitted.stop()
        self._close_prompt()

    def action_filter(self) -> None:
        prompt = self.query_one("#pattern", Input)
        prompt.display = True
        prompt.value = f"/{self._pattern}"
        prompt.focus()
        prompt.cursor_position = len(prompt.value)

    def action_close(self) -> None:
        """Close the prompt; without a prompt remove the filter; without a filter go back."""
        if self.query_one("#pattern", Input).display:
            self._close_prompt()
        elif self._pattern:
            self._filter("")
        else:
            self.dismiss()

    def action_reload(self) -> None:
        if self._reload is not None:
            self._reading = True
            self._reload(self)

    def action_follow(self) -> None:
        """Stop following the end of the text, or start again."""
        if self._every_s is None:
            return
        self._following = not self._following
        self.query_one("#hints", Static).update(self._hints())
        if self._following:
            self.action_move("end")
            self._read_again()

    def action_move(self, where: str) -> None:
        scroll = self.query_one(VerticalScroll)
        {
            "down": scroll.scroll_down,
            "up": scroll.scroll_up,
            "home": scroll.scroll_home,
            "end": scroll.scroll_end,
        }[where](animate=False)

    def _read_again(self) -> None:
        """Read again, unless following is switched off or the last request has not ended."""
        if self._following and not self._reading:
            self.action_reload()

    def _filter(self, pattern: str) -> None:
        self._pattern = pattern
        self.query_one("#text", Static).update(self._text())
        self.query_one("#hints", Static).update(self._hints())

    def _close_prompt(self) -> None:
        self.query_one("#pattern", Input).display = False
        self.query_one(VerticalScroll).focus()

    def _hints(self) -> Text:
        parts = ["esc:back", f"/{self._pattern}" if self._pattern else "/:filter"]
        if self._reload is not None:
            parts.append("r:read again")
        if self._every_s is not None:
            parts.append(f"s:follow {'on' if self._following else 'off'}")
        return Text("  ".join(parts))

    def _text(self) -> Text:
        lines = [Text.from_ansi(line) for line in self._lines]
        return Text("\n").join(line for line in lines if matches(self._pattern, line.plain))


class AskScreen(ModalScreen[bool]):
    """A command line with its plan; only `y` agrees."""

    CSS = """
    AskScreen { align: center middle; }
    AskScreen Vertical { width: 90%; max-width: 100; height: auto; max-height: 80%;
                         border: round $warning; padding: 0 1; }
    AskScreen VerticalScroll { height: auto; max-height: 14; margin: 1 0; }
    AskScreen #command { text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,Y", "answer(True)", "yes"),
        Binding("n,N,escape,q", "answer(False)", "no"),
    ]

    def __init__(self, command: str, plan: Sequence[str]) -> None:
        super().__init__()
        self._command = command
        self._plan = plan

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(self._command), id="command")
            with VerticalScroll():
                yield Static(Text.from_ansi("\n".join(self._plan)), id="plan")
            yield Static("Do it?  y: yes   n: no", id="question")

    def action_answer(self, agreed: bool) -> None:
        self.dismiss(agreed)


STYLES = {
    "good": "green",
    "bad": "bold red",
    "warning": "yellow",
    "dim": "dim",
    "strong": "bold",
    "accent": "cyan",
}


class LiveTable(DataTable[Text]):
    """Shows a `Table`; a row's key is its name."""

    def __init__(self) -> None:
        super().__init__(cursor_type="row", zebra_stripes=False)
        self.shown = Table(title="", heads=(), lines=())

    @property
    def row(self) -> str | None:
        at, lines = self.cursor_row, self.shown.lines
        return lines[at].name if 0 <= at < len(lines) else None

    def show(self, table: Table, row: str | None) -> None:
        """Show a table, with the cursor on `row`; for the same rows draw only changed cells."""
        before, self.shown = self.shown, table
        if table == before:
            return
        same_heads = table.heads == before.heads
        names = [line.name for line in table.lines]
        if same_heads and names == [line.name for line in before.lines]:
            for line, old in zip(table.lines, before.lines, strict=True):
                for head, cell, old_cell, text in zip(
                    table.heads, line.cells, old.cells, _cells(table, line), strict=True
                ):
                    if cell != old_cell:
                        self.update_cell(line.name, head.key, text)
            return
        self.clear(columns=not same_heads)
        if not same_heads:
            for head in table.heads:
                label = Text(head.text, justify="right" if head.right else "left")
                self.add_column(label, width=head.width, key=head.key)
        for line in table.lines:
            self.add_row(*_cells(table, line), key=line.name)
        if row in names:
            self.move_cursor(row=names.index(row), animate=False)


def _cells(table: Table, line: Line) -> list[Text]:
    return [
        Text(
            cell.text,
            style=STYLES.get(cell.style or "", ""),
            justify="right" if head.right else "left",
            no_wrap=True,
        )
        for head, cell in zip(table.heads, line.cells, strict=True)
    ]


def styled(parts: Sequence[Part]) -> Text:
    return Text.assemble(
        *((text, STYLES.get(style or "", "")) for text, style in parts),
        no_wrap=True,
        overflow="ellipsis",
    )
