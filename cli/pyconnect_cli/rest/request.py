"""Requests to a worker, their raw answers, and failed answers as errors in our words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlsplit

from pyconnect_cli.errors import (
    Conflict,
    Forbidden,
    NotAuthenticated,
    NotFound,
    PreconditionFailed,
    PyconnectError,
    RejectedRequest,
    ServerError,
    UsageError,
)
from pyconnect_cli.parsing.nouns import did_you_mean
from pyconnect_cli.rest.masking import mask_text

if TYPE_CHECKING:
    import httpx

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
class RestRequest:
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
        return self.method != "GET"

    def target(self) -> str:
        """Return path and query, percent-encoded.

        UsageError for a name that no path can contain: proxies resolve `.` and `..`, and an empty
        name would address the collection.
        """
        if unusable := {"", ".", ".."}.intersection(self.path):
            raise UsageError(f"`{unusable.pop()}` cannot be a name in Kafka Connect's REST paths")
        path = "/" + "/".join(quote(segment, safe="") for segment in self.path)
        if not self.query:
            return path
        pairs = (f"{quote(key, safe='')}={quote(value, safe='')}" for key, value in self.query)
        return f"{path}?{'&'.join(pairs)}"


REBALANCE_READ = "Request cannot be completed because a rebalance is expected"
ALREADY_EXISTS = "already exists"
# Consumers of tasks that have just been stopped may still be members of the group (KIP-875).
ZOMBIE_TASKS = "If the connector is in a stopped state, this operation can be safely retried"
UNKNOWN_PATH = "HTTP 404 Not Found"
NOT_ACCEPTED = "the given credentials are not accepted: check user, password or token"
MOST_PAGE = 10_000
# The gateway answers 503 for a worker that is down; a worker's own 503 has Connect's error body.
GATEWAY_STATUSES = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An unsuccessful answer as an error; `momentary`: a repeated request may succeed."""

    error: PyconnectError
    momentary: bool = False


def read_failure(
    response: httpx.Response, request: RestRequest, url: str, *, credentials: bool = False
) -> FailedAttempt | None:
    """Return the error of an answer's status; no other function maps statuses to errors.

    `credentials`: the request had some.
    """
    status = response.status_code
    if 200 <= status < 300 or status in request.accepted:
        return None
    message = error_message(response)
    where = f"{request.method} {url}{request.target()}"
    reason = page_title(response.text[:MOST_PAGE]) or response.reason_phrase
    text, hint = told(message) if message else (f"{where}: HTTP {status} {reason}".rstrip(), None)
    if status < 400:
        location = response.headers.get("location", "nowhere")
        return FailedAttempt(
            ServerError(f"{where}: redirects to {location}, which is not followed")
        )
    if status in {404, 405} and message in {UNKNOWN_PATH, "HTTP 405 Method Not Allowed"}:
        if not request.since and request.path[:1] != ("agent",) and not urlsplit(url).path:
            return FailedAttempt(
                PreconditionFailed(
                    f"{url} has no REST interface of Kafka Connect (no {request.method}"
                    f" {request.target()}): is it an agent's admin interface?",
                    hint="give an address of the worker's `listeners` with --url",
                )
            )
        since = f"; it came with Kafka {request.since}" if request.since else ""
        hint = _address_hint(url) if urlsplit(url).path else "show its version: pyconnect info"
        return FailedAttempt(PreconditionFailed(f"this worker has no {where}{since}", hint=hint))
    match status:
        case 401:
            hint = "give credentials: --username with --password-file, or --token-file"
            if credentials:
                hint = NOT_ACCEPTED
            shown = f"{where}: {message}" if message else text
            return FailedAttempt(NotAuthenticated(shown, hint=hint))
        case 403:
            return FailedAttempt(Forbidden(text))
        case 404 if message is None:
            return FailedAttempt(
                ServerError(f"{where}: HTTP 404, not from Kafka Connect", hint=_address_hint(url))
            )
        case 404:
            return FailedAttempt(NotFound(text))
        case 409:
            return FailedAttempt(Conflict(text), momentary=ALREADY_EXISTS not in text)
        case 500 if message == REBALANCE_READ or ZOMBIE_TASKS in text:
            return FailedAttempt(Conflict(text), momentary=True)
        case _ if status < 500:
            return FailedAttempt(RejectedRequest(text, hint=hint))
        case _:
            return FailedAttempt(ServerError(text, hint=hint))


def _address_hint(url: str) -> str:
    parts = urlsplit(url)
    if parts.path:
        bare = f"{parts.scheme}://{parts.netloc}"
        return f"is the path {parts.path} of the address right? Without the path: --url {bare}"
    return f"is there a Connect worker at {url}, or below a path of it?"


def behind_gateway(response: httpx.Response, request: RestRequest) -> bool:
    """Return whether a gateway answered for a dead worker, and the request may be repeated."""
    return (
        response.status_code in GATEWAY_STATUSES
        and request.method in IDEMPOTENT
        and response.status_code not in request.accepted
        and error_message(response) is None
    )


def error_message(response: httpx.Response) -> str | None:
    """Return the message of Connect's error envelope, secrets masked; None for any other body.

    A worker repeats whole configurations in its messages.
    """
    try:
        body = response.json()
    except (ValueError, RecursionError):
        return None
    if isinstance(body, Mapping) and "error_code" in body:
        return mask_text(str(body.get("message")))
    return None


# Patterns as texts are compiled at their first use: few answers need them.
UNKNOWN_PLUGIN = (
    r"(?s)(?:[\w.$]+Exception: )?(?P<fact>Failed to find any class that implements \w+ and which"
    r" name matches (?P<wanted>\S+)), available \w+ are: (?P<list>.*)"
)
PLUGIN = r"PluginDesc\{klass=(?:class|interface) ([\w.$]+)"
LIST_PLUGINS = (
    "list the installed plugins: pyconnect plugins list; why others are missing: pyconnect agent"
    " doctor, and the worker's log"
)
INVALID = (
    r"(?s)(?P<fact>Connector configuration is invalid.*?)\s*You can also find the above list of"
    r" errors at the endpoint `[^`]*`\s*"
)
_SUFFIX = "Connector"
TITLE = r"(?i)<title>\s*(?:Error \d+ )?([^<]*?)\s*</title>"


class Told(NamedTuple):
    """A short message, and a hint if there is a command to run next."""

    message: str
    hint: str | None = None


def told(message: str) -> Told:
    """Return Connect's message without its long lists."""
    if match := re.fullmatch(UNKNOWN_PLUGIN, message):
        # With the end that most names share, any two of them would look similar.
        wanted = match["wanted"]
        classes = re.findall(PLUGIN, match["list"])
        package, _, simple = wanted.rpartition(".")
        if package:
            of_package = [name for name in classes if name.rpartition(".")[0] == package]
            near = did_you_mean(wanted, of_package)
        else:
            aliases = [name.rpartition(".")[2].removesuffix(_SUFFIX) for name in classes]
            near = did_you_mean(simple.removesuffix(_SUFFIX), aliases)
        return Told(match["fact"], near or LIST_PLUGINS)
    if match := re.fullmatch(INVALID, message):
        return Told(match["fact"], "list the configuration keys: pyconnect plugins describe CLASS")
    return Told(message)


def page_title(text: str) -> str | None:
    """Return the title of an HTML page: servers and proxies put the reason there."""
    found = re.search(TITLE, text)
    return found[1] if found and found[1] else None
