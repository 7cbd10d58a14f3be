"""The live view's access to a session's cluster: looks at it, and verbs that run on it."""

from __future__ import annotations

from typing import Protocol

from pyconnect_cli.acting.other_context import session_of_context
from pyconnect_cli.overview.gather import Watcher
from pyconnect_cli.overview.look import ClusterLook
from pyconnect_cli.rest.masking import mask_url
from pyconnect_cli.session import Session
from pyconnect_cli.top.keys import Words
from pyconnect_cli.top.state import KnownContext
from pyconnect_cli.top.verb_run import Ended, run_verb


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
