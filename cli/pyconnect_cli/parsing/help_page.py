"""The help page of a command: a value, and its layout on a terminal.

The page of `pyconnect --help` is made from tables only: the parser takes 70 ms to import, and the
most typed command of all does not wait for it.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from pyconnect_cli.parsing.nouns import NOUNS
from pyconnect_cli.parsing.options import GLOBAL_OPTIONS, OptionSpec

SUMMARY = (
    "Operate Kafka Connect clusters: Apache's workers and pyconnect agents alike, over their REST"
    " interface."
)
FIRST_LINES = (
    ("pyconnect context set NAME --url URL --use", "name your cluster"),
    ("pyconnect status", "states, causes of failures, lag"),
    ("pyconnect connectors list", "connectors with their states"),
    ("pyconnect connectors describe NAME", "one of them, with its errors"),
    ("pyconnect top", "the live view"),
    ("pyconnect sandbox up", "a Kafka for trials"),
)
EPILOG = (
    "Every option may also follow the verb: `pyconnect connectors list -o json`.\n"
    "Topics: pyconnect help exit-codes|contexts|selectors|offsets|output|cron"
)


def root_help(width: int | None = None) -> str:
    """Return the help of the command itself, wrapped to `width` columns (the terminal's)."""
    columns = min(width or shutil.get_terminal_size().columns, 100)
    nouns = [(noun.name, noun.help) for noun in NOUNS]
    own = [("--version", "version of this command"), ("-h, --help", "help page")]
    options = [
        (flags, f"{text} [{option.env}]")
        for option in GLOBAL_OPTIONS
        for flags, text in (describe_option(option),)
    ]
    return "\n".join(
        [
            "Usage: pyconnect [OPTIONS] NOUN VERB [ARGUMENTS]…",
            "",
            *wrapped(SUMMARY, columns - 2, indent="  "),
            "",
            "Nouns:",
            *definition_lines(nouns, columns),
            "",
            "Options:",
            *definition_lines([*options, *own], columns),
            "",
            EPILOG,
        ]
    )


def first_screen(width: int | None = None) -> str:
    """Return what the command prints without words: it fits a terminal of 24 lines."""
    columns = min(width or shutil.get_terminal_size().columns, 100)
    nouns = ", ".join(noun.name for noun in NOUNS)
    return "\n".join(
        [
            "Usage: pyconnect [OPTIONS] NOUN VERB [ARGUMENTS]…",
            "",
            *wrapped(SUMMARY, columns - 2, indent="  "),
            "",
            "Begin with:",
            *definition_lines(FIRST_LINES, columns),
            "",
            *wrapped(f"Nouns: {nouns}", columns - 2, first="", indent="  "),
            "",
            "All nouns and options: pyconnect --help; verbs of a noun: pyconnect NOUN --help",
        ]
    )


def describe_option(option: OptionSpec) -> tuple[str, str]:
    """Return an option's flags with its value, and its help."""
    flags = ", ".join(sorted(option.flags, key=len))
    return (f"{flags} {option.metavar}".rstrip(), option.text)


def definition_lines(rows: Iterable[tuple[str, str]], width: int, most: int = 32) -> list[str]:
    """Lay out terms and their explanations in two columns; `most`: the widest indentation."""
    entries = list(rows)
    indent = min(max(len(term) for term, _ in entries) + 4, most)
    lines: list[str] = []
    for term, text in entries:
        head = f"  {term}".ljust(indent)
        if len(term) + 4 > indent or not text:
            lines.append(f"  {term}")
            head = " " * indent
        if text:
            first, *below = wrapped(text, max(width - indent, 30))
            lines += [head + first, *(" " * indent + line for line in below)]
    return lines


def wrapped(text: str, width: int, *, indent: str = "", first: str | None = None) -> list[str]:
    """Return the lines of a paragraph; options and paths are not broken at their hyphens."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


Rows = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpPage:
    """One page. `sections`: titles with terms and their explanations; examples have none.

    `more`: the pointer to more help.
    """

    path: str
    arguments: str
    text: str
    sections: tuple[tuple[str, Rows], ...]
    more: str = ""

    @property
    def paragraphs(self) -> list[str]:
        """The paragraphs of the text, each on one line."""
        return [" ".join(part.split()) for part in re.split(r"\n\s*\n", self.text.strip())]


def help_text(page: HelpPage) -> str:
    """Return the text of a page for the terminal."""
    width = max(min(shutil.get_terminal_size().columns, 100) - 2, 50)
    usage = f"Usage: {page.path} "
    if width >= len(usage) + 20:
        lines = wrapped(page.arguments, width, first=usage, indent=" " * len(usage))
    else:
        lines = [usage, *wrapped(page.arguments, width, indent=" " * 11)]
    for paragraph in page.paragraphs:
        lines += ["", *wrapped(paragraph, width, indent="  ")]
    for title, rows in page.sections:
        lines += ["", f"{title}:", *definition_lines(rows, width, most=34)]
    return "\n".join([*lines, *(["", *wrapped(page.more, width)] if page.more else [])])
