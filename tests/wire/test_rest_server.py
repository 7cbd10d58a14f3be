"""The REST server, and the addresses of the admin interface, over real sockets."""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from pyconnect_agent.core.errors import WorkerConfigError, WorkerStartError
from pyconnect_agent.core.herder.requests import GetConnectorInfo, Probe
from pyconnect_agent.core.internal_topics.config_snapshot import SessionKey
from pyconnect_agent.rest.app import MAIN_ROUTES, RestApplication
from pyconnect_agent.rest.exchange import Services
from pyconnect_agent.rest.forwarding import Forwarder, WorkerClient
from pyconnect_agent.rest.server import RestServer
from pyconnect_api.errors import ConfigException
from tests.support.agents.rest_client import Answer, call_url
from tests.support.cases import cases
from tests.support.eventually import eventually_async
from tests.support.fakes.fake_admin import FakeAdmin
from tests.support.fakes.fake_herder import FakeHerder
from tests.support.fakes.rest_services import rest_config, serving
from tests.support.rest_scenarios import SCENARIOS

pytestmark = pytest.mark.wire


@pytest.fixture(scope="module")
def worker_url() -> Iterator[str]:
    """Address of a worker whose answers do not depend on the order of requests."""
    herder = FakeHerder()
    herder.session_key = SessionKey(key=bytes(32), algorithm="HmacSHA256", created_ms=0)
    with serving(rest_config(), herder) as server:
        yield server.advertised_url


def test_answers_over_a_socket_are_those_of_apache(worker_url: str) -> None:
    """The HTTP server does not change the application's answers, which are Apache's."""
    wrong = {
        each.name: found
        for each in SCENARIOS
        if (
            found := each.differences(
                call_url(worker_url, each.method, each.target, each.body, each.headers)
            )
        )
    }
    assert wrong == {}


def test_head_has_the_headers_of_get_and_no_body(worker_url: str) -> None:
    """HEAD has the length of the body that GET returns."""
    get = call_url(worker_url, "GET", "/connector-plugins")
    head = call_url(worker_url, "HEAD", "/connector-plugins")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(get.body))
    assert head.headers["content-type"] == "application/json"


def test_no_content_has_neither_length_nor_type(worker_url: str) -> None:
    """A 204 has no more headers than Apache's."""
    body = json.dumps({"level": "INFO"})
    answer = call_url(
        worker_url,
        "PUT",
        "/admin/loggers/root?scope=cluster",
        body,
        {"Content-Type": "application/json"},
    )
    assert (answer.status, answer.body) == (204, b"")
    assert not {"content-length", "content-type"} & set(answer.headers)


