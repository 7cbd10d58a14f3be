"""The typer application: `pyconnect NOUN VERB` on one or several contexts, errors, exit codes."""

from __future__ import annotations

import errno
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer
import typer.main

from pyconnect_cli.errors import (
    ExitCode,
    Interrupted,
    OutputLost,
    PyconnectError,
    Unreachable,
    UsageError,
)
from pyconnect_cli.noun_groups import CONTEXT_SETTINGS, RootGroup
from pyconnect_cli.parsing.nouns import slip_of
from pyconnect_cli.render.output import Output, OutputStyle
from pyconnect_cli.render.streams import discard, tell
from pyconnect_cli.session import Session, proposer
from pyconnect_cli.settings.contexts import load_config_files
from pyconnect_cli.settings.resolved import working_directory
from pyconnect_sandbox.errors import SandboxError

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
        code = _invoke(session, list(arguments))
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
        # The parser prints its help texts itself.
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


def _invoke(session: Session, arguments: list[str]) -> int:
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
        # The settings themselves are wrong, and `error` says so.
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
        # Its result would be the last context's only.
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
