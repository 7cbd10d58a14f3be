"""Requests, repetitions, and the reading of each answer.

Httpx is real, the network is a function.
"""

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from pyconnect_cli.acting.workers import ask_all
from pyconnect_cli.errors import (
    Conflict,
    ExitCode,
    OutOfTime,
    PreconditionFailed,
    PyconnectError,
    ServerError,
    UnknownOutcome,
    Unreachable,
    UsageError,
)
from pyconnect_cli.rest.agent_client import AgentClient
from pyconnect_cli.rest.client import ConnectClient
from pyconnect_cli.rest.endpoint import Endpoint, Limits, base_url
from pyconnect_cli.rest.exchange import Exchange
from pyconnect_cli.rest.request import REBALANCE_READ
from tests.support.cases import cases

Handler = Callable[[httpx.Request], httpx.Response]
REBALANCE = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"


class Network:
    """Answers requests by `handler` and keeps them; time passes only during waits."""

    def __init__(
        self,
        handler: Handler,
        *urls: str,
        timeout_s: float = 60.0,
        admins: Mapping[str, str] | None = None,
    ) -> None:
        self.sent: list[httpx.Request] = []
        self.pauses: list[float] = []
        self.lines: list[str] = []
        self.now = 0.0

        def answer(request: httpx.Request) -> httpx.Response:
            self.sent.append(request)
            return handler(request)

        self.exchange = Exchange(
            Endpoint(
                urls=urls or ("http://one:8083",),
                admins=admins or {},
                limits=Limits(run_s=timeout_s),
            ),
            verbosity=2,
            trace=self.lines.append,
            transport=httpx.MockTransport(answer),
            clock=lambda: self.now,
            sleep=self._sleep,
        )
        self.client = ConnectClient(self.exchange)

    def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    @property
    def trace(self) -> str:
        return "\n".join(self.lines)


def envelope(status: int, message: str) -> httpx.Response:
    return httpx.Response(status, json={"error_code": status, "message": message})


def only_two_answers(request: httpx.Request) -> httpx.Response:
    if request.url.host == "one":
        raise httpx.ConnectError("refused", request=request)
    return httpx.Response(200, json=["a"])


def test_a_refused_connection_moves_on_and_the_next_request_starts_there() -> None:
    """After a refused connection, requests go first to the address that answered."""
    network = Network(only_two_answers, "http://one:8083", "http://two:8083")
    assert network.client.connector_names() == ["a"]
    network.client.connector_names()
    assert [request.url.host for request in network.sent] == ["one", "two", "two"]


def test_threads_share_one_pool_of_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads share one pool of connections, because a second one would never be closed."""
    network = Network(lambda _: httpx.Response(200, json=[]))
    made: list[httpx.Client] = []
    both = threading.Barrier(2)

    class SlowClient(httpx.Client):
        def __init__(self, **options: Any) -> None:
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(0.5)  # until the other thread makes one too
            super().__init__(**options)
            made.append(self)

    monkeypatch.setattr(httpx, "Client", SlowClient)
    ask_all([1, 2], lambda _: network.client.connector_names())
    network.client.close()
    assert [client.is_closed for client in made] == [True]


def test_all_addresses_refusing_is_unreachable_and_names_each() -> None:
    """If all addresses refuse, the error is exit 7 and names each address."""

    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("Connection refused", request=request)

    network = Network(refuse, "http://one:1", "http://two:2")
    with pytest.raises(Unreachable, match=r"http://one:1: .*http://two:2: ") as caught:
        network.client.connector_names()
    assert caught.value.exit_code == ExitCode.UNREACHABLE


def broken(request: httpx.Request) -> httpx.Response:
    if request.url.host == "one":
        raise httpx.ReadError("reset", request=request)
    return httpx.Response(201, json={"name": "a", "config": {}, "tasks": [], "type": "source"})


def test_a_change_is_sent_once_to_a_worker_that_answers() -> None:
    """A change is sent only to a worker that answered a GET, and it is never sent twice."""
    network = Network(broken, "http://one:1", "http://two:2")
    network.client.create_connector("a", {})
    expected = [("GET", "one"), ("GET", "two"), ("POST", "two")]
    assert [(request.method, request.url.host) for request in network.sent] == expected

    def answer(request: httpx.Request) -> httpx.Response:
        return broken(request) if request.method == "POST" else httpx.Response(200, json={})

    network = Network(answer, "http://one:1", "http://two:2")
    with pytest.raises(UnknownOutcome, match="may have taken effect"):
        network.client.create_connector("a", {})
    assert [request.method for request in network.sent] == ["GET", "POST"]


def test_an_unanswered_idempotent_change_may_have_taken_effect() -> None:
    """A DELETE without an answer has an unknown outcome; a PUT is repeated at the next address."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json={})
        raise httpx.ReadTimeout("", request=request)

    with pytest.raises(UnknownOutcome, match=r"within 10s \(--request-timeout\); it may have"):
        Network(answer, "http://one:1").client.delete_connector("a")
    network = Network(broken, "http://one:1", "http://two:2")
    assert network.client.put_connector_config("a", {})[1] is True


