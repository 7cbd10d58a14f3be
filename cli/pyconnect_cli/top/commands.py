"""`pyconnect top`, and the live view's access to a cluster: looks at it, and verbs that run on it.

A verb gets the settings, addresses and credentials of the view, and an output that keeps lines.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, NamedTuple, Protocol

import typer

from pyconnect_cli.app import invoke
from pyconnect_cli.errors import Interrupted, PreconditionFailed, PyconnectError, UsageError
from pyconnect_cli.parsing.values import parse_duration
from pyconnect_cli.render.output import Output, OutputStyle
from pyconnect_cli.render.styles import displayed
from pyconnect_cli.rest.masking import mask_url
from pyconnect_cli.session import Session, session_of, session_of_context
from pyconnect_cli.settings.contexts import shown_setting
from pyconnect_cli.verbs import option

if TYPE_CHECKING:
    from pyconnect_cli.overview.commands import FleetWatcher
    from pyconnect_cli.overview.rows import ClusterLook
    from pyconnect_cli.overview.status import ClusterRow
    from pyconnect_cli.top.state import KnownContext, Words


class Source(Protocol):
    """A cluster to watch. Its methods block; the view calls them on threads, one look at a time."""

    title: str
    contexts: tuple[KnownContext, ...]

    def look(self, *, lag: bool) -> ClusterLook:
        """Look at the cluster; PyconnectError when no worker answers."""

    def clusters(self) -> Sequence[ClusterRow]: ...

    def run(self, words: Words, *, width: int, agreed: bool = False) -> Ended: ...

    def run_on_terminal(self, words: Words) -> int:
        """Run a verb that uses the terminal itself; return its exit code."""

    def other(self, context: str) -> Source:
        """Return the cluster of another context; PyconnectError if it cannot be used."""

    def close(self) -> None:
        """Release the connections of a cluster that the view has left."""


class ClusterSource:
    """The cluster of a session; a look has the time of `--timeout`, as every verb has."""

    def __init__(self, session: Session) -> None:
        # Not with the module: the help page and refusals do without them.
        from pyconnect_cli.overview.commands import Watcher
        from pyconnect_cli.top.state import KnownContext

        settings = session.settings
        self.title = settings.cluster or mask_url(settings.urls[0])
        files, current = session.settings.files, session.settings.context
        urls = {name: files.find_context(name)[1].get("url", ()) for name in files.context_names()}
        self.contexts = tuple(
            KnownContext(name=name, urls=shown_setting("url", shown), current=name == current)
            for name, shown in urls.items()
        )
        self._session = session
        self._watcher = Watcher(session)
        self._fleet: FleetWatcher | None = None
        _ = session.client  # fetches secrets before the view takes the terminal

    def look(self, *, lag: bool) -> ClusterLook:
        self._session.renew_time()
        return self._watcher.look(lag=lag)

    def clusters(self) -> Sequence[ClusterRow]:
        """See Source. The first look fetches the secrets of the contexts."""
        if self._fleet is None:
            from pyconnect_cli.overview.commands import FleetWatcher

            names = [each.name for each in self.contexts]
            self._fleet = FleetWatcher(self._session, names, brokers=True)
        return self._fleet.look()

    def run(self, words: Words, *, width: int, agreed: bool = False) -> Ended:
        return run_verb(self._session, words, width=width, agreed=agreed)

    def run_on_terminal(self, words: Words) -> int:
        """See Source. After an error the user presses enter, so that the text can be read."""
        output = Output(OutputStyle(error_colour=True))
        code = _run(_session_like(self._session, output, agreed=False), words)
        if code:
            output.message("press enter to go back to the view")
            sys.stdin.readline()
        return code

    def other(self, context: str) -> ClusterSource:
        session = session_of_context(self._session, context)
        # Each look renews the budget of a run; two clusters must not share one.
        session.__dict__.pop("budget", None)
        return ClusterSource(session)

    def close(self) -> None:
        self._session.close()
        if self._fleet is not None:
            self._fleet.close()


class Ended(NamedTuple):
    """A verb's exit code, and its results and messages as lines in their order, with colours."""

    code: int
    lines: tuple[str, ...]


class CollectedOutput(Output):
    """An output that keeps lines of data and messages, and prints nothing."""

    def __init__(self, *, width: int, form: str = "table") -> None:
        super().__init__(OutputStyle(format=form, colour=True, error_colour=True, width=width))
        self.lines: list[str] = []

    def _write(self, text: str) -> None:
        self.lines += displayed(text, colour=True).split("\n")

    def _tell(self, line: str) -> None:
        self.lines.append(displayed(line, colour=True))


def run_verb(
    session: Session, words: tuple[str, ...], *, width: int, agreed: bool = False
) -> Ended:
    """Run `pyconnect WORDS` with the view's session; `agreed`: answer its questions with yes."""
    options = words[: words.index("--")] if "--" in words else words
    form = options[options.index("-o") + 1] if "-o" in options else "table"
    output = CollectedOutput(width=width, form=form)
    code = _run(_session_like(session, output, agreed=agreed), words)
    return Ended(code, tuple(output.lines))


def _run(session: Session, words: Words) -> int:
    """Run a verb with a session, report its error on the session's output; return the exit code."""
    session.arguments = words
    try:
        return invoke(session, list(words))
    except PyconnectError as error:
        if error.message:
            session.output.error(error)
        return error.exit_code
    finally:
        session.close()


def _session_like(session: Session, output: Output, *, agreed: bool) -> Session:
    """Return a session with the cluster of another one, without fetching secrets again."""
    other = Session(session.environ)
    settings = replace(
        session.settings, yes=agreed, output="table", columns=(), no_headers=False, quiet=False,
        verbose=0, jq=None,
    )  # fmt: skip
    # A value in `__dict__` keeps the cached property from computing its own.
    other.__dict__ |= {"settings": settings, "output": output, "endpoint": session.endpoint}
    return other


app = typer.Typer(help="Watch and operate a cluster in a live view.")

SHORTEST_S = 0.5


@app.command()
def top(
    context: typer.Context,
    *,
    interval: Annotated[
        str, option("--interval TIME", "time between two updates of the view")
    ] = "2s",
) -> None:
    """Watch and operate a cluster in a live view.

    The view shows connectors with their states, rates, lag, memory and the root causes of
    failures; enter leads to the tasks. Keys are those of k9s; `?` lists them. A key that changes
    something shows the plan of its verb and asks. Lag needs --kafka-bootstrap, rates and memory
    come from agents.

    The view needs the extra [top].
    """
    session = session_of(context)
    interval_s = parse_duration(interval, what="--interval")
    if interval_s < SHORTEST_S:
        raise UsageError(f"--interval: `{interval}` is too short", hint="the shortest is 500ms")
    if find_spec("textual") is None:
        from pyconnect_clients.installation import install_command

        raise PreconditionFailed(
            "the live view needs the library textual, which is not installed",
            hint=f"install the extra [top]: {install_command('top')}; without it: pyconnect status",
        )
    # textual draws on stderr.
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        raise PreconditionFailed(
            "the live view needs a terminal", hint="for scripts: pyconnect status -o json"
        )
    from pyconnect_cli.top.view import Top

    session.live = True
    view = Top(ClusterSource(session), interval_s)
    view.run()
    if view.fault is not None:
        raise view.fault
    if view.interrupted:
        raise Interrupted("interrupted")
