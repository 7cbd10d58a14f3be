"""The typer application: `pyconnect NOUN VERB` on one or several contexts, errors, exit codes.

The module of a noun is imported when the noun is used.
"""

from __future__ import annotations

import errno
import inspect
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
import typer.main
from typer.core import TyperGroup

from pyconnect_cli.errors import (
    ExitCode,
    Interrupted,
    OutputLost,
    PyconnectError,
    Unreachable,
    UsageError,
)
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
    slip_of,
)
from pyconnect_cli.render.output import Output, OutputStyle
from pyconnect_cli.render.streams import discard, tell
from pyconnect_cli.rest.masking import mask_command
from pyconnect_cli.session import Session, proposer
from pyconnect_cli.settings.contexts import load_config_files
from pyconnect_cli.settings.resolved import working_directory
from pyconnect_cli.verbs import Context, Sections, SharedOptions, Verb, records_of
from pyconnect_sandbox.errors import SandboxError

if TYPE_CHECKING:
    from pyconnect_cli.parsing.help_page import HelpPage


CONTEXT_SETTINGS: dict[str, Any] = {"help_option_names": ["--help", "-h"], "max_content_width": 100}


class NounGroup(SharedOptions, TyperGroup):
    """A noun: its verbs, with aliases, and global options before the verb."""

    def get_params(self, ctx: Context) -> list[Any]:
        return [*super().get_params(ctx), *self.shared_options()]

    def page(self, ctx: Context) -> HelpPage:
        """Return the help page; a noun without verbs has the whole help of its function."""
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
        """Return the verbs; for a noun that acts itself also the options."""
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
        """Find the noun, also behind its verb unless the verb changes something."""
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
    """Give a plain typer app our classes where it has no other classes."""
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


UNWRITABLE = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})

app = typer.Typer(
    cls=RootGroup,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT_SETTINGS,
)


@app.callback()
def root() -> None:
    """Operate Kafka Connect clusters."""


def run(arguments: Sequence[str], environ: Mapping[str, str] | None = None) -> int:
    """Run one command line, on each of its contexts; print its errors and return its exit code."""
    session = Session(environ)
    try:
        each = several_contexts(arguments, session.environ)
    except PyconnectError as error:
        return report(session, error)
    if each is None:
        return _run_once(session, arguments)
    contexts, words = each
    codes: list[int] = []
    for context in contexts:
        session = Session(environ)
        session.heading = f"context {context}:"
        codes.append(_run_once(session, ["--context", context, *words]))
        left = contexts[len(codes) :]
        if codes[-1] and left and (session.changes or codes[-1] == ExitCode.INTERRUPTED):
            tell(f"warning: not tried: {', '.join(left)}")
            break
    return combined(codes, len(contexts))


def _run_once(session: Session, arguments: Sequence[str]) -> int:
    session.arguments = tuple(arguments)
    try:
        code = invoke(session, list(arguments))
        if fault := session.unwritten():
            raise unwritten_error(fault)
        return code
    except PyconnectError as error:
        return report(session, error)
    except KeyboardInterrupt:
        return report(session, Interrupted("interrupted"))
    except OSError as fault:
        if fault.filename is not None:
            kind = OutputLost if fault.errno in UNWRITABLE else UsageError
            return report(session, kind(f"{fault.filename}: {fault.strerror}"))
        if fault.errno not in UNWRITABLE:
            return report(session, internal_fault(fault))
        # The parser itself prints help texts.
        discard(sys.stdout)
        broken = isinstance(fault, BrokenPipeError)
        return ExitCode.OK if broken else report(session, unwritten_error(fault))
    except UnicodeEncodeError as fault:
        wrong = ascii(fault.object[fault.start : fault.end])
        return report(session, UsageError(f"this text cannot be sent: {wrong} is not a character"))
    except MemoryError:
        return report(session, exhausted("there is not enough memory for the answer"))
    except RecursionError:
        return report(session, exhausted("a document is nested too deep"))
    except Exception as fault:  # noqa: BLE001 - the outermost place: no traceback without --debug
        return report(session, internal_fault(fault))
    finally:
        session.close()


def invoke(session: Session, arguments: list[str]) -> int:
    """Run a command line with a session and return its exit code; PyconnectError for a failure."""
    command = typer.main.get_command(app)
    try:
        # The session exists before parsing: options before the noun are kept in it too.
        with command.make_context("pyconnect", arguments, obj=session) as context:
            answer = context.command.invoke(context)
    except typer.Exit as leaving:
        return leaving.exit_code
    except typer.Abort:
        raise Interrupted("interrupted") from None
    except typer.TyperException as exc:
        raise usage_error(exc) from exc
    except SandboxError as exc:
        raise PyconnectError(exc.message, hint=exc.hint, exit_code=exc.exit_code) from exc
    return answer if isinstance(answer, int) else ExitCode.OK