def test_each_address_has_its_share_of_the_time() -> None:
    """A request is limited by its own limit and by its share of the run's remaining time."""
    allowed: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seconds = request.extensions["timeout"]["read"]
        allowed.append(seconds)
        network.now += seconds
        raise httpx.ReadTimeout("", request=request)

    network = Network(answer, "http://one:1", "http://two:2", "http://three:3", timeout_s=15)
    with pytest.raises(Unreachable, match=r"http://one:1: no answer within 5s \(--timeout\)"):
        network.client.connector_names()
    assert allowed == [5, 5, 5]
    network = Network(answer, "http://one:1", "http://two:2", timeout_s=150)
    with pytest.raises(Unreachable, match=r"no answer within 10s \(--request-timeout\)"):
        network.client.connector_names()
    assert allowed == [5, 5, 5, 10, 10]


def test_no_request_outlives_the_time() -> None:
    """A request without time left is not sent; a renewal of the time keeps the deadline."""
    network = Network(lambda _: httpx.Response(200, json=[]), timeout_s=10)
    network.now = 10.0
    with pytest.raises(OutOfTime, match="GET /connectors was not sent") as caught:
        network.client.connector_names()
    assert caught.value.exit_code == ExitCode.TIMED_OUT
    assert network.sent == []
    network = Network(lambda _: httpx.Response(200, json=[]), timeout_s=10)
    network.exchange.budget.end_within(4)
    network.exchange.budget.renew(100)
    assert network.exchange.budget.remaining_s() == 4
    network = Network(lambda _: httpx.Response(200, json=[]), timeout_s=10)
    network.now = 1000.0
    assert network.exchange.budget.remaining_s() == 0
    network.exchange.budget.renew()
    assert network.exchange.budget.remaining_s() == 10


@cases("status", 502, 503, 504)
def test_a_gateway_without_a_worker_moves_on(status: int) -> None:
    """A proxy's error page leads to the next address; from the last address it is an error."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "one":
            return httpx.Response(status, html="<h1>Bad gateway</h1>")
        return httpx.Response(200, json=["a"])

    assert Network(answer, "http://one:1", "http://two:2").client.connector_names() == ["a"]
    with pytest.raises(ServerError, match=f"HTTP {status}"):
        Network(answer, "http://one:1").client.connector_names()


def test_a_rebalance_is_waited_out_within_the_time() -> None:
    """A refusal by a rebalance is repeated after growing pauses; an existing name is not."""
    answers = iter([envelope(409, REBALANCE), envelope(500, REBALANCE_READ)])
    network = Network(lambda _: next(answers, httpx.Response(200, json={})))
    network.client.connector_config("a")
    assert network.pauses == [0.25, 0.5]
    network = Network(lambda _: envelope(409, REBALANCE), timeout_s=10)
    with pytest.raises(Conflict, match="worker rebalance"):
        network.client.pause_connector("a")
    assert sum(network.pauses) <= 10
    assert max(network.pauses) <= 5
    network = Network(lambda _: envelope(409, "Connector a already exists"))
    with pytest.raises(Conflict, match="already exists"):
        network.client.create_connector("a", {})
    assert network.pauses == []


@cases(
    "status, code",
    (400, ExitCode.USAGE), (401, ExitCode.NOT_AUTHENTICATED), (403, ExitCode.FORBIDDEN),
    (404, ExitCode.NOT_FOUND), (422, ExitCode.USAGE), (500, ExitCode.SERVER_ERROR),
    (503, ExitCode.SERVER_ERROR),
)  # fmt: skip
def test_each_status_has_an_exit_code_and_the_workers_words(status: int, code: ExitCode) -> None:
    """Each status has its exit code, and the error has the message of Connect's error body."""
    network = Network(lambda _: envelope(status, "the worker's words"))
    with pytest.raises(PyconnectError, match="the worker's words") as caught:
        network.client.pause_connector("a")
    assert caught.value.exit_code == code


def test_an_endpoint_an_older_worker_lacks_is_a_precondition() -> None:
    """An endpoint that the worker lacks is exit 9 with the Kafka version that introduced it."""
    network = Network(lambda _: envelope(404, "HTTP 404 Not Found"))
    with pytest.raises(PreconditionFailed, match=r"came with Kafka 3\.5 \(KIP-875\)"):
        network.client.stop_connector("a")


@cases("answer", envelope(404, "HTTP 404 Not Found"), httpx.Response(404, html="<h1>nginx</h1>"))
def test_a_wrong_path_of_the_address_is_shown_and_doubted(answer: httpx.Response) -> None:
    """A 404 below a path of the address leads to a hint that the path may be wrong."""
    network = Network(lambda _: answer, "http://one:8083/foo/")
    with pytest.raises(PyconnectError, match="GET http://one:8083/foo/connectors") as caught:
        network.client.connector_names()
    assert caught.value.hint
    assert "is the path /foo of the address right?" in caught.value.hint
    assert "--url http://one:8083" in caught.value.hint


