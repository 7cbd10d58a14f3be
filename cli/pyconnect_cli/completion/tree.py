"""The tree of commands as data for the completion files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyconnect_cli.nouns import NOUNS
from pyconnect_cli.options import GLOBAL_OPTIONS
from pyconnect_cli.verbs import VERB_ALIASES, load_noun

if TYPE_CHECKING:
    from typer._click.core import Command

# By the metavar of a verb's first argument: what the argument names decides, not the noun.
NAMES_OF_ARGUMENT = {
    "NAME": "connectors",
    "CONNECTOR": "connectors",
    "SRC": "connectors",
    "CONNECTOR/TASK": "tasks",
    "PLUGIN": "plugins",
    "LOGGER": "loggers",
    "CONTEXT": "contexts",
}
NEW_NAMES = frozenset({"connectors create"})
VALUES_OF_OPTION = {
    "--context": "contexts",
    "--to-context": "contexts",
    "--connector": "connectors",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionNode:
    """One option; `choices` are its fixed values, `names` what to ask the cluster for."""

    flags: tuple[str, ...]
    help: str
    takes_value: bool
    choices: tuple[str, ...] = ()
    names: str = ""
    files: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbNode:
    """One verb; `names` is what its arguments name: connectors, tasks, plugins.

    A verb with verbs of its own has these as `choices`, and the options of all of them.
    """

    name: str
    help: str
    options: tuple[OptionNode, ...]
    names: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NounNode:
    """One noun; `options`: its own, when it acts without a verb."""

    name: str
    help: str
    aliases: tuple[str, ...]
    verbs: tuple[VerbNode, ...]
    options: tuple[OptionNode, ...]
    choices: tuple[str, ...] = ()


def command_tree() -> tuple[NounNode, ...]:
    """Import every noun and read its verbs and options."""
    nodes = []
    for noun in NOUNS:
        command = load_noun(noun)
        verbs: tuple[VerbNode, ...] = ()
        if noun.name not in {"completion", "help"}:
            commands: dict[str, Command] = getattr(command, "commands", {})
            verbs = tuple(_verb(noun.name, name, verb) for name, verb in commands.items())
        nodes.append(
            NounNode(
                name=noun.name,
                help=noun.help,
                aliases=noun.aliases,
                verbs=verbs,
                options=_options(command),
                choices=_words(noun.name),
            )
        )
    return tuple(nodes)


def global_options() -> tuple[OptionNode, ...]:
    """The options that are accepted everywhere."""
    return tuple(
        OptionNode(
            flags=spec.flags,
            help=spec.help,
            takes_value=bool(spec.metavar),
            choices=spec.choices,
            names=VALUES_OF_OPTION.get(spec.flags[0], ""),
            files=spec.metavar == "FILE",
        )
        for spec in GLOBAL_OPTIONS
    )


def verb_aliases(noun: NounNode) -> dict[str, str]:
    """Aliases of this noun's verbs that hide no verb of its own."""
    names = {verb.name for verb in noun.verbs}
    return {a: v for a, v in VERB_ALIASES.items() if v in names and a not in names}


def _verb(noun: str, name: str, command: Command) -> VerbNode:
    inner: dict[str, Command] = getattr(command, "commands", {})
    arguments = [p.metavar or "" for p in command.params if p.param_type_name == "argument"]
    named = arguments[0].strip("[]…") if arguments else ""
    new = f"{noun} {name}" in NEW_NAMES
    return VerbNode(
        name=name,
        help=_first_line(command.help or ""),
        options=_together(inner.values()) if inner else _options(command),
        names="" if new else NAMES_OF_ARGUMENT.get(named, ""),
        choices=tuple(inner) or _words(f"{noun} {name}"),
    )


def _together(commands: Iterable[Command]) -> tuple[OptionNode, ...]:
    """Options of several commands, each once."""
    return tuple(dict.fromkeys(option for command in commands for option in _options(command)))


def _options(command: Any) -> tuple[OptionNode, ...]:
    """Own and shared options of a command, without the global ones."""
    everywhere = {spec.flags[0] for spec in GLOBAL_OPTIONS}
    shared = command.shared_options() if hasattr(command, "shared_options") else []
    nodes = []
    for option in [*command.params, *shared]:
        if option.param_type_name != "option" or option.opts[0] in everywhere:
            continue
        flags = tuple(sorted((*option.opts, *option.secondary_opts), key=len, reverse=True))
        metavar = option.metavar or ""
        nodes.append(
            OptionNode(
                flags=flags,
                help=option.help or "",
                takes_value=not (option.is_flag or option.count),
                choices=tuple(getattr(option.type, "choices", ())),
                names=VALUES_OF_OPTION.get(flags[0], ""),
                files=metavar in {"FILE", "DIR"},
            )
        )
    return tuple(nodes)


def _words(path: str) -> tuple[str, ...]:
    if path == "completion":
        return ("bash", "zsh", "fish")
    if path == "help":
        from pyconnect_cli.commands.help import TOPICS

        return tuple(TOPICS)
    return ()


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0].rstrip(".") if text.strip() else ""
