"""The parser's classes: nouns loaded on demand, shared options accepted after every verb.

Command modules write plain typer; `load_noun` gives their commands these classes. A verb that
acts on connectors chooses `ActingVerb` itself and so takes the selection, batch and cron options.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup, TyperOption

from pyconnect_cli.errors import PyconnectError, UsageError
from pyconnect_cli.parsing.near_names import near_verbs
from pyconnect_cli.parsing.nouns import NOUNS, Noun, find_noun
from pyconnect_cli.parsing.options import (
    BATCH_OPTIONS,
    CRON_OPTIONS,
    GLOBAL_OPTIONS,
    PLAN_OPTIONS,
    SELECTED_BATCH_OPTIONS,
    SELECTION_OPTIONS,
    WAIT_OPTIONS,
    OptionGroups,
    OptionSpec,
    without_bare_wait,
)
from pyconnect_cli.parsing.root_help import root_help
from pyconnect_cli.session import session_of
from pyconnect_sandbox.errors import SandboxError

if TYPE_CHECKING:
    # typer carries click's code inside; its classes are not exported.
    from typer._click.core import Command, Context, Parameter
    from typer._click.formatting import HelpFormatter

    _Parsed = Command
else:
    _Parsed = object

VERB_ALIASES = {"ls": "list", "show": "describe", "rm": "delete"}
CONTEXT_SETTINGS: dict[str, Any] = {"help_option_names": ["--help", "-h"], "max_content_width": 100}
FILE_PARAMETERS = frozenset({"file", "files"})
SUBJECTS = frozenset({"Selection", "Data"})
"""Groups of options that say what a command acts on."""
NAMES_ONLY = "pyconnect.names_only"
"""Key of a context in which help pages name their shared options and explain none."""
BRACES = re.compile(r"\{(.*)\}")


def shared_option(spec: OptionSpec) -> TyperOption:
    """Turn a row of `options` into an option whose value goes to the session."""

    def keep(context: typer.Context, _: object, value: object) -> object:
        if value is not None and value not in (False, 0, ()):
            given = session_of(context).given
            given[spec.name] = tuple(value) if isinstance(value, list) else value
        return value

    switch: dict[str, Any] = {"is_flag": True, "default": False}
    if spec.counted:
        # A plain number: the range that the parser would choose is shown as `[x>=0]`.
        switch = {"count": True, "default": 0, "type": int}
    kind: dict[str, Any] = {"metavar": spec.metavar, "default": None} if spec.metavar else switch
    if spec.choices:
        from typer._types import TyperChoice

        kind["type"] = TyperChoice(list(spec.choices), case_sensitive=False)
    return TyperOption(
        param_decls=[spec.name, *spec.flags],
        help=spec.text,
        multiple=spec.repeatable,
        expose_value=False,
        callback=keep,
        show_default=False,
        **kind,
    )


class SharedOptions(_Parsed):
    """Common part of verbs and nouns: options that are not parameters of their function."""

    shared_specs: OptionGroups = ()
    formats: tuple[str, ...] = ()
    _shared: list[TyperOption] | None = None

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """Return the parts of the usage line without the parser's braces around required ones."""
        return [BRACES.sub(r"\1", piece) for piece in super().collect_usage_pieces(ctx)]

    def get_help_option(self, ctx: Context) -> TyperOption | None:
        """Return the help option in the words of the other options."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "help page"
        return option

    def get_help(self, ctx: Context) -> str:
        """Return the help page in our layout."""
        from pyconnect_cli.parsing.help_text import HelpText

        ctx.formatter_class = HelpText  # of this context only
        return super().get_help(ctx)

    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write examples, and a pointer to more help."""
        from pyconnect_cli.parsing.examples import EXAMPLES
        from pyconnect_cli.parsing.help_text import HelpText

        path = ctx.command_path.removeprefix("pyconnect ")
        if (examples := EXAMPLES.get(path)) and isinstance(formatter, HelpText):
            with formatter.section("Examples"):
                formatter.write_lines([f"pyconnect {example}" for example in examples])
        if not ctx.meta.get(NAMES_ONLY):
            formatter.write_paragraph()
            formatter.write_text(self.more(ctx))

    def more(self, ctx: Context) -> str:  # noqa: ARG002 - a noun's answer needs it
        """Return the pointer to more help."""
        return "All global options: pyconnect --help"

    def shared_options(self) -> list[TyperOption]:
        """Return the shared options, the same objects at each call."""
        if self._shared is None:
            own = [spec for _, group in self.shared_specs for spec in group]
            specs = [
                spec._replace(
                    choices=(*spec.choices, *self.formats),
                    help=f"{spec.help}, or {', '.join(self.formats)}",
                )
                if spec.name == "output" and self.formats
                else spec
                for spec in (*own, *GLOBAL_OPTIONS)
            ]
            self._shared = [shared_option(spec) for spec in specs]
        return self._shared

    def format_shared(self, context: Context, formatter: HelpFormatter) -> None:
        """Write the shared options into a verb's help, each group under its name."""
        by_name = {option.name: option for option in self.shared_options()}
        if context.meta.get(NAMES_ONLY):
            if not self.shared_specs:
                return
            names = [
                (title, ", ".join(spec.flags[0] for spec in specs))
                for title, specs in self.shared_specs
            ]
            with formatter.section("Shared options"):
                formatter.write_dl(names)
            return
        common = tuple(spec for spec in GLOBAL_OPTIONS if spec.common)
        for title, specs in (*self.shared_specs, ("Global options", common)):
            records = [by_name[spec.name].get_help_record(context) for spec in specs]
            with formatter.section(title):
                formatter.write_dl([record for record in records if record])


