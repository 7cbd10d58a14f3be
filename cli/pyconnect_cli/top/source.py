"""The live view's access to a session's cluster: looks at it, and verbs that run on it.

A verb gets the settings, addresses and credentials of the view, and an output that keeps lines.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, Protocol

import typer

from pyconnect_cli.errors import ExitCode, PyconnectError
from pyconnect_cli.noun_groups import load_noun
from pyconnect_cli.overview.gather import Watcher
from pyconnect_cli.overview.rows import ClusterLook
from pyconnect_cli.parsing.nouns import find_noun
from pyconnect_cli.render.output import Output, OutputStyle, error_lines
from pyconnect_cli.render.styles import displayed, paint, printable
from pyconnect_cli.rest.masking import mask_url
from pyconnect_cli.session import Session, session_of_context
from pyconnect_cli.top.keys import Words
from pyconnect_cli.top.state import KnownContext


class Source(Protocol):
    """A cluster to watch. Both methods block; they are called on threads, one look at a time."""

    title: str
    contexts: tuple[KnownContext, ...]

    def look(self, *, lag: bool) -> ClusterLook:
        """Look at the cluster; PyconnectError when no worker answers."""
        ...

    def run(self, words: Words, *, width: int, agreed: bool = False) -> Ended:
        """Run a verb and return its output."""
        ...

    def other(self, context: str) -> Source:
        """Return the cluster of another context; PyconnectError if it cannot be used."""
        ...

    def close(self) -> None:
        """Release the connections of a cluster that the view has left."""
        ...


class ClusterSource:
    """The cluster of a session; a look has the time of `--timeout`, as every verb has."""

    def __init__(self, session: Session) -> None:
        settings = session.settings
        self.title = settings.context or settings.urls[0]
        self.contexts = _contexts(session)
        self._session = session
        self._watcher = Watcher(session)
        _ = session.client  # made here: its secrets are fetched before the terminal is taken over

    def look(self, *, lag: bool) -> ClusterLook:
        """See Source."""
        self._session.renew_time()
        return self._watcher.look(lag=lag)

    def run(self, words: Words, *, width: int, agreed: bool = False) -> Ended:
        """See Source."""
        return run_verb(self._session, words, width=width, agreed=agreed)

    def other(self, context: str) -> ClusterSource:
        session = session_of_context(self._session, context)
        # The budget of a run is renewed for each look; two clusters must not share one.
        session.__dict__.pop("budget", None)
        return ClusterSource(session)

    def close(self) -> None:
        """See Source."""
        self._session.close()


def _contexts(session: Session) -> tuple[KnownContext, ...]:
    files, current = session.settings.files, session.settings.context
    rows = []
    for name in files.context_names():
        _, values = files.find_context(name)
        urls = values.get("url", ())
        shown = ", ".join(map(mask_url, urls)) if isinstance(urls, tuple) else str(urls)
        rows.append(KnownContext(name=name, urls=shown, current=name == current))
    return tuple(rows)


class Ended(NamedTuple):
    """A verb's exit code and its lines, results and messages in their order; ANSI colours."""

    code: int
    lines: tuple[str, ...]


class CollectedOutput(Output):
    """An output that prints nothing."""

    def __init__(self, *, width: int) -> None:
        super().__init__(OutputStyle(colour=True, error_colour=True, width=width))
        self.lines: list[str] = []

    @property
    def drawn(self) -> bool:
        """Return False: no verb draws on the terminal of the view."""
        return False

    def line(self, text: str = "") -> None:
        """Keep a line of data."""
        self.lines += displayed(text, colour=True).split("\n")

    def message(self, text: str, *, style: str | None = None) -> None:
        """Keep a message."""
        self.lines.append(displayed(paint(text, style, colour=True), colour=True))

    def warning(self, text: str) -> None:
        """Keep a warning."""
        head = paint("warning:", "warning", colour=True)
        self.lines.append(f"{head} {printable(text)}")

    def error(self, error: PyconnectError) -> None:
        """Keep an error and its hint."""
        self.lines += error_lines(error, colour=True)


def run_verb(
    session: Session, words: tuple[str, ...], *, width: int, agreed: bool = False
) -> Ended:
    """Run `pyconnect WORDS` with the view's session; `agreed`: answer its questions with yes."""
    output = CollectedOutput(width=width)
    verb_session = _session_like(session, output, agreed=agreed)
    verb_session.arguments = words
    try:
        return Ended(_invoke(verb_session, words), tuple(output.lines))
    except PyconnectError as error:
        if error.message:
            output.error(error)
        return Ended(error.exit_code, tuple(output.lines))
    finally:
        verb_session.close()


def _invoke(session: Session, words: tuple[str, ...]) -> int:
    noun = find_noun(words[0])
    assert noun is not None
    command = load_noun(noun)
    try:
        with command.make_context(
            f"pyconnect {noun.name}", list(words[1:]), obj=session
        ) as context:
            answer = context.command.invoke(context)
    except typer.Exit as leaving:
        return leaving.exit_code
    except typer.TyperException as error:
        raise PyconnectError(error.format_message(), exit_code=ExitCode.USAGE) from error
    return answer if isinstance(answer, int) else ExitCode.OK


def _session_like(session: Session, output: Output, *, agreed: bool) -> Session:
    """Return a session with the cluster of another one; secrets are not fetched again."""
    other = Session(session.environ)
    settings = replace(
        session.settings, yes=agreed, output="table", columns=(), no_headers=False, quiet=False,
        verbose=0, jq=None,
    )  # fmt: skip
    # Cached properties: a value that is set here is not computed again.
    other.__dict__ |= {"settings": settings, "output": output, "endpoint": session.endpoint}
    return other
