"""The screens above the table: a text to read, and a plan to agree to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static


class TextScreen(ModalScreen[None]):
    """Lines to scroll through; `reload` fetches them again, None if they never change."""

    CSS = """
    TextScreen { layout: vertical; background: ansi_default; }
    TextScreen #title { text-style: bold; height: 1; padding: 0 1; }
    TextScreen #hints { height: 1; padding: 0 1; color: $text-muted; }
    TextScreen VerticalScroll { height: 1fr; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "back"),
        Binding("r", "reload", "read again"),
        Binding("j", "move('down')"),
        Binding("k", "move('up')"),
        Binding("g", "move('home')"),
        Binding("G", "move('end')"),
    ]

    def __init__(
        self, title: str, lines: Sequence[str], reload: Callable[[TextScreen], None] | None = None
    ) -> None:
        super().__init__()
        self._title = title
        self._lines = lines
        self._reload = reload

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Static(Text(self._title), id="title")
        with VerticalScroll():
            yield Static(self._text(), id="text")
        yield Static("esc:back  r:read again" if self._reload else "esc:back", id="hints")

    def on_mount(self) -> None:
        """Let the cursor keys scroll."""
        self.query_one(VerticalScroll).focus()

    def show(self, lines: Sequence[str]) -> None:
        """Replace the text."""
        self._lines = lines
        self.query_one("#text", Static).update(self._text())

    def action_close(self) -> None:
        """Go back to the table."""
        self.dismiss()

    def action_reload(self) -> None:
        """Fetch the text again."""
        if self._reload is not None:
            self._reload(self)

    def action_move(self, where: str) -> None:
        """Scroll by a line, or to an end."""
        scroll = self.query_one(VerticalScroll)
        {
            "down": scroll.scroll_down,
            "up": scroll.scroll_up,
            "home": scroll.scroll_home,
            "end": scroll.scroll_end,
        }[where](animate=False)

    def _text(self) -> Text:
        return Text.from_ansi("\n".join(self._lines))


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
        """Lay the question out."""
        with Vertical():
            yield Static(Text(self._command), id="command")
            with VerticalScroll():
                yield Static(Text.from_ansi("\n".join(self._plan)), id="plan")
            yield Static("Do it?  y: yes   n: no", id="question")

    def action_answer(self, agreed: bool) -> None:
        """Close with the answer."""
        self.dismiss(agreed)
