"""The help texts of every verb, for the generated reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer import Context

from pyconnect_cli.parsing.nouns import Noun
from pyconnect_cli.verbs import CONTEXT_SETTINGS, load_noun


def verb_helps(noun: Noun) -> Iterator[tuple[str, str]]:
    """Yield the title and the help text of each verb, and of the noun itself when it acts."""
    command = load_noun(noun)
    name = f"pyconnect {noun.name}"
    yield from _helps(command, Context(command, info_name=name, **CONTEXT_SETTINGS))


def _helps(command: Any, context: Context) -> Iterator[tuple[str, str]]:
    verbs = getattr(command, "commands", {})
    if not verbs or command.invoke_without_command:
        yield context.command_path, command.get_help(context).rstrip()
    for name, verb in verbs.items():
        yield from _helps(verb, Context(verb, info_name=name, parent=context))
