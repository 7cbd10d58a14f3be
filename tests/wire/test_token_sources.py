"""Tokens of a real authorization server, and of servers that misbehave."""

import base64
import gc
import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from pyconnect_clients import connections
from pyconnect_clients.connections import TokenSource, secured_arguments, with_token_callback
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.security import Security, librdkafka_settings, parse_security
from pyconnect_clients.token_fetch import Fetch, Token, TokenError
from pyconnect_clients.token_login import Lifetime, RefreshSettings
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.servers.authorization_server import (
    CLIENT,
    SCOPE,
    SECRET,
    AuthorizationServer,
    authorization_server,
)

pytestmark = pytest.mark.wire

QUICK = RefreshSettings(retry_backoff_ms=1, retry_backoff_max_ms=10)
LIFETIME_S = 3600
MSK_BROKER = "b-1.c.abc.c2.kafka.eu-west-1.amazonaws.com:9098"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuthorizationServer]:
    directory = tmp_path_factory.mktemp("tokens") / "server"
    with authorization_server(directory, LIFETIME_S) as running:
        yield running


def security(url: str, secret: str = SECRET, **more: str) -> Security:
    return parse_security(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": url,
            "sasl.oauthbearer.client.credentials.client.id": CLIENT,
            "sasl.oauthbearer.client.credentials.client.secret": secret,
            "sasl.oauthbearer.scope": SCOPE,
            "sasl.jaas.config": 'o.OAuthBearerLoginModule required extension_cluster="c";',
            **more,
        }
    )


def provided(given: Security) -> str:
    """Return the token that kafka-python gets."""
    provider = secured_arguments(given, "")["sasl_oauth_token_provider"]
    assert provider.extensions() == {"cluster": "c"}
    return str(provider.token())


def token(lifetime_s: float = 3600) -> Token:
    now_ms = int(time.time() * 1000)
    lifetime = Lifetime(start_ms=now_ms, expiry_ms=now_ms + int(lifetime_s * 1000))
    return Token(text="t", lifetime=lifetime, principal="p")


def test_clients_with_the_same_login_share_one_token(server: AuthorizationServer) -> None:
    """Clients of both libraries share one token, and librdkafka's settings have no secret."""
    given = server.given()
    asked = security(server.endpoint)
    provider = secured_arguments(asked, "")["sasl_oauth_token_provider"]
    settings = with_token_callback(librdkafka_settings(asked))
    text, expiry_s, principal, extensions = settings.pop("oauth_cb")("")
    assert (text, principal, extensions) == (provider.token(), CLIENT, {"cluster": "c"})
    assert 0 < expiry_s - time.time() <= LIFETIME_S
    assert settings == {"security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER"}
    assert server.given() == given + 1


def test_refusals_say_status(server: AuthorizationServer, caplog: pytest.LogCaptureFixture) -> None:
    """A refused login is an error at once, and neither error nor log has the secret."""
    with pytest.raises(ClientPropertyError) as refused:
        provided(security(server.endpoint, "WRONG-secret"))
    assert f"{server.endpoint}: the authorization server answered with status 401" in str(
        refused.value
    )
    fetched = [record for record in caplog.records if "could not be fetched" in record.message]
    assert fetched
    assert "WRONG" not in f"{refused.value!r}{[vars(record) for record in fetched]}"


@contextmanager
def answering(*pieces: bytes, pause_s: float = 0.0, closes: bool = False) -> Iterator[str]:
    """Serve `pieces` to each client; the connection stays open unless `closes` is true."""
    listening = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def serve() -> None:
        kept = []
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                break
            kept.append(connection)
            try:
                for piece in pieces:
                    connection.sendall(piece)
                    ended.wait(pause_s)
                if closes:
                    connection.shutdown(socket.SHUT_WR)
            except OSError:
                continue
        for connection in kept:
            connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/token"
    finally:
        ended.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


