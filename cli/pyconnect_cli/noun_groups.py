"""The parser's classes of nouns, whose modules are imported when they are used."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
import typer.main
from typer.core import TyperGroup

from pyconnect_cli.errors import UsageError
from pyconnect_cli.parsing.nouns import (
    ALMOST,
    NOUNS,
    SAID_ELSEWHERE,
    VERB_ALIASES,
    KnownCommand,
    Noun,
    find_noun,
    known_commands,
    meant_line,
    near_names,
    near_verbs,
)
from pyconnect_cli.rest.masking import mask_command
from pyconnect_cli.verbs import Context, Sections, SharedOptions, Verb, records_of

if TYPE_CHECKING:
    from pyconnect_cli.parsing.help_page import HelpPage

CONTEXT_SETTINGS: dict[str, Any] = {"help_option_names": ["--help", "-h"], "max_content_width": 100}


class NounGroup(SharedOptions, TyperGroup):
    """A noun: its verbs, with aliases, and global options before the verb."""

    def get_params(self, ctx: Context) -> list[Any]:
        return [*super().get_params(ctx), *self.shared_options()]

    def page(self, ctx: Context) -> HelpPage:
        """Return the help page; of a noun without verbs with the whole help of its function."""
        self.subcommand_metavar = "[VERB]" if self.invoke_without_command else "VERB [ARGUMENTS]…"
        page = super().page(ctx)
        whole = inspect.getdoc(self.callback) if self.callback else None
        return replace(page, text=whole) if whole and whole.startswith(page.text) else page

    def get_command(self, ctx: Context, cmd_name: str) -> Any:
        """Return a verb by its name or an alias of it."""
        found = super().get_command(ctx, cmd_name)
        return found or super().get_command(ctx, VERB_ALIASES.get(cmd_name, ""))

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the verb; the error for an unknown one names similar ones."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise unknown_word(ctx, args[0], self)
        return super().resolve_command(ctx, args)

    def sections(self, ctx: Context) -> Sections:
        """Return the verbs, whose options are their own, and those of a noun that acts itself."""
        own = records_of(super().get_params(ctx), ctx)
        records = [record for record in own if record[0] != "-h, --help"]
        verbs = [(name, summary(verb)) for name, verb in self.commands.items() if not verb.hidden]
        shared = self.shared_sections(ctx) if records else []
        return [("Options", records), ("Verbs", verbs), *shared]

    def more(self, ctx: Context) -> str:
        return f"Options of a verb: {ctx.command_path} VERB --help"


class RootGroup(NounGroup):
    """`pyconnect` itself: nouns are imported when they are used."""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - the parser's signature
        return [noun.name for noun in NOUNS]

    def get_command(self, ctx: Context, cmd_name: str) -> Any:  # noqa: ARG002
        noun = find_noun(cmd_name)
        return None if noun is None else load_noun(noun)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the noun. A verb before its noun is understood, unless it changes something."""
        line = None if find_noun(args[0]) else meant_line(args)
        if line and known_commands()[line[0]].verbs[line[1]].changes:
            raise UsageError(
                f"`{ctx.command_path} {mask_command(args)}` is not a command: the noun comes first",
                hint=f"write: {ctx.command_path} {mask_command(line)}",
            )
        return super().resolve_command(ctx, list(line or args))

    def get_help(self, ctx: Context) -> str:  # noqa: ARG002 - the parser's signature
        """Return the text that `pyconnect --help` prints without a parser."""
        from pyconnect_cli.parsing.help_page import root_help

        return root_help()


def summary(command: Any) -> str:
    return " ".join((command.help or "").strip().partition("\n\n")[0].split())


