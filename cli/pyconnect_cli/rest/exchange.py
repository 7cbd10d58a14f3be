"""HTTP exchanges with a Connect cluster: addresses in turn, retries, errors in our words.

The only module that imports httpx. Each request has its own limit within the run's budget; once the
budget is spent, no request is sent. Three kinds of requests are repeated: one with a refused
connection and an idempotent one without an answer (both at the next address), and one that a
rebalance refuses for the moment (409, and the 500 of reads). No other request is sent twice. A
change goes only to a worker that has answered before, so a worker that hangs never gets one.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from pyconnect_cli.errors import (
    Conflict,
    Forbidden,
    NotAuthenticated,
    NotFound,
    OutOfTime,
    PreconditionFailed,
    PyconnectError,
    RejectedRequest,
    ServerError,
    UsageError,
)
from pyconnect_cli.render.streams import tell
from pyconnect_cli.rest.attempts import (
    NO_TIME,
    Unanswered,
    describe_transport_error,
    unanswered_error,
)
from pyconnect_cli.rest.budget import CONNECT_S, Allowance, Budget
from pyconnect_cli.rest.endpoint import Endpoint, base_url, tls_context
from pyconnect_cli.rest.masking import mask_document, mask_text
from pyconnect_cli.rest.worker_messages import page_title, told

if TYPE_CHECKING:
    import httpx

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 5.0
REBALANCE_READ = "Request cannot be completed because a rebalance is expected"
ALREADY_EXISTS = "already exists"
# Consumers of tasks that have just been stopped may still be members of the group (KIP-875).
ZOMBIE_TASKS = "If the connector is in a stopped state, this operation can be safely retried"
UNKNOWN_PATH = "HTTP 404 Not Found"
IDEMPOTENT = frozenset({"GET", "PUT", "DELETE"})
# A gateway in front of a worker that is down; a worker's own 503 has Connect's error body.
GATEWAY_STATUSES = frozenset({502, 503, 504})

Trace = Callable[[str], None]


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
    has_body: bool = False
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


PROBE = Request(method="GET", path=())


class Exchange:
    """Sends requests to the first worker that answers. Safe to share between threads."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        verbosity: int = 0,
        trace: Trace | None = None,
        transport: httpx.BaseTransport | None = None,
        budget: Budget | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.budget = budget or Budget(endpoint.limits.run_s, clock)
        self._endpoint = endpoint
        self._verbosity = verbosity
        self._trace = trace or tell
        self._transport = transport
        self._clock = clock
        self._sleep = sleep
        self._urls = [base_url(url) for url in endpoint.urls]
        self._preferred = 0
        self._answered: set[int] = set()
        self._http: httpx.Client | None = None
        self._making = threading.Lock()

    @property
    def urls(self) -> list[str]:
        """The addresses without credentials."""
        return [url for url, _ in self._urls]

    def only(self, url: str) -> Exchange:
        """Return an exchange with one of the addresses, on the same budget of time."""
        single = Exchange(
            self._endpoint,
            verbosity=self._verbosity,
            trace=self._trace,
            transport=self._transport,
            budget=self.budget,
            clock=self._clock,
            sleep=self._sleep,
        )
        single._urls = [self._urls[self.urls.index(url)]]
        return single

    def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def send(self, request: Request) -> Answer:
        """Return the answer, or raise the error of its status."""
        request.target()  # raises for a name that no path can carry, before anything is sent
        pause = FIRST_PAUSE_S
        while True:
            response, url = self._send_somewhere(request)
            failure = read_failure(response, request, url)
            if failure is None:
                return Answer(
                    status=response.status_code,
                    body=_body(response, url, request),
                    url=url,
                    location=response.headers.get("location"),
                )
            if not failure.momentary or self.budget.remaining_s() <= pause:
                raise failure.error
            self._note(f"* {failure.error.message}; trying again in {pause:.2g}s")
            self._sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    def _send_somewhere(self, request: Request) -> tuple[httpx.Response, str]:
        unanswered: list[Unanswered] = []
        order = [(self._preferred + step) % len(self._urls) for step in range(len(self._urls))]
        for place, index in enumerate(order):
            if self.budget.spent:
                break
            url = self._urls[index][0]
            response = self._attempt(request, index, len(order) - place)
            if isinstance(response, Unanswered):
                self._note(f"* {response}")
                unanswered.append(response)
                if response.sent and request.method not in IDEMPOTENT:
                    break
                continue
            if behind_gateway(response, request) and index != order[-1]:
                self._note(f"* {url}: HTTP {response.status_code} of a gateway; trying the next")
                continue
            self._preferred = index
            return response, url
        if not unanswered:
            raise OutOfTime(
                f"{request.method} {request.target()} was not sent: the time of --timeout is over",
                hint="allow more: --timeout 10m",
            )
        raise unanswered_error(request.method, request.target(), unanswered)

    def _attempt(self, request: Request, index: int, left: int) -> httpx.Response | Unanswered:
        """Ask one address; `left` addresses, this one included, share the time that is left."""
        import_httpx()
        import httpx

        limits = self._endpoint.limits
        limit_s = limits.long_request_s if request.long else limits.request_s
        url = self._urls[index][0]
        if request.changes and index not in self._answered:
            probed = self._attempt(PROBE, index, left)
            if isinstance(probed, Unanswered):
                return probed
        if self.budget.spent:
            return Unanswered(url=url, reason=NO_TIME)
        allowance = self.budget.attempt(limit_s, left)
        try:
            response = self._send_once(request, index, allowance)
        except httpx.TransportError as exc:
            return Unanswered(
                url=url,
                reason=describe_transport_error(exc, allowance),
                sent=not (
                    request is PROBE or isinstance(exc, httpx.ConnectError | httpx.ConnectTimeout)
                ),
            )
        self._answered.add(index)
        return response

    def _send_once(self, request: Request, index: int, allowance: Allowance) -> httpx.Response:
        import httpx

        url, credentials = self._urls[index]
        client = self._client()
        headers = {"Accept": "text/plain" if request.text else "application/json"}
        content: bytes | None = None
        if request.has_body:
            headers["Content-Type"] = "application/json"
            content = json.dumps(request.body, ensure_ascii=False).encode()
        timeout = httpx.Timeout(allowance.seconds, connect=min(CONNECT_S, allowance.seconds))
        # Basic credentials inside an address are for that address only and win over the context's.
        auth = httpx.BasicAuth(*credentials) if credentials else httpx.USE_CLIENT_DEFAULT
        self._note_request(request, url, content)
        started = self._clock()
        response = client.request(
            request.method,
            url + request.target(),
            headers=headers,
            content=content,
            timeout=timeout,
            auth=auth,
        )
        self._note_response(response, self._clock() - started)
        return response

    def _client(self) -> httpx.Client:
        # Threads share it: of two clients made at once, one would never be closed.
        with self._making:
            if self._http is None:
                self._http = self._new_client()
            return self._http

    def _new_client(self) -> httpx.Client:
        import httpx

        endpoint = self._endpoint
        headers = {"User-Agent": "pyconnect"}
        auth: httpx.Auth | None = None
        if endpoint.token:
            headers["Authorization"] = f"Bearer {endpoint.token}"
        elif endpoint.username:
            auth = httpx.BasicAuth(endpoint.username, endpoint.password or "")
        secure = any(url.startswith("https") for url in self.urls)
        return httpx.Client(
            verify=tls_context(endpoint) if secure else False,
            auth=auth,
            headers=headers,
            transport=self._transport,
        )

    def _note(self, line: str) -> None:
        if self._verbosity:
            self._trace(mask_text(line))

    def _note_request(self, request: Request, url: str, content: bytes | None) -> None:
        self._note(f"> {request.method} {url}{request.target()}")
        if self._verbosity > 1 and content is not None:
            self._note(f"> {_masked_json(request.body)}")

    def _note_response(self, response: httpx.Response, seconds: float) -> None:
        self._note(
            f"< {response.status_code} {response.reason_phrase}"
            f" ({len(response.content)} bytes, {seconds * 1000:.0f} ms)"
        )
        if self._verbosity > 1 and response.content:
            try:
                self._note(f"< {_masked_json(response.json())}")
            except ValueError:
                self._note(f"< {response.text[:500]}")


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An unsuccessful answer as an error; `momentary` ones are worth another try."""

    error: PyconnectError
    momentary: bool = False


def read_failure(response: httpx.Response, request: Request, url: str) -> FailedAttempt | None:
    """Return the failure of an answer: the only place where statuses become errors."""
    status = response.status_code
    if 200 <= status < 300 or status in request.accepted:
        return None
    message = error_message(response)
    where = f"{request.method} {url}{request.target()}"
    reason = page_title(response.text) or response.reason_phrase
    text, hint = told(message) if message else (f"{where}: HTTP {status} {reason}".rstrip(), None)
    if status < 400:
        location = response.headers.get("location", "nowhere")
        return FailedAttempt(
            ServerError(f"{where}: redirects to {location}, which is not followed")
        )
    if status in {404, 405} and message in {UNKNOWN_PATH, "HTTP 405 Method Not Allowed"}:
        since = f"; it came with Kafka {request.since}" if request.since else ""
        return FailedAttempt(
            PreconditionFailed(f"this worker has no {where}{since}", hint=_unknown_path_hint(url))
        )
    match status:
        case 401:
            hint = "give credentials: --username with --password-file, or --token-file"
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


def _unknown_path_hint(url: str) -> str:
    return _address_hint(url) if urlsplit(url).path else "show its version: pyconnect info"


def _address_hint(url: str) -> str:
    parts = urlsplit(url)
    if parts.path:
        bare = f"{parts.scheme}://{parts.netloc}"
        return f"is the path {parts.path} of the address right? Without the path: --url {bare}"
    return f"is there a Connect worker at {url}, or below a path of it?"


def behind_gateway(response: httpx.Response, request: Request) -> bool:
    """Return whether a gateway answered for a dead worker, to a request that may be repeated."""
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
    except ValueError:
        return None
    if isinstance(body, Mapping) and "error_code" in body:
        return mask_text(str(body.get("message")))
    return None


def import_httpx() -> None:
    """Import httpx without its command line, which takes 160 ms and is not used here."""
    if "httpx" not in sys.modules:
        sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type] # as importlib does


def _body(response: httpx.Response, url: str, request: Request) -> object:
    if not response.content:
        return None
    if request.text and response.is_success:
        return response.text
    try:
        return response.json()
    except ValueError as exc:
        raise ServerError(
            f"{url} answered {response.status_code} with a body that is not JSON",
            hint="is this the address of a Connect worker?",
        ) from exc


def _masked_json(document: object) -> str:
    return json.dumps(mask_document(document), ensure_ascii=False)


def query_flags(**flags: bool) -> tuple[tuple[str, str], ...]:
    """Return the query of switches: those that are set, as `name=true`."""
    return tuple((name, "true") for name, value in flags.items() if value)


def query_values(pairs: Sequence[tuple[str, str | None]]) -> tuple[tuple[str, str], ...]:
    """Return the query without the parameters that are None."""
    return tuple((name, value) for name, value in pairs if value is not None)