class Verb(SharedOptions, TyperCommand):
    """A command; global options may follow it."""

    changes = False

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Read the words; `--wait` may have no state."""
        if ("--wait",) in (option.flags for _, group in self.shared_specs for option in group):
            args, alone = without_bare_wait(args)
            if alone:
                session_of(ctx).given["wait"] = ""  # type: ignore[arg-type] # the same class
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Return the command's own parameters and the shared ones."""
        return [*super().get_params(ctx), *self.shared_options()]

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write arguments and own options, then the shared ones."""
        arguments: list[tuple[str, str]] = []
        options: list[tuple[str, str]] = []
        for param in super().get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and not (ctx.meta.get(NAMES_ONLY) and param.name == "help"):
                (arguments if param.param_type_name == "argument" else options).append(record)
        for title, records in (("Arguments", arguments), ("Options", options)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
        self.format_shared(ctx, formatter)

    def invoke(self, ctx: Context) -> object:
        """Run the command. An error of the sandbox becomes an error of this command line."""
        try:
            return super().invoke(ctx)
        except SandboxError as error:
            raise PyconnectError(
                error.message, hint=error.hint, exit_code=error.exit_code
            ) from error


class SelectingVerb(Verb):
    """A command that shows a selection of connectors."""

    shared_specs = (("Selection", SELECTION_OPTIONS),)


class ChangingVerb(Verb):
    """A command for interactive use that changes something."""

    changes = True


class PlannedVerb(ChangingVerb):
    """A command that shows its plan and asks."""

    shared_specs = (("Plan", PLAN_OPTIONS),)


class BatchVerb(ChangingVerb):
    """A command that changes the objects of its arguments, and asks."""

    shared_specs = (("Batch", BATCH_OPTIONS),)


class ActingVerb(ChangingVerb):
    """A command that changes connectors, also by cron: selection, batches, waiting."""

    shared_specs: OptionGroups = (
        ("Selection", SELECTION_OPTIONS),
        ("Batch", SELECTED_BATCH_OPTIONS),
        ("Waiting", WAIT_OPTIONS),
        ("Cron", CRON_OPTIONS),
    )

    def invoke(self, ctx: Context) -> object:
        """Run the command under its lock, jitter and deadline, and report the run."""
        from pyconnect_cli.acting.unattended import cron_run

        session = session_of(ctx)  # type: ignore[arg-type] # the same class
        session.changes = True
        with cron_run(session, ctx.command_path, self._selection(ctx, session.given)):
            return super().invoke(ctx)

    def _selection(self, ctx: Context, given: Mapping[str, object]) -> list[str]:
        """Return the words that select the command's objects: names, files, conditions."""
        words: list[str] = []
        for param in super().get_params(ctx):
            value = ctx.params.get(param.name or "")
            if param.param_type_name == "argument":
                words += _texts(value)
            elif param.name in FILE_PARAMETERS:
                words += [word for text in _texts(value) for word in ("--file", text)]
        chosen_by = [specs for title, specs in self.shared_specs if title in SUBJECTS]
        for spec in chain.from_iterable(chosen_by):
            value = given.get(spec.name)
            if value is True:
                words.append(spec.flags[0])
            else:
                words += [word for text in _texts(value) for word in (spec.flags[0], text)]
        return words


