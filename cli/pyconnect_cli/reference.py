"""The help texts of every verb, for the generated reference; shared options are explained once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from typer import Context

from pyconnect_cli.parsing.nouns import NOUNS, Noun
from pyconnect_cli.parsing.options import OptionSpec
from pyconnect_cli.parsing.root_help import definition_lines, describe_option
from pyconnect_cli.verbs import CONTEXT_SETTINGS, NAMES_ONLY, load_noun


def verb_helps(noun: Noun) -> Iterator[tuple[str, str]]:
    """Yield the title and the help text of each verb, and of the noun itself when it acts."""
    command = load_noun(noun)
    context = Context(command, info_name=f"pyconnect {noun.name}", **CONTEXT_SETTINGS)
    context.meta[NAMES_ONLY] = True
    yield from _helps(command, context)


def shared_helps(width: int) -> Iterator[tuple[str, str]]:
    """Yield the title and the options of each group that several verbs share."""
    groups: dict[str, dict[str, OptionSpec]] = {}
    for noun in NOUNS:
        for title, specs in _groups(load_noun(noun)):
            groups.setdefault(title, {}).update((spec.name, spec) for spec in specs)
    for title, named in groups.items():
        yield title, "\n".join(definition_lines(map(describe_option, named.values()), width))


def _groups(command: Any) -> Iterable[tuple[str, tuple[OptionSpec, ...]]]:
    yield from command.shared_specs
    for verb in getattr(command, "commands", {}).values():
        yield from _groups(verb)


def _helps(command: Any, context: Context) -> Iterator[tuple[str, str]]:
    verbs = getattr(command, "commands", {})
    if not verbs or command.invoke_without_command:
        yield context.command_path, command.get_help(context).rstrip()
    for name, verb in verbs.items():
        if not verb.hidden:
            yield from _helps(verb, Context(verb, info_name=name, parent=context))