@cases(
    "response, error, text",
    (httpx.Response(404, html="<h1>nginx</h1>"), ServerError, "not from Kafka Connect"),
    (httpx.Response(200, html="<h1>hello</h1>"), ServerError, "not JSON"),
    (httpx.Response(200, json=["a"]), ServerError, "not a connector of Kafka Connect"),
    (httpx.Response(200, json={"name": "a"}), ServerError, "`config` is missing"),
    (
        httpx.Response(302, headers={"location": "http://login/"}),
        ServerError,
        "redirects to http://login/",
    ),
)
def test_an_answer_from_another_server_is_named_as_the_cause(
    response: httpx.Response, error: type[PyconnectError], text: str
) -> None:
    """An answer that is not Kafka Connect's is an error of the server, not of the connector."""
    network = Network(lambda _: response)
    with pytest.raises(error, match=text):
        network.client.connector("a")


@cases("name", "a b", "ü/ö", "50%", "a?b#c", "...", "+", "%2e")
def test_names_are_encoded_whole(name: str) -> None:
    """A name is encoded so that the server decodes exactly that name."""
    network = Network(lambda _: httpx.Response(202))
    network.client.pause_connector(name)
    segments = network.sent[-1].url.raw_path.decode().split("/")
    assert [unquote(segment) for segment in segments] == ["", "connectors", name, "pause"]


@cases("name", "", ".", "..")
def test_names_that_lead_elsewhere_are_never_sent(name: str) -> None:
    """A name such as `..` is refused, because a request would reach another resource."""
    network = Network(lambda _: httpx.Response(204))
    with pytest.raises(UsageError, match="cannot be a name"):
        network.client.delete_connector(name)
    assert network.sent == []


@cases("name", " a", "a ", "a\n")
def test_a_name_that_a_worker_would_cut_is_refused(name: str) -> None:
    """White space at the ends of a new name is refused, because a worker would remove it."""
    network = Network(lambda _: httpx.Response(201))
    with pytest.raises(UsageError, match="white space at the ends"):
        network.client.create_connector(name, {})
    assert network.sent == []


def test_white_space_that_workers_keep_is_part_of_a_name() -> None:
    """White space that Java's trim() keeps is part of a name."""
    name = "\xa0a\u3000"
    created = {"name": name, "config": {}, "tasks": [], "type": "source"}

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(201, json=created)
        is_name = "a" in request.url.path.removeprefix("/connectors")
        return envelope(404, "not found") if is_name else httpx.Response(200, json={})

    assert Network(answer).client.create_connector(name, {}).name == name


def test_the_verbose_trace_masks_secrets() -> None:
    """The verbose trace shows neither passwords of configurations nor credentials of addresses."""
    network = Network(
        lambda _: envelope(400, "Connector config {db.password=s3cret, a=b} is bad"),
        "http://ops:s3cret@one:8083",
    )
    with pytest.raises(PyconnectError) as caught:
        network.client.put_connector_config("a", {"db.password": "s3cret", "x": "shown"})
    assert "shown" in network.trace
    assert "s3cret" not in network.trace + caught.value.message
    assert "a=b" in caught.value.message


def test_requests_of_the_admin_interface_go_to_its_own_address() -> None:
    """Requests to the admin interface have the address and credentials of that interface."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/agent":
            return envelope(500, "broken")
        return httpx.Response(200, json=[])

    admins = {"http://one:8083": "http://admin:SECRET@one:8084/"}
    network = Network(answer, "http://rest:SECRET@one:8083", admins=admins)
    network.client.connector_names()
    agent = AgentClient(network.exchange)
    with pytest.raises(ServerError) as caught:
        agent.info()
    assert [request.url.port for request in network.sent] == [8083, 8084]
    given = [httpx.BasicAuth(user, "SECRET") for user in ("rest", "admin")]
    expected = [auth._auth_header for auth in given]
    assert [request.headers["authorization"] for request in network.sent] == expected
    assert "SECRET" not in f"{caught.value}{network.trace}"
    assert "http://one:8084/agent" in network.trace


def test_credentials_of_an_address_go_to_that_address_only() -> None:
    """The credentials in an address are not sent to the next address."""
    network = Network(only_two_answers, "http://ops:s3cret@one:1", "http://two:2")
    network.client.connector_names()
    assert network.sent[0].headers["authorization"].startswith("Basic ")
    assert "authorization" not in network.sent[1].headers


@cases(
    "text, address",
    ("host:8083", "http://host:8083"),
    ("https://host/connect/", "https://host/connect"),
    ("http://[::1]:8083", "http://[::1]:8083"),
)
def test_addresses_are_completed(text: str, address: str) -> None:
    """An address without a scheme gets http, and its path is kept."""
    assert base_url(text) == (address, None)


@cases("text", "ftp://host", "http://", "http://host:port", "http://host:99999")
def test_an_invalid_address_is_a_usage_error(text: str) -> None:
    """An invalid address is a usage error before the first request."""
    with pytest.raises(UsageError, match="not an address"):
        base_url(text)