def internal_fault(fault: Exception) -> PyconnectError:
    """Return a fault of this program as an error; its traceback is for --debug."""
    error = PyconnectError(
        f"internal error of pyconnect: {type(fault).__name__}: {fault}",
        hint="run the command again with --debug for a traceback; please report it",
        exit_code=ExitCode.SERVER_ERROR,
    )
    error.__cause__ = fault
    return error


def exhausted(reason: str) -> PyconnectError:
    """Return the error for a document that this process cannot hold."""
    hint = "narrow the command: name connectors, or use -l and -e; is this a Connect worker?"
    return PyconnectError(reason, hint=hint, exit_code=ExitCode.SERVER_ERROR)


def unwritten_error(fault: OSError) -> OutputLost:
    """Return the error for lost output; the command itself has finished."""
    return OutputLost(
        f"standard output cannot be written: {fault.strerror}",
        hint="the command has finished its work; only its output is lost",
    )


def usage_error(error: typer.TyperException) -> UsageError:
    """Return the parser's error in our form, with the help page that explains it."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "pyconnect"
    message = error.format_message().rstrip(".")
    if "Missing command" in message:
        return UsageError(f"`{path}` needs a verb", hint=f"list them: {path} --help")
    hint = f"see: {path} --help"
    known = context.command.get_params(context) if context is not None else []
    options = [name for each in known for name in each.opts]
    if "extra argument" in message and "--file" in options:
        hint = f"a file follows -f: {path} -f FILE"
    elif "extra argument" in message and path == "pyconnect status":
        hint = "the state of one connector: pyconnect connectors describe NAME"
    if unknown := getattr(error, "option_name", None):
        # The parser appends similar options, and not the nearest first.
        message, _, _ = message.partition(" (Possible options")
        if near := slip_of(unknown, options):
            hint = f"did you mean `{near}`? {hint}"
    return UsageError(message[:1].lower() + message[1:], hint=hint)


def report(session: Session, error: PyconnectError) -> int:
    """Print an error on stderr and return its exit code."""
    try:
        output, debug = session.output, session.settings.debug
    except PyconnectError:
        # The settings are not valid, which `error` reports.
        propose = proposer(session.given, session.arguments)
        output, debug = Output(OutputStyle(), propose), bool(session.given.get("debug"))
    if debug:
        tell("".join(traceback.format_exception(error)).rstrip("\n"))
    if isinstance(error, Unreachable):
        error.hint = _sandbox_hint(session) or error.hint
    if error.message:
        output.error(error)
    return error.exit_code


def _sandbox_hint(session: Session) -> str | None:
    """Return the command that starts the context's sandbox; None for other addresses."""
    from pyconnect_sandbox.state import start_hint

    try:
        context, origins = session.settings.context, session.settings.origins
    except PyconnectError:
        return None
    addresses = (origins.get("url"), origins.get("kafka_bootstrap"))
    if context is None or f"context {context}" not in addresses:
        return None
    return start_hint(context)


def several_contexts(
    arguments: Sequence[str], environ: Mapping[str, str]
) -> tuple[tuple[str, ...], list[str]] | None:
    """Return the contexts in order and the other words; None for less than two contexts.

    Raises NotFound for a context that does not exist, before the first run.
    """
    given, words = _taken(arguments, "--context")
    given = given or [text for text in (environ.get("PYCONNECT_CONTEXT"),) if text]
    if len(given) < 2 and "," not in "".join(given):
        return None
    config = next(iter(reversed(_taken(arguments, "--config")[0])), None)
    files = load_config_files(
        environ, working_directory(), Path(config).expanduser() if config else None
    )
    known = files.context_names()
    names = [
        name.strip() for text in given for name in ([text] if text in known else text.split(","))
    ]
    contexts = tuple(dict.fromkeys(name for name in names if name))
    if len(contexts) < 2:
        return None
    for name in contexts:
        files.find_context(name)
    if _taken(arguments, "--textfile")[0]:
        # The textfile would have the last context's result only.
        raise UsageError("--textfile is for a run on one context", hint="run it for each")
    return contexts, words


def combined(codes: Sequence[int], contexts: int) -> int:
    """Return the common exit code of all runs, or 8 (a part failed) if the codes differ."""
    if ExitCode.INTERRUPTED in codes:
        return ExitCode.INTERRUPTED
    if len(codes) == contexts and len(set(codes)) == 1:
        return codes[0]
    return ExitCode.PARTIAL_FAILURE


def _taken(arguments: Sequence[str], option: str) -> tuple[list[str], list[str]]:
    """Return the values of an option, and the words without it."""
    values: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--":
            rest += [word, *words]
        elif name != option:
            rest.append(word)
        elif equals:
            values.append(value)
        elif (following := next(words, None)) is not None:
            values.append(following)
        else:
            rest.append(word)
    return values, rest
