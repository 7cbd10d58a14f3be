"""The parser's classes of verbs, which accept shared options.

Command modules write plain typer, with `option` and `argument`; `app` gives their commands these
classes. A verb that acts on connectors chooses `ActingVerb` itself and so takes the selection,
batch and cron options.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption
from typer.models import ArgumentInfo, OptionInfo

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
from pyconnect_cli.session import session_of

if TYPE_CHECKING:
    from pyconnect_cli.parsing.help_page import HelpPage

    _Parsed = TyperCommand
else:
    _Parsed = object

Context = Any
"""The parser passes contexts of a class that it does not export."""
Sections = list[tuple[str, list[tuple[str, str]]]]
SUBJECT_PARAMETERS = frozenset({"file", "files", "connectors", "topics"})
"""Parameters that name the objects of a command."""
SUBJECTS = frozenset({"Selection", "Data", "Grants"})
"""Groups of options that select the objects of a command."""
NAMES_ONLY = "pyconnect.names_only"
"""Key of a context in which help pages list their shared options without explanations."""
BRACES = re.compile(r"\{(.*)\}")


def option(form: str, text: str, *, least: int | None = None) -> OptionInfo:
    """Return an option of one verb; `form`: its flags and the name of its value, `--dir/-d DIR`.

    `least`: the smallest number that it takes.
    """
    flags, _, value = form.partition(" ")
    first, *others = flags.split("/")
    found: OptionInfo = typer.Option(first, *others, metavar=value or None, help=text, min=least)
    return found


def argument(metavar: str, text: str, *, show_default: bool = True) -> ArgumentInfo:
    """Return an argument of one verb."""
    found: ArgumentInfo = typer.Argument(metavar=metavar, help=text, show_default=show_default)
    return found


class SharedOption(TyperOption):
    """An option of a table; `choices`: its values, in any case."""

    choices: tuple[str, ...] = ()

    def chosen(self, value: object) -> object:
        """Return the value as it is in the table; BadParameter for another one."""
        if not self.choices or value is None:
            return value
        if isinstance(value, list | tuple):
            return tuple(map(self.chosen, value))
        for choice in self.choices:
            if choice.lower() == str(value).lower():
                return choice
        raise typer.BadParameter(f"{value!r} is not one of {', '.join(map(repr, self.choices))}.")


def shared_option(spec: OptionSpec) -> SharedOption:
    """Turn a row of `options` into an option whose value goes to the session."""

    def keep(context: typer.Context, option: SharedOption, value: object) -> object:
        value = option.chosen(value)
        if value is not None and value not in (False, 0, ()):
            given = session_of(context).given
            given[spec.name] = tuple(value) if isinstance(value, list) else value
        return value

    switch: dict[str, Any] = {"is_flag": True, "default": False}
    if spec.counted:
        # A plain number: the range that the parser would choose is shown as `[x>=0]`.
        switch = {"count": True, "default": 0, "type": int}
    kind: dict[str, Any] = {"metavar": spec.metavar, "default": None} if spec.metavar else switch
    option = SharedOption(
        param_decls=[spec.name, *spec.flags],
        help=spec.text,
        multiple=spec.repeatable,
        expose_value=False,
        callback=keep,
        show_default=False,
        **kind,
    )
    option.choices = spec.choices
    return option


class SharedOptions(_Parsed):
    """Common part of verbs and nouns: options that are not parameters of their function."""

    shared_specs: OptionGroups = ()
    formats: tuple[str, ...] = ()
    _shared: list[SharedOption] | None = None

    def get_help_option(self, ctx: Context) -> TyperOption | None:
        """Return the help option in the words of the other options."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "help page"
        return option

    def get_help(self, ctx: Context) -> str:
        from pyconnect_cli.parsing.help_page import help_text

        return help_text(self.page(ctx))

    def page(self, ctx: Context) -> HelpPage:
        """Return the help page; with NAMES_ONLY without the explanations of shared options."""
        from pyconnect_cli.parsing.help_page import EXAMPLES, HelpPage

        examples = EXAMPLES.get(ctx.command_path.removeprefix("pyconnect "), ())
        sections = (
            *self.sections(ctx),
            ("Examples", [(f"pyconnect {example}", "") for example in examples]),
        )
        return HelpPage(
            path=ctx.command_path,
            arguments=" ".join(
                BRACES.sub(r"\1", piece) for piece in self.collect_usage_pieces(ctx)
            ),
            text=self.help or "",
            sections=tuple((title, tuple(rows)) for title, rows in sections if rows),
            more="" if ctx.meta.get(NAMES_ONLY) else self.more(ctx),
        )

    def sections(self, ctx: Context) -> Sections:
        raise NotImplementedError

    def more(self, ctx: Context) -> str:  # noqa: ARG002 - a noun's answer needs it
        return "All global options: pyconnect --help"

    def shared_options(self) -> list[SharedOption]:
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

    def shared_sections(self, ctx: Context) -> Sections:
        """Return the shared options, each group under its name."""
        if ctx.meta.get(NAMES_ONLY):
            names = [
                (title, ", ".join(spec.flags[0] for spec in specs))
                for title, specs in self.shared_specs
            ]
            return [("Shared options", names)]
        by_name = {option.name: option for option in self.shared_options()}
        common = tuple(spec for spec in GLOBAL_OPTIONS if spec.common)
        return [
            (title, records_of((by_name[spec.name] for spec in specs), ctx))
            for title, specs in (*self.shared_specs, ("Global options", common))
        ]


