"""The commands that documents show exist, with the options that they show."""

import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from pyconnect_cli.app import app

ROOT = Path(__file__).resolve().parents[2]
GENERATED = "<!-- Made by scripts/generate-"
DOCUMENTS = [
    ROOT / "README.md",
    *sorted(
        path for path in (ROOT / "docs").rglob("*.md") if GENERATED not in path.read_text("utf-8")
    ),
]
BLOCK = re.compile(r"^ *```(?:sh|console|text|crontab)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(pyconnect [^`]+)`")
COMMAND = re.compile(r"(?:^|[$;&|*] |\buntil )\s*(pyconnect (?:'[^'\n]*'|[^\n;&|])*)", re.MULTILINE)
PLACEHOLDER = re.compile(r"…|\[|\bNOUN\b|\bVERB\b|\bJOB\b")


class Shown(NamedTuple):
    document: str
    line: str


def shown(document: Path) -> list[Shown]:
    """Return each line of a block and each code span that starts with the command."""
    text = document.read_text("utf-8")
    blocks = "\n".join(BLOCK.findall(text)).replace("\\\n", " ")
    found = [*COMMAND.findall(blocks), *(" ".join(span.split()) for span in INLINE.findall(text))]
    name = str(document.relative_to(ROOT))
    return [Shown(name, line.strip()) for line in found if not PLACEHOLDER.search(line)]


SHOWN = sorted({each for document in DOCUMENTS for each in shown(document)})


def unknown(line: str) -> str | None:
    """Return the first noun, verb or option that does not exist."""
    context = get_command(app).make_context("pyconnect", ["help"], resilient_parsing=True)
    known = options(context)
    words = iter(shlex.split(line.partition(" > ")[0], comments=True)[1:])
    for word in words:
        if word.startswith("-"):
            name, equals, _ = word.partition("=")
            if name not in known:
                return word
            if not equals and takes_value(known[name]):
                next(words, None)
        elif isinstance(context.command, TyperGroup):
            below = context.command.get_command(context, word)
            if below is None:
                return None if context.command.invoke_without_command else word
            context = type(context)(below, parent=context, info_name=word)
            known |= options(context)
    return None


def options(context: Any) -> dict[str, Any]:
    """Return the options of a command by each of their names, the global ones included."""
    return {
        name: parameter
        for parameter in context.command.get_params(context)
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("-")
    }


def takes_value(option: Any) -> bool:
    return not (option.is_flag or option.count)


@pytest.mark.parametrize("each", SHOWN, ids=lambda each: f"{each.document}: {each.line}")
def test_a_command_of_the_documents_exists(each: Shown) -> None:
    """Noun, verb and options of each command in the documents exist."""
    assert unknown(each.line) is None


def test_how_tos_and_tutorials_show_commands() -> None:
    """The patterns find commands in how-tos and tutorials."""
    found = {each.document for each in SHOWN}
    pages = {
        str(page.relative_to(ROOT))
        for page in DOCUMENTS
        if page.parent.name in ("how-to", "tutorial")
    }
    assert pages <= found
    assert len(SHOWN) > 100


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("pyconnect nonsense list", "nonsense"),
        ("pyconnect offsets vanish orders", "vanish"),
        ("pyconnect --context prod offsets get orders --nonsense", "--nonsense"),
    ],
)
def test_a_command_that_does_not_exist_is_found(line: str, word: str) -> None:
    assert unknown(line) == word
