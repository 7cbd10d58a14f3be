"""The help page of a command: a value, and its layout on a terminal."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass

from pyconnect_cli.parsing.root_help import definition_lines, wrapped

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
