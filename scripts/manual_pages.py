"""Manual pages: the help texts of the commands in roff's man macros.

`pyconnect(1)` explains what all commands share; each noun has a page with its verbs. Options that
every verb takes are on the first page only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from typer import Context

from pyconnect_cli.about.help import TOPICS
from pyconnect_cli.errors import ExitCode
from pyconnect_cli.noun_groups import CONTEXT_SETTINGS, load_noun
from pyconnect_cli.parsing.help_text import HelpText
from pyconnect_cli.parsing.nouns import NOUNS, Noun
from pyconnect_cli.parsing.options import GLOBAL_OPTIONS, OptionSpec
from pyconnect_cli.parsing.root_help import SUMMARY, describe_option

SHARED = "Global options"
POINTER = "All global options"
# Escapes for text that roff would read as a request or a dash.
ESCAPES = str.maketrans(
    {"\\": "\\e", "-": "\\-", "`": "\\(ga", "'": "\\(aq", "^": "\\(ha", "~": "\\(ti"}
)


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name of each page's file and its text."""
    yield "pyconnect.1", main_page()
    for noun in NOUNS:
        if noun.name != "help":  # its topics are sections of the first page
            yield f"pyconnect-{noun.name}.1", noun_page(noun)


def main_page() -> str:
    """Return pyconnect(1)."""
    nouns = [(f"pyconnect-{noun.name}(1)", noun.help) for noun in NOUNS if noun.name != "help"]
    exits = [(str(code.value), code.meaning) for code in ExitCode]
    lines = [
        _title("pyconnect"),
        *_section("NAME", [f"pyconnect \\- {escaped('operate Kafka Connect clusters')}"]),
        *_section("SYNOPSIS", [".B pyconnect", escaped("[OPTIONS] NOUN VERB [ARGUMENTS]…")]),
        *_section("DESCRIPTION", [escaped(SUMMARY)]),
        *_section("NOUNS", _definitions(nouns)),
        *_section(
            "OPTIONS",
            [
                escaped("Every option may also follow the verb."),
                *_definitions(map(_with_variable, GLOBAL_OPTIONS)),
            ],
        ),
    ]
    for topic, text in TOPICS.items():
        if topic != "exit-codes":
            lines += _section(topic.upper(), _verbatim(text.rstrip().splitlines()))
    lines += _section("EXIT STATUS", _definitions(exits))
    return _page(lines)


def _with_variable(option: OptionSpec) -> tuple[str, str]:
    term, text = describe_option(option)
    return term, f"{text} [{option.env}]"


def noun_page(noun: Noun) -> str:
    """Return the page of a noun: a section for each of its verbs."""
    name = f"pyconnect-{noun.name}"
    lines = [
        _title(name),
        *_section("NAME", [f"{escaped(name)} \\- {escaped(noun.help.rstrip('.'))}"]),
    ]
    if noun.aliases:
        also = ", ".join(f"pyconnect {alias}" for alias in noun.aliases)
        lines += _section("SYNOPSIS", [escaped(f"Also: {also}.")])
    command = load_noun(noun)
    for path, verb, context in _verbs(command, f"pyconnect {noun.name}"):
        page = ManPage()
        verb.format_help(context, page)
        lines += _section(path.upper(), page.lines)
    lines += _section("SEE ALSO", [escaped("pyconnect(1): options of every verb, exit codes")])
    return _page(lines)


class ManPage(HelpText):
    """The formatter of help pages, which writes man macros here."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._skipping = False

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the usage line."""
        _ = prefix
        self._add([f".B {escaped(prog)}", escaped(args)])

    def write_text(self, text: str) -> None:
        """Write paragraphs; the pointer to the shared options is SEE ALSO here."""
        if text.startswith(POINTER):
            return
        for paragraph in re.split(r"\n\s*\n", text.strip()):
            self._add([".PP", escaped(" ".join(paragraph.split()))])

    def write_paragraph(self) -> None:
        """Do nothing: paragraphs begin with their own request."""

    def write_dl(
        self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write terms and their explanations."""
        _ = col_max, col_spacing
        self._add(_definitions(rows))

    def write_lines(self, lines: Sequence[str]) -> None:
        """Write lines as they are."""
        self._add(_verbatim(lines))

    def write(self, string: str) -> None:
        """Write text without empty lines."""
        if string.strip():
            self._add([".PP", escaped(" ".join(string.split()))])

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Begin a section; leave out the section of the shared options."""
        if name == SHARED:
            self._skipping = True
            yield
            self._skipping = False
            return
        self._add([f".SS {escaped(name)}"])
        yield

    @contextmanager
    def indentation(self) -> Iterator[None]:
        """Do nothing: macros indent."""
        yield

    def indent(self) -> None:
        """Nothing; see `indentation`."""

    def dedent(self) -> None:
        """Nothing; see `indentation`."""

    def _add(self, lines: Iterable[str]) -> None:
        if not self._skipping:
            self.lines += lines


def escaped(text: str) -> str:
    """Return text that roff prints as it is."""
    shown = text.translate(ESCAPES)
    return f"\\&{shown}" if shown.startswith(".") else shown


# The parser does not export the types of its classes.
def _verbs(command: Any, path: str) -> Iterator[tuple[str, Any, Context]]:
    context = Context(command, info_name=path, **CONTEXT_SETTINGS)
    yield from _below(command, context)


def _below(command: Any, context: Context) -> Iterator[tuple[str, Any, Context]]:
    verbs = getattr(command, "commands", {})
    if not verbs or command.invoke_without_command:
        yield context.command_path, command, context
    for name, verb in verbs.items():
        yield from _below(verb, Context(verb, info_name=name, parent=context))


def _title(name: str) -> str:
    return f'.TH "{escaped(name.upper())}" 1 "" "pyconnect" "pyconnect manual"'


def _section(title: str, lines: Iterable[str]) -> list[str]:
    return [f'.SH "{escaped(title)}"', *lines]


def _definitions(rows: Iterable[tuple[str, str]]) -> list[str]:
    lines = []
    for term, text in rows:
        lines += [".TP", f".B {escaped(term)}", escaped(" ".join(text.split()))]
    return lines


def _verbatim(lines: Iterable[str]) -> list[str]:
    return [".PP", ".nf", *(escaped(line) if line else ".sp" for line in lines), ".fi"]


def _page(lines: Iterable[str]) -> str:
    return "\n".join(line for line in lines if line) + "\n"