def test_requests_share_a_connection_and_chunked_bodies_are_read(worker_url: str) -> None:
    """Requests share a connection, and a body may come in chunks."""
    chunked = (
        b"PUT /connectors/x/config HTTP/1.1\r\nHost: w\r\nTransfer-Encoding: chunked\r\n"
        b"Content-Type: application/json\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    )
    last = b"GET / HTTP/1.1\r\nHost: w\r\nConnection: close\r\n\r\n"
    host, port = worker_url.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((host, int(port)), timeout=400) as connection:
        connection.sendall(chunked + last)
        received = b""
        while part := connection.recv(65536):
            received += part
    assert b"Connector config {name=x} contains no connector type" in received
    assert received.endswith(b'"kafka_cluster_id":"cluster"}')


def test_the_worker_keeps_its_signals(tmp_path: Path) -> None:
    """The server installs no signal handler, so that SIGTERM keeps the process's own."""
    script = tmp_path / "serve.py"
    script.write_text(
        "import asyncio, signal, sys\n"
        "from tests.support.fakes.fake_herder import FakeHerder\n"
        "from tests.support.fakes.rest_services import rest_config\n"
        "from pyconnect_agent.rest.server import RestServer\n"
        "async def main():\n"
        "    stopped = asyncio.Event()\n"
        "    loop = asyncio.get_running_loop()\n"
        "    loop.add_signal_handler(signal.SIGTERM, stopped.set)\n"
        "    before = signal.getsignal(signal.SIGINT)\n"
        "    server = RestServer(rest_config())\n"
        "    server.bind()\n"
        "    await server.start(FakeHerder())\n"
        "    assert signal.getsignal(signal.SIGINT) is before\n"
        "    print(server.advertised_url, flush=True)\n"
        "    await stopped.wait()\n"
        "    await server.stop(1000)\n"
        "    print('stopped', flush=True)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=_environment()
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert call_url(url, "GET", "/").status == 200
            process.send_signal(signal.SIGTERM)
            assert process.stdout.readline().strip() == "stopped"
            assert process.wait(60) == 0
        finally:
            process.kill()


def test_a_body_that_never_comes_is_given_up() -> None:
    """A client that does not send its body gets an error after the time of a request."""
    services = Services(
        herder=FakeHerder(), forwarder=Forwarder(WorkerClient()), request_timeout_ms=50
    )
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "raw_path": b"/connectors",
        "path": "/connectors",
        "query_string": b"",
        "headers": [],
        "client": None,
    }
    asyncio.run(RestApplication(services, MAIN_ROUTES)(scope, receive, send))
    assert sent[0]["status"] == 500
    assert sent[1]["body"] == b'{"error_code":500,"message":"Request timed out"}'


def test_every_listener_answers_and_port_zero_becomes_a_real_port() -> None:
    """All listeners serve the same API, and their ports are known once they are bound."""
    config = rest_config(listeners="http://127.0.0.1:0,http://localhost:0")
    with serving(config, FakeHerder()) as server:
        ports = [listener.port for listener in server.listeners]
        assert all(ports)
        assert len(set(ports)) == 2
        for port in ports:
            assert call_url(f"http://127.0.0.1:{port}", "GET", "/").status == 200
        assert server.advertised_url == f"http://127.0.0.1:{ports[0]}/"


def test_a_listener_without_host_answers_on_every_interface() -> None:
    """`http://:0` serves on all addresses of the machine."""
    with serving(rest_config(listeners="http://:0"), FakeHerder()) as server:
        port = server.listeners[0].port
        assert call_url(f"http://127.0.0.1:{port}", "GET", "/").status == 200
        assert server.advertised_url.endswith(f":{port}/")


def test_advertised_settings_win_over_the_listener() -> None:
    """Other workers get the address in `rest.advertised.*`."""
    config = rest_config(
        **{"rest.advertised.host.name": "connect.example", "rest.advertised.port": "9999"}
    )
    server = RestServer(config)
    server.bind()
    assert server.advertised_url == "http://connect.example:9999/"
    asyncio.run(server.stop())


def test_a_port_in_use_is_a_start_error_that_names_the_listener() -> None:
    """A port in use is an error that names the listener."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = RestServer(rest_config(listeners=f"http://127.0.0.1:{port}"))
        with pytest.raises(WorkerStartError, match=f"http://127.0.0.1:{port}: .*in use"):
            server.bind()


def test_connections_are_refused_until_the_worker_can_answer() -> None:
    """Connections are refused until the worker has found its brokers."""

    async def run() -> None:
        server = RestServer(rest_config(listeners="http://127.0.0.1:0,http://:0"))
        server.bind()
        ports = [listener.port for listener in server.listeners]
        assert all(map(_refuses, ports))
        await server.start(FakeHerder())
        assert not any(map(_refuses, ports))
        await server.stop(100)

    asyncio.run(run())


def test_a_port_that_was_taken_after_all_is_a_start_error_that_names_the_listener() -> None:
    """A port that another worker listens on first is an error that names the listener."""

    async def run() -> None:
        first = RestServer(rest_config())
        first.bind()
        netloc = first.listeners[0].netloc
        second = RestServer(rest_config(listeners=f"http://{netloc}"))
        second.bind()
        await first.start(FakeHerder())
        with pytest.raises(WorkerStartError, match=f"http://{netloc}: Address already in use"):
            await second.start(FakeHerder())
        await first.stop(100)
        await second.stop(100)

    asyncio.run(run())


@cases("netloc", "127.0.0.1:99999", "127.0.0.1:-1", f"{'a' * 64}.b:0", "a..b:0")
def test_an_address_that_cannot_be_is_a_start_error_that_names_the_listener(netloc: str) -> None:
    """An impossible port or host name is an error that names the listener."""
    server = RestServer(rest_config(listeners=f"http://{netloc}"))
    with pytest.raises(WorkerStartError, match=f"Unable to listen on http://{netloc}: "):
        server.bind()


def test_several_accept_headers_are_one(worker_url: str) -> None:
    """HTTP joins header fields that are lists; a second `Content-Type` is refused."""
    address = urlsplit(worker_url)
    for name, values, status in (
        ("Accept", ("text/html", "application/json"), 200),
        ("Accept", ("text/html", "text/plain"), 406),
        ("Content-Type", ("application/json", "text/plain"), 400),
    ):
        connection = HTTPConnection(address.hostname or "", address.port, timeout=400)
        connection.putrequest("GET", "/connectors")
        for value in values:
            connection.putheader(name, value)
        connection.endheaders()
        assert connection.getresponse().status == status
        connection.close()


def test_an_advertised_protocol_without_listener_is_refused() -> None:
    """A worker that could not be reached at its advertised address does not start."""
    server = RestServer(rest_config(**{"rest.advertised.listener": "https"}))
    with pytest.raises(ConfigException, match="No listener has the advertised protocol https"):
        server.bind()


@cases("admin_listeners", "", "http://127.0.0.1:0")
def test_admin_listeners_take_the_loggers_away_from_the_main_ones(admin_listeners: str) -> None:
    """With `admin.listeners` set, only those listeners serve loggers, and nothing else."""
    config = rest_config(
        **{
            "admin.listeners": admin_listeners,
            "access.control.allow.origin": "*",
            "response.http.headers.config": "add X-Rule: yes",
        }
    )
    with serving(config, FakeHerder()) as server:
        main = call_url(server.advertised_url, "GET", "/admin/loggers")
        assert (main.status, main.headers["x-rule"]) == (404, "yes")
        for listener in server.admin_listeners:
            url = f"http://{listener.netloc}"
            admin = call_url(url, "GET", "/admin/loggers", headers={"Origin": "http://a.example"})
            assert admin.status == 200
            assert not {"x-rule", "access-control-allow-origin"} & set(admin.headers)
            assert call_url(url, "GET", "/connectors").status == 404


def test_root_answers_while_the_herder_is_not_ready() -> None:
    """`GET /` needs no herder, and `/health` reports that the worker is starting."""
    herder = FakeHerder()
    herder.ready = False
    herder.held = {Probe}
    with serving(rest_config(), herder) as server:
        assert call_url(server.advertised_url, "GET", "/").status == 200
        expected = {"status": "starting", "message": "Worker is still starting up."}
        assert call_url(server.advertised_url, "GET", "/health").json() == expected


def test_stop_lets_a_request_end_within_its_time() -> None:
    """A stop waits for earlier requests and refuses new connections."""

    async def run() -> tuple[Answer, bool]:
        herder = _SlowHerder()
        server = RestServer(rest_config())
        server.bind()
        await server.start(herder)
        asking = asyncio.create_task(
            asyncio.to_thread(call_url, server.advertised_url, "GET", "/connectors/slow")
        )
        await asyncio.wait_for(herder.asked.wait(), 60)
        stopping = asyncio.create_task(server.stop(60_000))
        port = server.listeners[0].port
        # asyncio might accept and drop a connection made meanwhile without closing it.
        await eventually_async(lambda: server._main[0].socket.fileno() < 0)
        assert _refuses(port)
        herder.release.set()
        answer = await asking
        await stopping
        return answer, stopping.done()

    answer, stopped = asyncio.run(run())
    assert (answer.status, stopped) == (404, True)


def test_stop_cuts_a_request_off_after_its_time() -> None:
    """A stop ends within its deadline, whatever its requests wait for."""

    async def run() -> Answer:
        herder = _SlowHerder()
        server = RestServer(rest_config())
        server.bind()
        await server.start(herder)
        asking = asyncio.create_task(
            asyncio.to_thread(call_url, server.advertised_url, "GET", "/connectors/slow")
        )
        await asyncio.wait_for(herder.asked.wait(), 60)
        await asyncio.wait_for(server.stop(100), 60)
        return await asking

    answer = asyncio.run(run())
    assert (answer.status, answer.message) == (500, "Worker is shutting down")


def test_wait_raises_when_a_server_dies() -> None:
    """The worker gets an error from a server that ends by itself."""

    async def run() -> None:
        server = RestServer(rest_config())
        server.bind()
        await server.start(FakeHerder())
        waiting = asyncio.create_task(server.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        server._running[0].task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await server.stop(100)

    asyncio.run(run())


def test_one_access_line_per_request(caplog: pytest.LogCaptureFixture) -> None:
    """Each request has one access line, with client, status, length and milliseconds."""
    with (
        caplog.at_level(logging.INFO, "pyconnect_agent.rest.access_log"),
        serving(rest_config(), FakeHerder()) as server,
    ):
        call_url(server.advertised_url, "GET", "/connectors?expand=x", headers={"User-Agent": "me"})
    lines = [r.getMessage() for r in caplog.records if r.name == "pyconnect_agent.rest.access_log"]
    assert len(lines) == 1
    assert lines[0].startswith("127.0.0.1 - - [")
    assert '] "GET /connectors?expand=x HTTP/1.1" 200 2 "-" "me" ' in lines[0]


class _SlowHerder(FakeHerder):
    """A herder that answers reads of a connector when the test releases them."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.release = asyncio.Event()

    async def submit(self, request, *, timeout_ms):  # type: ignore[no-untyped-def]
        if isinstance(request, GetConnectorInfo):
            self.asked.set()
            await self.release.wait()
        return await super().submit(request, timeout_ms=timeout_ms)


def _refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return True
    return False


def _environment() -> dict[str, str]:
    root = Path(__file__).parents[2]
    paths = [str(root / "agent"), str(root / "cli"), str(root)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def test_listeners_are_open_on_loopback_only() -> None:
    """The admin interface needs no credentials on loopback and answers 401 elsewhere."""
    with serving(rest_config(), FakeHerder(), FakeAdmin()) as server:
        url = f"http://{server.listeners[0].netloc}"
        assert call_url(url, "GET", "/agent").status == 200
        assert call_url(url, "POST", "/agent/drain", headers={"Origin": "http://a"}).status == 401
    with serving(rest_config(listeners="http://:0"), FakeHerder(), FakeAdmin()) as server:
        url = f"http://127.0.0.1:{server.listeners[0].port}"
        assert call_url(url, "GET", "/agent").status == 401
        assert call_url(url, "GET", "/connectors").status == 200


def test_admin_listeners_take_it_over() -> None:
    """With `admin.listeners` only those listeners serve the admin interface."""
    config = rest_config(admin_listeners="http://127.0.0.1:0")
    with serving(config, FakeHerder(), FakeAdmin()) as server:
        main = f"http://{server.listeners[0].netloc}"
        separate = f"http://{server.admin_listeners[0].netloc}"
        assert call_url(main, "GET", "/agent").status == 404
        assert call_url(separate, "GET", "/agent").status == 200
        assert call_url(separate, "GET", "/connectors").status == 404


def test_metrics_have_listeners_of_their_own() -> None:
    """Metrics listeners need no credentials and serve nothing else of the admin interface."""
    config = rest_config(agent_metrics_listeners="http://:0", admin_listeners="http://127.0.0.1:0")
    with serving(config, FakeHerder(), FakeAdmin()) as server:
        url = f"http://127.0.0.1:{server.metrics_listeners[0].port}"
        answer = call_url(url, "GET", "/metrics")
        admin = f"http://{server.admin_listeners[0].netloc}"
        assert (answer.status, answer.body) == (200, call_url(admin, "GET", "/agent/metrics").body)
        for path in ("/agent", "/agent/metrics", "/agent/tasks", "/admin/loggers", "/connectors"):
            assert call_url(url, "GET", path).status == 404
        assert call_url(url, "POST", "/metrics").status == 405
        assert call_url(f"http://{server.listeners[0].netloc}", "GET", "/metrics").status == 404


def test_no_admin_listeners_no_interface() -> None:
    """An empty list of admin listeners turns the admin interface off."""
    with serving(rest_config(admin_listeners=""), FakeHerder(), FakeAdmin()) as server:
        assert call_url(f"http://{server.listeners[0].netloc}", "GET", "/agent").status == 404


def test_tokens_open_a_listener_on_every_interface(tmp_path: Path) -> None:
    """With tokens the admin interface is open on every interface, and loopback needs them too."""
    tokens = tmp_path / "tokens"
    tokens.write_text("token\n")
    config = rest_config(
        listeners="http://:0,http://127.0.0.1:0", agent_admin_bearer_token_file=str(tokens)
    )
    with serving(config, FakeHerder(), FakeAdmin()) as server:
        for listener in server.listeners:
            url = f"http://127.0.0.1:{listener.port}"
            assert call_url(url, "GET", "/agent").status == 401
            headers = {"Authorization": "Bearer token"}
            assert call_url(url, "GET", "/agent", headers=headers).status == 200


def test_a_missing_credentials_file_is_found_before_anything_is_served(tmp_path: Path) -> None:
    """A missing credentials file is an error that names the key and the file."""
    config = rest_config(agent_admin_basic_auth_file=str(tmp_path / "missing"))
    with pytest.raises(WorkerConfigError, match=r"agent\.admin\.basic\.auth\.file.*missing"):
        RestServer(config).bind()
