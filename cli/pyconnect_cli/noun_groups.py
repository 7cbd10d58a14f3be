"""The parser's classes of nouns, whose modules are imported when they are used."""

from __future__ import annotations

import inspect
from dataclasses import replace
from importlib import import_module
from typing import Any

import typer
import typer.main
from typer.core import TyperGroup

from pyconnect_cli.errors import UsageError
from pyconnect_cli.parsing.help_page import HelpPage
from pyconnect_cli.parsing.near_names import near_verbs
from pyconnect_cli.parsing.nouns import NOUNS, Noun, find_noun
from pyconnect_cli.parsing.root_help import root_help
from pyconnect_cli.verbs import Context, Sections, SharedOptions, Verb, records_of

VERB_ALIASES = {"ls": "list", "show": "describe", "rm": "delete"}
CONTEXT_SETTINGS: dict[str, Any] = {"help_option_names": ["--help", "-h"], "max_content_width": 100}


class NounGroup(SharedOptions, TyperGroup):
    """A noun: its verbs, with aliases, and global options before the verb."""

    def get_params(self, ctx: Context) -> list[Any]:
        """Return the group's own parameters and the global options."""
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
        """Return the pointer to the help of the verbs."""
        return f"Options of a verb: {ctx.command_path} VERB --help"


class RootGroup(NounGroup):
    """`pyconnect` itself: nouns are imported when they are used."""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - the parser's signature
        """Return the nouns in the order of the table."""
        return [noun.name for noun in NOUNS]

    def get_command(self, ctx: Context, cmd_name: str) -> Any:  # noqa: ARG002
        """Import a noun's module and return its commands."""
        noun = find_noun(cmd_name)
        return None if noun is None else load_noun(noun)

    def get_help(self, ctx: Context) -> str:  # noqa: ARG002 - the parser's signature
        """Return the text that `pyconnect --help` prints without a parser."""
        return root_help()


def summary(command: Any) -> str:
    """Return the first paragraph of a command's help."""
    return " ".join((command.help or "").strip().partition("\n\n")[0].split())


def unknown_word(context: Context, word: str, group: NounGroup) -> UsageError:
    """Return the usage error for a noun or verb that does not exist, with similar ones.

    A verb that changes something is proposed only for a word that is nearer to it than to every
    verb that reads.
    """
    known = group.list_commands(context)
    changing = [name for name, verb in group.commands.items() if getattr(verb, "changes", False)]
    near = near_verbs(word, [name for name in known if name not in changing], changing)
    path = context.command_path
    hint = f"did you mean {' or '.join(f'`{path} {name}`' for name in near)}?" if near else None
    return UsageError(f"`{path} {word}` is not a command", hint=hint or f"list them: {path} --help")


def load_noun(noun: Noun) -> Any:
    """Import a noun's module and build its commands with our classes."""
    app: typer.Typer = import_module(noun.module).app
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
