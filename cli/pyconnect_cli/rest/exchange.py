"""HTTP exchanges with a Connect cluster: addresses in turn, retries, errors in our words.

The only module that imports httpx. Each request has its own limit within the run's budget, for the
whole of its answer; once the budget is spent, no request is sent. Three kinds of requests are
repeated: one with a refused connection and an idempotent one without an answer (both at the next
address), and one that a rebalance refuses for the moment (409, and the 500 of reads). No other
request is sent twice. A change goes only to a worker that has answered before, so a worker that
hangs never gets one. A user hears of an answer that takes longer than a second. Addresses that did
not answer are tried last, also by the runs of the next minute.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pyconnect_cli.errors import OutOfTime, ServerError, UnknownOutcome, Unreachable
from pyconnect_cli.parsing.values import TOO_DEEP, shallow
from pyconnect_cli.render.streams import tell
from pyconnect_cli.rest.endpoint import (
    CONNECT_S,
    Allowance,
    Budget,
    Endpoint,
    base_url,
    in_background,
    tls_context,
)
from pyconnect_cli.rest.masking import mask_document, mask_text
from pyconnect_cli.rest.request import IDEMPOTENT, Answer, RestRequest, behind_gateway, read_failure

if TYPE_CHECKING:
    import httpx

ERRNO = re.compile(r"^\[Errno -?\d+\] ")
NO_WORKER = "is this the address of a Connect worker?"
LARGEST_BYTES = 128 * 1024 * 1024
# The library's own limits come first: they say whether there was a connection.
LATER_S = 0.25
NOTICED_S = 1.0
"""The command names the awaited request after this time."""
NO_TIME = "not asked: the time of --timeout is over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """One attempt at one address; `sent`: the worker may have received the request."""

    url: str
    reason: str
    sent: bool = False

    def __str__(self) -> str:
        return f"{self.url}: {self.reason}"


def unanswered_error(method: str, target: str, attempts: Sequence[Unanswered]) -> Unreachable:
    """Return the error for a request that no address answered."""
    sent = [attempt for attempt in attempts if attempt.sent and method != "GET"]
    if sent:
        return UnknownOutcome(
            f"{method} {sent[-1].url}{target}: {sent[-1].reason}; it may have taken effect",
            hint="check the state before you try again",
        )
    hint = "give an address with --url or choose a context; for a diagnosis: pyconnect doctor"
    if any("--request-timeout" in attempt.reason for attempt in attempts):
        hint = "a worker that is busy may need longer: --request-timeout 60s"
    return Unreachable(f"no worker answers: {'; '.join(map(str, attempts))}", hint=hint)


def describe_transport_error(error: Exception, allowance: Allowance) -> str:
    """Return the reason of a missing answer in a few words."""
    name = type(error).__name__
    text = str(error)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        reason = re.sub(r"^.*CERTIFICATE_VERIFY_FAILED\] |\s*\(_ssl\.c:\d+\)$", "", text)
        return f"its certificate is not trusted ({reason}); see --ca-file"
    if "WRONG_VERSION_NUMBER" in text:
        return "the server does not use TLS; is the address http:// instead of https://?"
    words = {
        "ConnectTimeout": f"no connection within {min(CONNECT_S, allowance.seconds):.2g}s",
        "ReadTimeout": f"no answer within {allowance.seconds:.3g}s ({allowance.option})",
        "RemoteProtocolError": "the connection broke",
        "ReadError": "the connection broke",
    }
    return words.get(name) or ERRNO.sub("", text) or name


FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 5.0

Trace = Callable[[str], None]

PROBE = RestRequest(method="GET", path=())
ADMIN = ("agent",)
Address = tuple[str, tuple[str, str] | None]
"""A URL, and the user and password that were in it."""


class DeadAddresses:
    """Addresses that did not answer lately; `keep` gets them whenever they change."""

    def __init__(
        self, urls: Sequence[str] = (), keep: Callable[[Sequence[str]], None] | None = None
    ) -> None:
        self._urls = set(urls)
        self._keep = keep

    def __contains__(self, url: object) -> bool:
        return url in self._urls

    def mark(self, url: str, *, dead: bool) -> None:
        """Note whether an address has answered."""
        if (url in self._urls) != dead:
            self._urls ^= {url}
            if self._keep:
                self._keep(sorted(self._urls))


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
        notice: Callable[[str], None] | None = None,
        dead: DeadAddresses | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.budget = budget or Budget(endpoint.limits.run_s, clock)
        self._endpoint = endpoint
        self._verbosity = verbosity
        self._trace = trace or tell
        self._transport = transport
        self._notice = notice or (lambda _: None)
        self._dead = dead or DeadAddresses()
        self._noticed: set[str] = set()
        self._waiting: set[str] = set()
        self._clock = clock
        self._sleep = sleep
        self._urls = [base_url(url) for url in endpoint.urls]
        self._admins = {base_url(of)[0]: base_url(url) for of, url in endpoint.admins.items()}
        self._preferred = 0
        self._answered: set[int] = set()
        self._http: httpx.Client | None = None
        self._making = threading.Lock()

    @property
    def urls(self) -> list[str]:
        """The addresses, without the user and password in them."""
        return [url for url, _ in self._urls]

    def only(self, url: str) -> Exchange:
        """Return an exchange with one address, of these or another, on the same budget of time."""
        given = dict(zip(self.urls, self._endpoint.urls, strict=True)).get(url, url)
        return Exchange(
            replace(self._endpoint, urls=(given,)),
            verbosity=self._verbosity,
            trace=self._trace,
            transport=self._transport,
            budget=self.budget,
            notice=self._notice,
            clock=self._clock,
            sleep=self._sleep,
        )

    def close(self) -> None:
        if self._http is not None:
            self._http.close()
            self._http = None

    def send(self, request: RestRequest) -> Answer:
        """Return the answer, or raise the error of its status."""
        request.target()  # raises for a name that no path can carry, before anything is sent
        pause = FIRST_PAUSE_S
        while True:
            response, url = self._send_somewhere(request)
            failure = read_failure(
                response,
                request,
                self._target(request, (url, None))[0],
                credentials="authorization" in response.request.headers,
            )
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

    def _send_somewhere(self, request: RestRequest) -> tuple[httpx.Response, str]:
        unanswered: list[Unanswered] = []
        order = [(self._preferred + step) % len(self._urls) for step in range(len(self._urls))]
        order.sort(key=lambda index: self.urls[index] in self._dead)
        for place, index in enumerate(order):
            if self.budget.spent:
                break
            url = self._urls[index][0]
            began_s = self._clock()
            response = self._attempt(request, index, len(order) - place)
            if len(order) > 1 and not self.budget.spent:
                self._dead.mark(url, dead=isinstance(response, Unanswered))
            if isinstance(response, Unanswered):
                self._note(f"* {response}")
                if place + 1 < len(order) and self._clock() - began_s >= NOTICED_S:
                    self._notice_once(f"{response}; trying {self.urls[order[place + 1]]}")
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

    def _notice_once(self, text: str) -> None:
        if text not in self._noticed:
            self._noticed.add(text)
            self._notice(text)

    def _attempt(self, request: RestRequest, index: int, left: int) -> httpx.Response | Unanswered:
        """Ask one address; `left` addresses, this one included, share the remaining time."""
        # httpx would import its own command line too, for 160 ms.
        sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type] # as importlib does
        import httpx

        limits = self._endpoint.limits
        limit_s = limits.long_request_s if request.long else limits.request_s
        url, _ = self._target(request, self._urls[index])
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

    def _send_once(self, request: RestRequest, index: int, allowance: Allowance) -> httpx.Response:
        import httpx

        url, credentials = self._target(request, self._urls[index])
        client = self._client()
        headers = {"Accept": "text/plain" if request.text else "application/json"}
        content: bytes | None = None
        if request.body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(request.body, ensure_ascii=False).encode()
        timeout = httpx.Timeout(allowance.seconds, connect=min(CONNECT_S, allowance.seconds))
        # Basic credentials inside an address are for that address only and win over the context's.
        auth = httpx.BasicAuth(*credentials) if credentials else httpx.USE_CLIENT_DEFAULT
        self._note(f"> {request.method} {url}{request.target()}")
        if self._verbosity > 1 and content is not None:
            self._note(f"> {_masked_json(request.body)}")
        started = self._clock()
        ask = partial(
            client.stream,
            request.method,
            url + request.target(),
            headers=headers,
            content=content,
            timeout=timeout,
            auth=auth,
        )
        # The library's timeout is for one read, which a server that sends byte by byte never
        # exceeds.
        until_s = time.monotonic() + allowance.seconds
        answer = in_background(lambda: _whole_answer(ask, url, until_s))
        named = False
        if not wait([answer], min(NOTICED_S, allowance.seconds)).done and url not in self._waiting:
            # One line is enough for all requests that wait at the same time.
            named = True
            self._waiting.add(url)
            self._notice_once(f"waiting for {url}: {request.method} {request.target()}")
        try:
            response = answer.result(max(until_s - time.monotonic(), 0) + LATER_S)
        except TimeoutError as exc:
            raise httpx.ReadTimeout(str(exc)) from exc
        finally:
            if named:
                self._waiting.discard(url)
        self._note(
            f"< {response.status_code} {response.reason_phrase}"
            f" ({len(response.content)} bytes, {(self._clock() - started) * 1000:.0f} ms)"
        )
        if self._verbosity > 1 and response.content:
            try:
                self._note(f"< {_masked_json(shallow(response.json()))}")
            except (ValueError, RecursionError):
                self._note(f"< {response.text[:500]}")
        return response

    def _client(self) -> httpx.Client:
        import httpx

        # Threads share the client: of two clients made at once, one would never be closed.
        with self._making:
            if self._http is None:
                endpoint = self._endpoint
                headers = {"User-Agent": "pyconnect"}
                auth: httpx.Auth | None = None
                if endpoint.token:
                    headers["Authorization"] = f"Bearer {endpoint.token}"
                elif endpoint.username:
                    auth = httpx.BasicAuth(endpoint.username, endpoint.password or "")
                urls = [*self.urls, *(url for url, _ in self._admins.values())]
                secure = any(url.startswith("https") for url in urls)
                self._http = httpx.Client(
                    verify=tls_context(endpoint) if secure else False,
                    auth=auth,
                    headers=headers,
                    transport=self._transport,
                )
            return self._http

    def _target(self, request: RestRequest, worker: Address) -> Address:
        """Return the address that answers a request; an agent's admin interface may have its own.

        Credentials inside an address are for that address only.
        """
        return self._admins.get(worker[0], worker) if request.path[:1] == ADMIN else worker

    def _note(self, line: str) -> None:
        if self._verbosity:
            self._trace(mask_text(line))


def _whole_answer(
    ask: Callable[[], AbstractContextManager[httpx.Response]], url: str, until_s: float
) -> httpx.Response:
    """Read an answer to its end; TimeoutError after `until_s` of the monotonic clock.

    ServerError for an answer too large to come from a worker, because it would fill the memory.
    """
    import httpx

    parts: list[bytes] = []
    size = 0
    try:
        with ask() as response:
            for part in response.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > LARGEST_BYTES:
                    raise ServerError(
                        f"{url}: the answer is larger than {LARGEST_BYTES // 1024**2} MiB and was"
                        " not read to its end",
                        hint=NO_WORKER,
                    )
                if time.monotonic() > until_s:
                    raise TimeoutError
    except httpx.DecodingError as exc:
        text = f"{url}: the answer is compressed wrongly: {exc}"
        raise ServerError(text, hint=NO_WORKER) from exc
    whole = httpx.Response(
        response.status_code,
        request=response.request,
        content=b"".join(parts),
        extensions=response.extensions,
    )
    for name in ("content-type", "location"):
        if name in response.headers:
            whole.headers[name] = response.headers[name]
    return whole


def _body(response: httpx.Response, url: str, request: RestRequest) -> object:
    if not response.content:
        return None
    if request.text and response.is_success:
        return response.text
    try:
        return shallow(response.json())
    except RecursionError as exc:
        raise ServerError(
            f"{url} answered {response.status_code} with JSON that cannot be read: {TOO_DEEP}",
            hint=NO_WORKER,
        ) from exc
    except ValueError as exc:
        raise ServerError(
            f"{url} answered {response.status_code} with a body that is not JSON", hint=NO_WORKER
        ) from exc


def _masked_json(document: object) -> str:
    return json.dumps(mask_document(document), ensure_ascii=False)
