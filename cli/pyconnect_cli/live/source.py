"""The live view's access to a session's cluster: looks at it, and verbs that run on it."""

from __future__ import annotations

from typing import Protocol

from pyconnect_cli.live.actions import Words
from pyconnect_cli.live.verb_run import Ended, has_verb, run_verb
from pyconnect_cli.overview.gather import Watcher
from pyconnect_cli.overview.look import ClusterLook
from pyconnect_cli.session import Session


class Source(Protocol):
    """A cluster to watch. Both methods block; they are called on threads, one look at a time."""

    title: str

    def look(self, *, lag: bool) -> ClusterLook:
        """Look at the cluster; PyconnectError when no worker answers."""
        ...

    def run(self, words: Words, *, width: int, agreed: bool = False) -> Ended:
        """Run a verb and return its output."""
        ...

    def has_verb(self, noun: str, verb: str) -> bool:
        """Return whether the command line has this verb."""
        ...


class ClusterSource:
    """The cluster of a session; a look has the time of `--timeout`, as every verb has."""

    def __init__(self, session: Session) -> None:
        settings = session.settings
        self.title = settings.context or settings.urls[0]
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

    def has_verb(self, noun: str, verb: str) -> bool:
        """See Source."""
        return has_verb(noun, verb)