@cases("pieces", (), (b"HTTP/1.1 200 OK\r\n", *[b"X: y\r\n"] * 20))
def test_slow_ones_are_given_up(pieces: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is silent or sends too slowly is given up."""
    monkeypatch.setattr(connections, "FIRST_TOKEN_S", 1.0)
    limits = {"sasl.login.read.timeout.ms": "300"}
    with (
        answering(*pieces, pause_s=0.1) as url,
        pytest.raises(ClientPropertyError, match=f"{url}: no answer in time"),
    ):
        provided(security(url, **limits))


def test_a_redirect_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A redirect is not followed: the credentials are meant for the given address."""
    monkeypatch.setattr(connections, "FIRST_TOKEN_S", 10.0)
    moved = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    with (
        answering(moved, closes=True) as url,
        pytest.raises(ClientPropertyError, match="status 302"),
    ):
        provided(security(url))


def test_a_token_is_read_from_a_file(tmp_path: Path) -> None:
    """A token is read from a file URL, and an expired one is refused with its age."""

    def jwt(**claims: object) -> str:
        parts = ({"alg": "RS256"}, claims, {})
        return ".".join(
            base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
            for part in parts
        )

    file = tmp_path / "the token"
    text = jwt(sub="s", exp=time.time() + 100)
    file.write_text(f"{text}\n")
    assert provided(security(file.as_uri())) == text


def test_a_held_token_is_returned_at_once_while_a_fetch_hangs() -> None:
    """A held token is returned at once while the source's thread waits for the server."""
    hanging, released = threading.Event(), threading.Event()
    calls = 0

    def fetch() -> Token:
        nonlocal calls
        calls += 1
        if calls > 1:
            hanging.set()
            released.wait()
        return token(lifetime_s=60 if calls == 1 else 3600)

    source = TokenSource(fetch, RefreshSettings(window_factor=0.001, window_jitter=0.0))
    try:
        held = source.wait(60.0)
        assert hanging.wait(60.0)
        assert source.token() is held
        released.set()
        eventually(lambda: source.token() is not held)
    finally:
        released.set()


@cases("error", SystemExit(1), RuntimeError("SECRET"), TokenError("late"))
def test_no_failure_ends_the_thread(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    """Each failed fetch is repeated, and an unexpected error is not quoted in the log."""
    failures = [error, error]

    def fetch() -> Token:
        if failures:
            raise failures.pop()
        return token()

    assert TokenSource(fetch, QUICK).wait(60.0).text == "t"
    assert "SECRET" not in str([vars(record) for record in caplog.records])


def test_a_wall_clock_that_is_set_back_puts_no_fetch_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch is not delayed by a clock that is set back: brokers would refuse the old token."""
    fetched: list[Token] = []

    def fetch() -> Token:
        fetched.append(token(0.5))
        return fetched[-1]

    source = TokenSource(fetch, QUICK)
    source.wait(60.0)
    right, count = time.time, len(fetched)
    monkeypatch.setattr(time, "time", lambda: right() - 3600)
    eventually(lambda: len(fetched) > count + 1)
    assert source.token() in fetched


def threads_of_sources() -> int:
    return sum(thread.name == "token-refresh" for thread in threading.enumerate())


def test_the_thread_ends_with_its_source() -> None:
    """The thread ends when no client refers to its source."""
    before = threads_of_sources()

    def made(fetch: Fetch) -> None:
        TokenSource(fetch, QUICK).wait(60.0)

    made(token)
    gc.collect()
    eventually(lambda: threads_of_sources() <= before)


def test_the_signer_of_aws_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra of AWS's signer, the error has the command that installs it."""
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(ClientPropertyError, match=r"install .*\[msk\]"):
        secured_arguments(msk_security(), MSK_BROKER)


class FakeSigner:
    """AWS's signer; without `text` it finds no credentials, as the real signer does."""

    def __init__(self, text: str | None = None) -> None:
        self._text = text
        self.asked: list[tuple[str, ...]] = []
        self.expiry_ms = int(time.time() * 1000) + 900_000

    def generate_auth_token(self, *arguments: str) -> tuple[str, int]:
        self.asked.append(arguments)
        if self._text is None:
            raise AttributeError("'NoneType' object has no attribute 'access_key'")
        return self._text, self.expiry_ms

    generate_auth_token_from_profile = generate_auth_token
    generate_auth_token_from_role_arn = generate_auth_token


@cases(
    "options, asked, without_credentials",
    ("", (), "no credentials of AWS could be used (AttributeError); set AWS_ACCESS_KEY_ID"),
    ('awsProfileName="p"', ("p",), "the credentials of profile p could not be used"),
    ('awsRoleArn="arn:r"', ("arn:r",), "the role arn:r could not be assumed"),
    ('awsRoleArn="r" awsRoleSessionName="s"', ("r", "s"), "check awsRoleArn in sasl.jaas"),
)
def test_the_signer_of_aws_is_asked_as_the_options_say(
    options: str, asked: tuple[str, ...], without_credentials: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS's signer gets the region of the brokers; the error names missing credentials."""
    signer = FakeSigner("signed")
    with_signer(monkeypatch, signer)
    settings = {**msk_properties(options), "bootstrap.servers": MSK_BROKER}
    found = with_token_callback(settings)["oauth_cb"]("")
    assert found == ("signed", signer.expiry_ms / 1000, "", {})
    assert signer.asked == [("eu-west-1", *asked)]
    gc.collect()
    monkeypatch.setattr(connections, "FIRST_TOKEN_S", 1.0)
    with_signer(monkeypatch, FakeSigner())
    # Another region is another login, because equal logins share a token.
    other = MSK_BROKER.replace("eu-west-1", "eu-north-1")
    with pytest.raises(ClientPropertyError) as refused:
        secured_arguments(msk_security(options), other)
    assert str(refused.value).startswith("sasl.mechanism: OAUTHBEARER: there is no token: AWS MSK")
    assert without_credentials in str(refused.value)


def with_signer(monkeypatch: pytest.MonkeyPatch, signer: FakeSigner) -> None:
    module = SimpleNamespace(MSKAuthTokenProvider=signer)
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", module)


def msk_properties(options: str = "") -> dict[str, str]:
    module = f"software.amazon.msk.auth.iam.IAMLoginModule required {options};"
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": module,
    }


def msk_security(options: str = "") -> Security:
    return parse_security(msk_properties(options))
