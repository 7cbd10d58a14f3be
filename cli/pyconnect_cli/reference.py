"""The help texts of every verb, for the generated reference."""

from __future__ import annotations

from collections.abc import Iterator

from typer import Context

from pyconnect_cli.nouns import Noun
from pyconnect_cli.verbs import load_noun


def verb_helps(noun: Noun) -> Iterator[tuple[str, str]]:
    """Yield the title and the help text of each verb, or of the noun itself when it has none."""
    command = load_noun(noun)
    parent = Context(command, info_name=f"pyconnect {noun.name}")
    verbs = getattr(command, "commands", {})
    if not verbs:
        yield f"pyconnect {noun.name}", command.get_help(parent).rstrip()
    for name, verb in verbs.items():
        context = Context(verb, info_name=name, parent=parent)
        yield f"pyconnect {noun.name} {name}", verb.get_help(context).rstrip()