def unknown_word(context: Context, word: str, group: NounGroup) -> UsageError:
    """Return the usage error for a noun or verb that does not exist, with similar ones.

    A verb that changes something is proposed only for a word that is nearer to it than to every
    verb that reads.
    """
    path = context.command_path
    root, _, noun = path.partition(" ")
    said = SAID_ELSEWHERE.get(f"{getattr(find_noun(noun), 'name', '')} {word}".strip())
    if said:
        near = [f"{root} {said}"]
    elif word == "help" or (noun == "help" and find_noun(word)):
        near = [f"{root} {word} --help" if noun == "help" else f"{path} --help"]
    elif isinstance(group, RootGroup):
        nouns = group.list_commands(context)
        begun = [name for name in nouns if len(word) > 2 and name.startswith(word.lower())]
        every = [name for each in known_commands().values() for name in each.verbs]
        found = (begun or near_names(word, [*nouns, *every], limit=1, likeness=ALMOST))[:1]
        if not found or find_noun(found[0]):
            near = [f"{root} {name}" for name in found]
        else:
            meant = known_commands()["connectors"].verbs.get(found[0])
            near = [f"{root} connectors {found[0]}"] if meant and not meant.changes else []
    elif (line := meant_line(["get", word, "NAME"])) and find_noun(word):
        near = [f"{root} {' '.join(line)}"]
    else:
        known = group.list_commands(context)
        changing = [n for n, verb in group.commands.items() if getattr(verb, "changes", False)]
        reading = [name for name in known if name not in changing]
        near = [f"{path} {name}" for name in near_verbs(word, reading, changing)]
    hint = f"list them: {path} --help"
    owners = [name for name, command in known_commands().items() if word in command.verbs]
    if near:
        hint = f"did you mean {' or '.join(f'`{line}`' for line in near)}?"
    elif isinstance(group, RootGroup) and owners:
        hint = f"`{word}` is a verb of {' and '.join(owners)}: the noun comes first"
    return UsageError(f"`{path} {word}` is not a command", hint=hint)


class VerbsOnDemand(Mapping[str, Any]):
    """The verbs of a noun by name; the module of a verb is imported when the verb is looked up."""

    def __init__(self, known: Mapping[str, KnownCommand]) -> None:
        self._known = known
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            known = self._known[name]
            if known.plain:
                self._loaded[name] = _plain_noun(name, known)
            else:
                app = app_of(known.module)
                adopt(app)
                commands = {
                    info.name or typer.main.get_command_name(info.callback.__name__): info
                    for info in app.registered_commands
                    if info.callback is not None
                }
                self._loaded[name] = typer.main.get_command_from_info(
                    commands[name], pretty_exceptions_short=False, rich_markup_mode=None
                )
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def app_of(place: str) -> typer.Typer:
    """Return the commands of `module`, or of `module:name` where a module has several nouns."""
    module, _, name = place.partition(":")
    found: typer.Typer = getattr(import_module(module), name or "app")
    return found


def _plain_noun(name: str, known: KnownCommand) -> NounGroup:
    group = NounGroup(
        name=name, help=known.help, rich_markup_mode=None, context_settings=CONTEXT_SETTINGS
    )
    group.commands = VerbsOnDemand(known.verbs)  # type: ignore[assignment] # it is only read
    return group


def load_noun(noun: Noun) -> Any:
    """Return a noun's commands; verbs of a plain noun are imported when they are looked up."""
    known = known_commands().get(noun.name)
    return _plain_noun(noun.name, known) if known and known.plain else import_noun(noun)


def import_noun(noun: Noun) -> Any:
    """Import a noun's module and build all its commands with our classes."""
    app = app_of(noun.module)
    adopt(app)
    command = typer.main.get_command(app)
    command.name = noun.name
    return command


def adopt(app: typer.Typer) -> None:
    """Give a plain typer app our classes, where it chose none itself."""
    app.rich_markup_mode = None
    app.pretty_exceptions_enable = False
    app._add_completion = False  # noqa: SLF001 - typer has no other way once the app exists
    if not (isinstance(app.info.cls, type) and issubclass(app.info.cls, NounGroup)):
        app.info.cls = NounGroup
    app.info.no_args_is_help = False
    app.info.context_settings = CONTEXT_SETTINGS
    for command in app.registered_commands:
        if not (command.cls and issubclass(command.cls, Verb)):
            command.cls = Verb
        command.context_settings = {**CONTEXT_SETTINGS, **(command.context_settings or {})}
    for group in app.registered_groups:
        group.cls = NounGroup
        if group.typer_instance is not None:
            adopt(group.typer_instance)