class BatchCronVerb(ActingVerb):
    """A command that changes the objects of its arguments, also by cron."""

    shared_specs = (("Batch", BATCH_OPTIONS), ("Cron", CRON_OPTIONS))


class CreatingVerb(ActingVerb):
    """A command that makes connectors from files: there is nothing to select yet."""

    shared_specs = (("Batch", BATCH_OPTIONS), ("Waiting", WAIT_OPTIONS), ("Cron", CRON_OPTIONS))


class NounGroup(SharedOptions, TyperGroup):
    """A noun: its verbs, with aliases, and global options before the verb."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Return the group's own parameters and the global options."""
        return [*super().get_params(ctx), *self.shared_options()]

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """Return the parts of the usage line; a noun that acts itself needs no verb."""
        self.subcommand_metavar = "[VERB]" if self.invoke_without_command else "VERB [ARGUMENTS]…"
        return super().collect_usage_pieces(ctx)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Return a verb by its name or an alias of it."""
        found = super().get_command(ctx, cmd_name)
        return found or super().get_command(ctx, VERB_ALIASES.get(cmd_name, ""))

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        """Find the verb; the error for an unknown one names similar ones."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise unknown_word(ctx, args[0], self)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the verbs, whose options are their own, and those of a noun that acts itself."""
        own = [param.get_help_record(ctx) for param in super().get_params(ctx)]
        records = [record for record in own if record and record[0] != "-h, --help"]
        if records:
            with formatter.section("Options"):
                formatter.write_dl(records)
        self.format_commands(ctx, formatter)
        if records:
            self.format_shared(ctx, formatter)

    def format_help_text(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the help; for a noun without verbs the whole help of its function."""
        whole = inspect.getdoc(self.callback) if self.callback else None
        if whole and self.help and whole.startswith(self.help):
            self.help = whole
        super().format_help_text(ctx, formatter)

    def more(self, ctx: Context) -> str:
        """Return the pointer to the help of the verbs."""
        return f"Options of a verb: {ctx.command_path} VERB --help"

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: ARG002
        """Write each verb with the whole first paragraph of its help."""
        with formatter.section("Verbs"):
            formatter.write_dl(
                [(name, summary(verb)) for name, verb in self.commands.items() if not verb.hidden]
            )


class RootGroup(NounGroup):
    """`pyconnect` itself: nouns are imported when they are used."""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - the parser's signature
        """Return the nouns in the order of the table."""
        return [noun.name for noun in NOUNS]

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:  # noqa: ARG002
        """Import a noun's module and return its commands."""
        noun = find_noun(cmd_name)
        return None if noun is None else load_noun(noun)

    def get_help(self, ctx: Context) -> str:  # noqa: ARG002 - the parser's signature
        """Return the text that `pyconnect --help` prints without a parser."""
        return root_help()


def _texts(value: object) -> list[str]:
    """Return a parameter's values as words of a command line; empty if it was not given."""
    if value is None or value is False:
        return []
    return [str(item) for item in (value if isinstance(value, list | tuple) else (value,))]


def summary(command: Command) -> str:
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


def load_noun(noun: Noun) -> Command:
    """Import a noun's module and build its commands with the classes above."""
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
