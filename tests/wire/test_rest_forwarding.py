"""Two workers over real sockets, one of which forwards requests to the other."""

import asyncio
import json
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_agent.core.errors import ForbiddenError, InternalError, NotLeaderError
from pyconnect_agent.core.herder import requests
from pyconnect_agent.core.internal_topics.config_snapshot import SessionKey
from pyconnect_agent.rest.errors import RelayedError
from pyconnect_agent.rest.forwarding import WorkerClient, WorkerResponse
from pyconnect_agent.rest.sockets import client_context
from tests.support.agents.rest_client import Answer, call_url
from tests.support.cases import cases
from tests.support.fakes.fake_herder import FakeHerder
from tests.support.fakes.rest_services import rest_config, serving

pytestmark = pytest.mark.wire

JSON = {"Content-Type": "application/json"}
CONFIG = {"connector.class": "FileStreamSource", "topic": "t"}


def follower_of(url: str | None) -> FakeHerder:
    """Return a herder that knows only the leader's address."""
    herder = FakeHerder()
    failure = NotLeaderError("Only the leader can", target_url=url)
    herder.failures = {requests.PutConnectorConfig: failure, requests.DeleteConnector: failure}
    return herder


def put(url: str, name: str) -> Answer:
    return call_url(url, "PUT", f"/connectors/{name}/config", json.dumps(CONFIG), JSON)


@contextmanager
def canned_server(response: bytes) -> Iterator[str]:
    """Answer every request with these bytes, and close the connection."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            self.request.sendall(response)

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


def test_a_follower_has_the_leader_do_it() -> None:
    """The leader creates, changes, deletes or refuses, and the follower returns the answer."""
    leader_herder = FakeHerder()
    with (
        serving(rest_config(), leader_herder) as leader,
        serving(rest_config(), follower_of(leader.advertised_url)) as follower,
    ):
        name = "a%20b%3Bc%3Fd%23%C3%A9"
        created = put(follower.advertised_url, name)
        assert created.status == 201
        assert created.headers["location"] == f"{follower.advertised_url}connectors/{name}"
        assert put(follower.advertised_url, name).status == 200
        assert list(leader_herder.configs) == ["a b;c?d#é"]
        target = f"/connectors/{name}"
        assert call_url(follower.advertised_url, "DELETE", target).status == 204
        again = call_url(follower.advertised_url, "DELETE", target)
        assert (again.status, again.message) == (404, "Connector a b;c?d#é not found")


def test_a_request_is_lost_after_two_hops() -> None:
    """Three workers that name each other as leader do not forward in circles."""
    with (
        serving(rest_config(), follower_of("http://127.0.0.1:1/")) as last,
        serving(rest_config(), follower_of(last.advertised_url)) as middle,
        serving(rest_config(), follower_of(middle.advertised_url)) as first,
    ):
        answer = put(first.advertised_url, "c")
    assert (answer.status, answer.message) == (
        409,
        "Cannot complete request because of a conflicting operation (e.g. worker rebalance)",
    )


def test_workers_trust_one_another_over_tls(tmp_path: Path) -> None:
    """A forwarded request uses the key store and the trust store of the listeners."""
    authority = trustme.CA()
    store = tmp_path / "worker.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(store)
    trusted = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(trusted)
    config: DistributedConfig = rest_config(
        listeners="https://127.0.0.1:0",
        **{
            "listeners.https.ssl.keystore.location": str(store),
            "listeners.https.ssl.truststore.location": str(trusted),
            "listeners.https.ssl.client.auth": "required",
        },
    )
    context = client_context(config.rest_ssl())
    with (
        serving(config, FakeHerder()) as leader,
        serving(config, follower_of(leader.advertised_url)) as follower,
    ):
        answer = call_url(
            follower.advertised_url,
            "PUT",
            "/connectors/c/config",
            json.dumps(CONFIG),
            JSON,
            ssl_context=context,
        )
    assert answer.status == 201


def test_an_unreachable_leader_is_an_io_error() -> None:
    """The client gets an IO error when the leader's address has no listener."""
    with serving(rest_config(), follower_of("http://127.0.0.1:1/")) as follower:
        answer = put(follower.advertised_url, "c")
    assert answer.status == 500
    assert str(answer.message).startswith("IO Error trying to forward REST request: ")