def records_of(params: Iterable[Any], ctx: Context) -> list[tuple[str, str]]:
    return [record for param in params if (record := param.get_help_record(ctx))]


class Verb(SharedOptions, TyperCommand):
    """A command; global options may follow it."""

    changes = False

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Read the words; `--wait` may have no state."""
        if ("--wait",) in (option.flags for _, group in self.shared_specs for option in group):
            args, alone = without_bare_wait(args)
            if alone:
                session_of(ctx).given["wait"] = ""
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Context) -> list[Any]:
        return [*super().get_params(ctx), *self.shared_options()]

    def sections(self, ctx: Context) -> Sections:
        named = ctx.meta.get(NAMES_ONLY)
        own = [p for p in super().get_params(ctx) if not (named and p.name == "help")]
        arguments = [param for param in own if param.param_type_name == "argument"]
        options = [param for param in own if param not in arguments]
        return [
            ("Arguments", records_of(arguments, ctx)),
            ("Options", records_of(options, ctx)),
            *self.shared_sections(ctx),
        ]


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


class CronVerb(Verb):
    """A command that cron runs: lock, jitter, deadline, summary, textfile."""

    shared_specs: OptionGroups = (("Cron", CRON_OPTIONS),)

    def invoke(self, ctx: Context) -> object:
        """Run the command under its lock, jitter and deadline, and report the run."""
        from pyconnect_cli.acting.unattended import cron_run

        session = session_of(ctx)
        session.changes = self.changes
        with cron_run(session, ctx.command_path, self._selection(ctx, session.given)):
            return super().invoke(ctx)

    def _selection(self, ctx: Context, given: Mapping[str, object]) -> list[str]:
        """Return the words that select the command's objects: names, files, conditions."""
        words: list[str] = []
        for param in super().get_params(ctx):
            value = ctx.params.get(param.name or "")
            if param.param_type_name == "argument":
                words += _texts(value)
            elif param.name in SUBJECT_PARAMETERS:
                words += [word for text in _texts(value) for word in (param.opts[0], text)]
        chosen_by = [specs for title, specs in self.shared_specs if title in SUBJECTS]
        for spec in chain.from_iterable(chosen_by):
            value = given.get(spec.name)
            if value is True:
                words.append(spec.flags[0])
            else:
                words += [word for text in _texts(value) for word in (spec.flags[0], text)]
        return words


class SelectingCronVerb(CronVerb):
    """A command that reads a selection of connectors, also by cron."""

    shared_specs = (("Selection", SELECTION_OPTIONS), ("Cron", CRON_OPTIONS))


class ActingVerb(CronVerb, ChangingVerb):
    """A command that changes connectors, also by cron: selection, batches, waiting."""

    shared_specs: OptionGroups = (
        ("Selection", SELECTION_OPTIONS),
        ("Batch", SELECTED_BATCH_OPTIONS),
        ("Waiting", WAIT_OPTIONS),
        ("Cron", CRON_OPTIONS),
    )


class BatchCronVerb(ActingVerb):
    """A command that changes the objects of its arguments, also by cron."""

    shared_specs = (("Batch", BATCH_OPTIONS), ("Cron", CRON_OPTIONS))


class CreatingVerb(ActingVerb):
    """A command that makes connectors from files: there is nothing to select yet."""

    shared_specs = (("Batch", BATCH_OPTIONS), ("Waiting", WAIT_OPTIONS), ("Cron", CRON_OPTIONS))


def _texts(value: object) -> list[str]:
    """Return a parameter's values as words of a command line; empty if it was not given."""
    if value is None or value is False:
        return []
    return [str(item) for item in (value if isinstance(value, list | tuple) else (value,))]


NameArgument = Annotated[str, argument("NAME", "name of the connector")]

NamesArgument = Annotated[
    list[str] | None, argument("[NAME]…", "names of connectors; a selection narrows them")
]

FilesOption = Annotated[
    list[str] | None,
    option(
        "--file/-f FILE",
        "JSON, YAML (Strimzi's too) or .properties; a directory; `-` for stdin; repeatable",
    ),
]

AllWorkersOption = Annotated[
    bool, option("--all-workers", "also the workers that connectors' statuses name")
]
