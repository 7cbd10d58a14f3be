"""Manual pages: the help texts of the commands in roff's man macros.

`pyconnect(1)` explains what all commands share; each noun has a page with its verbs. Options that
every verb takes are on the first page only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from typer import Context

from pyconnect_cli.about import TOPICS
from pyconnect_cli.app import CONTEXT_SETTINGS, import_noun
from pyconnect_cli.errors import ExitCode
from pyconnect_cli.parsing.help_page import SUMMARY, HelpPage, describe_option
from pyconnect_cli.parsing.nouns import NOUNS, Noun
from pyconnect_cli.parsing.options import GLOBAL_OPTIONS, OptionSpec

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
    command = import_noun(noun)
    for path, verb, context in _verbs(command, f"pyconnect {noun.name}"):
        lines += _section(path.upper(), verb_lines(verb.page(context)))
    lines += _section("SEE ALSO", [escaped("pyconnect(1): options of every verb, exit codes")])
    return _page(lines)


def verb_lines(page: HelpPage) -> list[str]:
    """Return a help page in man macros, without the options that every verb takes."""
    lines = [f".B {escaped(page.path)}", escaped(page.arguments)]
    for paragraph in page.paragraphs:
        lines += [".PP", escaped(paragraph)]
    for title, rows in page.sections:
        if title == SHARED:
            continue
        lines.append(f".SS {escaped(title)}")
        terms = [term for term, _ in rows]
        lines += _definitions(rows) if any(text for _, text in rows) else _verbatim(terms)
    return lines if page.more.startswith(POINTER) else [*lines, ".PP", escaped(page.more)]


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