@cases(
    "response, message",
    (b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", "Unexpected status"),
    (b"HTTP/1.1 500 E\r\nContent-Length: 2\r\n\r\n{}", "IO Error trying to forward"),
    (b"HTTP/1.1 400 E\r\nContent-Length: 6\r\n\r\n<html>", "IO Error trying to forward"),
    (b"HTTP/1.1 200 O\r\nContent-Length: 1\r\n\r\n{", "IO Error trying to forward"),
    (
        b"HTTP/1.1 401 U\r\nContent-Length: 32\r\n\r\nUser cannot access the resource.",
        "does not admit its user .401.",
    ),
    (b"nonsense\r\n\r\n", "IO Error trying to forward"),
    (b"", "IO Error trying to forward"),
)
def test_answers_that_are_none_are_errors(response: bytes, message: str) -> None:
    """Redirects, pages and noise are not taken for a worker's answer."""

    async def send(url: str) -> WorkerResponse:
        client = WorkerClient()
        try:
            return await client.send("PUT", f"{url}connectors/c/stop")
        finally:
            await client.close()

    errors = (InternalError, ForbiddenError)
    with canned_server(response) as url, pytest.raises(errors, match=message):
        asyncio.run(send(url))


@cases("permanent", True, False)
def test_a_permanent_error_is_relayed_as_permanent(permanent: bool) -> None:
    """The mark of a permanent error is kept when a follower forwards the request."""
    leader_herder = FakeHerder()
    error = InternalError("Denied on purpose", permanent=permanent)
    leader_herder.failures = {requests.PutConnectorConfig: error}

    async def send(url: str) -> WorkerResponse:
        client = WorkerClient()
        try:
            headers = {"Content-Type": "application/json"}
            target = f"{url}connectors/c/config"
            return await client.send(
                "PUT", target, body=json.dumps(CONFIG).encode(), headers=headers
            )
        finally:
            await client.close()

    with (
        serving(rest_config(), leader_herder) as leader,
        serving(rest_config(), follower_of(leader.advertised_url)) as follower,
        pytest.raises(RelayedError, match="Denied on purpose") as raised,
    ):
        asyncio.run(send(follower.advertised_url))
    assert raised.value.permanent is permanent


def test_a_wrong_store_is_reported_when_it_is_needed() -> None:
    """A wrong TLS setting of the sender is not reported as a network failure."""

    async def send() -> None:
        def broken() -> None:
            raise ValueError("no store")

        client = WorkerClient(broken)  # type: ignore[arg-type]
        try:
            await client.send("PUT", "https://127.0.0.1:1/")
        finally:
            await client.close()

    with pytest.raises(InternalError, match=r"^Failed to start RestClient: no store$"):
        asyncio.run(send())


def test_a_user_of_a_certificate_is_kept_from_worker_to_worker(tmp_path: Path) -> None:
    """The leader knows the user of a certificate that the follower has checked."""
    authority = trustme.CA()
    properties = {
        "listeners": "https://localhost:0",
        "ssl.keystore.location": str(tmp_path / "worker.pem"),
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
        "ssl.client.auth": "requested",
        "agent.rest.users": '"anna" = {role = "editor", certificates = ["CN=anna, OU=Ops, O=X"]}',
    }
    worker = authority.issue_cert("localhost", "127.0.0.1")
    worker.private_key_and_cert_chain_pem.write_to_path(tmp_path / "worker.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    key = SessionKey(key=b"k" * 32, algorithm="HmacSHA256", created_ms=0)
    contexts = []
    for name in ("anna", "bob"):
        certificate = authority.issue_cert(
            "client.example.com",
            common_name=name,
            organization_name="X",
            organization_unit_name="Ops",
        )
        certificate.private_key_and_cert_chain_pem.write_to_path(tmp_path / f"{name}.pem")
        context = ssl.create_default_context()
        authority.configure_trust(context)
        context.load_cert_chain(tmp_path / f"{name}.pem")
        contexts.append(context)
    leader_herder = FakeHerder()
    leader_herder.session_key = key
    with serving(rest_config(**properties), leader_herder) as leader:
        follower_herder = follower_of(leader.advertised_url)
        follower_herder.session_key = key
        with serving(rest_config(**properties), follower_herder) as follower:
            answers = [
                call_url(
                    follower.advertised_url,
                    "PUT",
                    "/connectors/a%20b/config",
                    json.dumps(CONFIG),
                    JSON,
                    ssl_context=context,
                )
                for context in contexts
            ]
            follower_herder.session_key = None
            unsigned = call_url(
                follower.advertised_url, "DELETE", "/connectors/a%20b", ssl_context=contexts[0]
            )
    assert [answer.status for answer in answers] == [201, 401], answers[0].text
    assert list(leader_herder.configs) == ["a b"]
    assert unsigned.status == 401
