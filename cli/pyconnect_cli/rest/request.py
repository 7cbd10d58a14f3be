"""Requests to a worker and its answers, before they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from pyconnect_cli.errors import UsageError

IDEMPOTENT = frozenset({"GET", "PUT", "DELETE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A successful answer; `body` is parsed JSON (a text when asked for), None when empty.

    `location`: the address of another worker, if the answer names one.
    """

    status: int
    body: object
    url: str
    location: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request; `path` holds unencoded segments."""

    method: str
    path: tuple[str, ...]
    query: tuple[tuple[str, str], ...] = ()
    body: object = None
    accepted: frozenset[int] = frozenset()  # accepted statuses beside 2xx
    since: str = ""  # the first Kafka version with the endpoint
    text: bool = False  # the answer is plain text; an error is JSON
    long: bool = False  # the worker runs a connector's code or asks brokers before it answers

    @property
    def changes(self) -> bool:
        """Whether the request may change something."""
        return self.method != "GET"

    def target(self) -> str:
        """Return path and query, percent-encoded.

        UsageError for a name that no path can carry: proxies resolve `.` and `..`, and an empty
        name would address the collection.
        """
        if unusable := {"", ".", ".."}.intersection(self.path):
            raise UsageError(f"`{unusable.pop()}` cannot be a name in Kafka Connect's REST paths")
        path = "/" + "/".join(quote(segment, safe="") for segment in self.path)
        if not self.query:
            return path
        pairs = (f"{quote(key, safe='')}={quote(value, safe='')}" for key, value in self.query)
        return f"{path}?{'&'.join(pairs)}"


def query_flags(**flags: bool) -> tuple[tuple[str, str], ...]:
    """Return the query of switches: those that are set, as `name=true`."""
    return tuple((name, "true") for name, value in flags.items() if value)


def query_values(pairs: Sequence[tuple[str, str | None]]) -> tuple[tuple[str, str], ...]:
    """Return the query without the parameters that are None."""
    return tuple((name, value) for name, value in pairs if value is not None)
