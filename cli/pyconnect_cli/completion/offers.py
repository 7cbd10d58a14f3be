"""Answers of the hidden command `__complete`: the words that a shell may offer.

`pyconnect __complete WORD…` gets the words after `pyconnect`. The user is typing the last word,
which may be empty. The command prints one offer a line, `WORD<TAB>HELP`, or `:files` if the shell
is to complete names of files. The three shell scripts beside this module pass the words and choose
the offers that begin with the last word.
Completion never fails and never asks a question: after an error the shell has no offers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pyconnect_cli.completion.candidates import candidates
from pyconnect_cli.parsing.nouns import NOUNS, Noun, find_noun
from pyconnect_cli.parsing.options import GLOBAL_OPTIONS

if TYPE_CHECKING:
    from typer._click.core import Command

FILES = ":files"
SETTINGS_OF_NAMES = frozenset({"--url", "--context", "--config"})
"""Options that decide which cluster is asked for names."""
NAMES_OF_ARGUMENT = {
    "NAME": "connectors",
    "CONNECTOR": "connectors",
    "SRC": "connectors",
    "CONNECTOR/TASK": "tasks",
    "PLUGIN": "plugins",
    "LOGGER": "loggers",
    "CONTEXT": "contexts",
}
"""By the metavar of a verb's first argument."""
NEW_NAMES = frozenset({"connectors create"})
NAMES_OF_OPTION = {
    "--context": "contexts",
    "--to-context": "contexts",
    "--connector": "connectors",
}


class Offer(NamedTuple):
    """A word that can be typed here, and one line about it."""

    word: str
    help: str = ""


class Option(NamedTuple):
    """An option of a command; `names` is the kind of names that are its values."""

    flags: tuple[str, ...]
    help: str
    takes_value: bool
    choices: tuple[str, ...] = ()
    names: str = ""
    files: bool = False


GLOBAL = tuple(
    Option(
        flags=spec.flags,
        help=spec.help,
        takes_value=bool(spec.metavar),
        choices=spec.choices,
        names=NAMES_OF_OPTION.get(spec.flags[0], ""),
        files=spec.metavar == "FILE",
    )
    for spec in GLOBAL_OPTIONS
)


def print_offers(words: Sequence[str]) -> int:
    """Print the offers; always return 0, because a shell shows anything else."""
    with contextlib.suppress(Exception):
        for offer in offers(words):
            if offer.word.isprintable():
                print(offer.word, offer.help, sep="\t")  # noqa: T201
    return 0


def offers(words: Sequence[str]) -> Iterator[Offer]:
    """Yield the words that can replace the last word."""
    *before, current = words or [""]
    line = TypedWords()
    for word in before:
        line.read(word)
    flag, equals, _ = current.partition("=")
    if line.open_option is not None:
        yield from line.values_of(line.open_option)
    elif current.startswith("--") and equals:
        option = line.option(flag)
        for value in line.values_of(option) if option else ():
            yield value if value.word == FILES else Offer(f"{flag}={value.word}", value.help)
    elif current.startswith("-") and not line.only_arguments:
        for option in line.options:
            yield from (Offer(known, option.help) for known in option.flags)
    else:
        yield from line.words()


@dataclass(slots=True)
class TypedWords:
    """The words that have been typed, read from left to right."""

    noun: Noun | None = None
    path: str = ""
    command: Command | None = None
    settings: dict[str, object] = field(default_factory=dict)
    open_option: Option | None = None
    only_arguments: bool = False

    def read(self, word: str) -> None:
        """Take one complete word."""
        if self.open_option is not None:
            self._keep(self.open_option.flags[0], word)
            self.open_option = None
        elif self.only_arguments:
            pass
        elif word == "--":
            self.only_arguments = True
        elif word.startswith("-"):
            flag, equals, value = word.partition("=")
            option = self.option(flag)
            if option is not None and option.takes_value:
                if equals:
                    self._keep(option.flags[0], value)
                else:
                    self.open_option = option
        else:
            self._enter(word)

    def option(self, flag: str) -> Option | None:
        """Return the option that is known here by this flag."""
        return next((option for option in self.options if flag in option.flags), None)

    @property
    def options(self) -> tuple[Option, ...]:
        """Options of the command that has been typed so far, then the global ones."""
        own = () if self.command is None else _options(self.command)
        return (*own, *GLOBAL, Option(("--help",), "show the help page", takes_value=False))

    def words(self) -> Iterable[Offer]:
        """Return nouns, verbs, or names of the kind that the verb takes."""
        if self.noun is None:
            return [Offer(noun.name, noun.help) for noun in NOUNS]
        verbs = _verbs(self.command)
        if verbs and not self.only_arguments:
            return [
                Offer(name, _first_line(verb)) for name, verb in verbs.items() if not verb.hidden
            ]
        if self.noun.name == "help":
            from pyconnect_cli.about.help import SUMMARIES

            return [Offer(topic, text) for topic, text in SUMMARIES.items()]
        return self._named("" if self.path in NEW_NAMES else self.names)

    @property
    def names(self) -> str:
        """The kind of names that the command's first argument takes; empty: none."""
        params = self.command.params if self.command else ()
        metavars = [p.metavar or "" for p in params if p.param_type_name == "argument"]
        return NAMES_OF_ARGUMENT.get(metavars[0].strip("[]…"), "") if metavars else ""

    def values_of(self, option: Option) -> Iterable[Offer]:
        """Return the values of an option."""
        if option.files:
            return [Offer(FILES)]
        if option.names:
            return self._named(option.names)
        return [Offer(choice) for choice in option.choices]

    def _named(self, kind: str) -> Iterable[Offer]:
        return [Offer(name) for name in candidates(kind, self.settings)] if kind else []

    def _keep(self, flag: str, value: str) -> None:
        if flag == "--url":
            urls = self.settings.get("url", ())
            assert isinstance(urls, tuple)
            self.settings["url"] = (*urls, value)
        elif flag in SETTINGS_OF_NAMES:
            self.settings[flag.lstrip("-")] = value

    def _enter(self, word: str) -> None:
        """Go from the root to a noun, from a noun to a verb."""
        from pyconnect_cli.noun_groups import VERB_ALIASES, load_noun

        if self.noun is None:
            self.noun = find_noun(word)
            if self.noun is not None:
                self.command = load_noun(self.noun)
                self.path = self.noun.name
        elif verbs := _verbs(self.command):
            name = word if word in verbs else VERB_ALIASES.get(word, "")
            if name in verbs:
                self.command = verbs[name]
                self.path = f"{self.path} {name}"


def _verbs(command: Command | None) -> Mapping[str, Command]:
    verbs: Mapping[str, Command] = getattr(command, "commands", {})
    return verbs


def _options(command: Any) -> tuple[Option, ...]:
    """Return own and shared options of a command, without the global ones."""
    everywhere = {spec.flags[0] for spec in GLOBAL_OPTIONS}
    shared = command.shared_options() if hasattr(command, "shared_options") else []
    return tuple(
        Option(
            flags=tuple(sorted((*option.opts, *option.secondary_opts), key=len, reverse=True)),
            help=option.help or "",
            takes_value=not (option.is_flag or option.count),
            choices=tuple(getattr(option.type, "choices", ())),
            names=NAMES_OF_OPTION.get(max(option.opts, key=len), ""),
            files=option.metavar in {"FILE", "DIR"},
        )
        for option in [*command.params, *shared]
        if option.param_type_name == "option" and option.opts[0] not in everywhere
    )


def _first_line(command: Command) -> str:
    return (command.help or "").strip().partition("\n")[0].rstrip(".")
