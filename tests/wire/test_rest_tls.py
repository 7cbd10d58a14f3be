"""TLS of the REST server's listeners."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.core.errors import NoAnswerError, WorkerConfigError
from pyconnect_agent.rest.server import RestServer
from pyconnect_agent.rest.sockets import client_context, server_context
from tests.support.agents.rest_client import call_url
from tests.support.cases import cases
from tests.support.fakes.fake_herder import FakeHerder
from tests.support.fakes.rest_services import rest_config, serving
from tests.support.servers.tls_clusters import STORE_PASSWORD, Stores, trusting_pem

pytestmark = pytest.mark.wire


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def _tls_properties(authority: trustme.CA, directory: Path, prefix: str) -> dict[str, str]:
    store = directory / "worker.pem"
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    certificate.private_key_and_cert_chain_pem.write_to_path(store)
    trusted = directory / "ca.pem"
    authority.cert_pem.write_to_path(trusted)
    return {
        f"{prefix}ssl.keystore.type": "PEM",
        f"{prefix}ssl.keystore.location": str(store),
        f"{prefix}ssl.truststore.type": "PEM",
        f"{prefix}ssl.truststore.location": str(trusted),
    }


@cases("prefix", "", "listeners.https.")
def test_https_has_its_certificate(prefix: str, authority: trustme.CA, tmp_path: Path) -> None:
    """TLS settings apply with or without the prefix of the listeners."""
    listeners = "http://127.0.0.1:0,https://127.0.0.1:0"
    config = rest_config(listeners=listeners, **_tls_properties(authority, tmp_path, prefix))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with serving(config, FakeHerder()) as server:
        plain, secure = server.listeners
        assert call_url(f"http://{plain.netloc}", "GET", "/").status == 200
        answer = call_url(f"https://{secure.netloc}", "GET", "/", ssl_context=context)
        assert answer.status == 200
        # The http listener is advertised if there are both.
        assert server.advertised_url == f"http://{plain.netloc}/"


def test_required_client_certificates_are_asked_for(authority: trustme.CA, tmp_path: Path) -> None:
    """`ssl.client.auth=required` refuses a client without a certificate."""
    config = rest_config(
        listeners="https://127.0.0.1:0",
        **_tls_properties(authority, tmp_path, ""),
        **{"ssl.client.auth": "required"},
    )
    stranger = ssl.create_default_context()
    authority.configure_trust(stranger)
    known = client_context(config.rest_ssl())
    with serving(config, FakeHerder()) as server:
        url = f"https://{server.listeners[0].netloc}"
        assert call_url(url, "GET", "/", ssl_context=known).status == 200
        with pytest.raises((ssl.SSLError, ConnectionError)):
            call_url(url, "GET", "/", ssl_context=stranger)


EXPIRED = "{own}, which has expired at 2"
CASES = {
    # Name: the client's identity and trust, its text, and the server's text. A client that refuses
    # a certificate sends no reason.
    "expired": ("gone", "ours", EXPIRED, "verify failed: certificate has expired"),
    "foreign": ("theirs", "ours", "this side's certificate: {own}, which is valid", "local issuer"),
    "without": (None, "ours", "this side has no certificate (ssl.keystore.*)", "not return a cert"),
    "distrustful": ("good", "theirs", "side's certificate; it trusts {trusted}", None),
}


@pytest.mark.parametrize("case", CASES)
def test_a_refused_certificate_is_reported_with_its_side_and_file(
    case: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Client and worker log a refused certificate with its side and file, the worker once."""
    stores = {name: Stores(tmp_path / name) for name in ("ours", "theirs")}
    past = datetime.now(UTC) - timedelta(days=1)
    identities = {
        "good": stores["ours"].identity("good"),
        "gone": stores["ours"].identity("gone", past),
        "theirs": stores["theirs"].identity("good"),
    }

    def config(identity: str | None, trust: str) -> WorkerConfig:
        properties = trusting_pem(stores[trust])
        if identity is not None:
            properties["ssl.keystore.location"] = str(identities[identity])
        auth = {"ssl.client.auth": "required"}
        return rest_config(listeners="https://127.0.0.1:0", **properties, **auth)

    own, trusted, text, logged = CASES[case]
    served = config("good", "ours")
    with serving(served, FakeHerder()) as server:
        url = f"https://{server.listeners[0].netloc}/"
        for _ in range(2):
            failure = asked(config(own, trusted), url)
        names = {"own": identities.get(own or ""), "trusted": stores[trusted].authority}
        assert text.format(**names) in failure
        assert asked(served, url) == ""
    told = [r for r in caplog.records if r.message == "TLS handshake with a client failed"]
    assert len(told) == (0 if logged is None else 1)
    assert all(str(logged) in vars(record)["reason"] for record in told)
    assert "PRIVATE" not in failure + str([vars(record) for record in told])


def asked(config: WorkerConfig, url: str) -> str:
    """Return the error of a request to another worker; empty after an answer."""

    async def ask() -> str:
        client = RestServer(config).client
        try:
            await client.send("GET", url)
        except NoAnswerError as exc:
            return exc.message
        finally:
            await client.close()
        return ""

    return asyncio.run(ask())


def test_a_certificate_that_expires_ends_no_connection(tmp_path: Path) -> None:
    """An expired certificate ends no open connection, and new clients get the reason."""
    stores = Stores(tmp_path / "stores")
    end = datetime.now(UTC) + timedelta(seconds=3)
    config = rest_config(
        listeners="https://127.0.0.1:0",
        **trusting_pem(stores),
        **{"ssl.keystore.location": str(stores.identity("soon", end))},
    )

    async def ask(url: str) -> None:
        client = RestServer(config).client
        try:
            assert (await client.send("GET", url)).status == 200
            await asyncio.sleep((end - datetime.now(UTC)).total_seconds() + 0.5)
            assert (await client.send("GET", url)).status == 200
        finally:
            await client.close()

    with serving(config, FakeHerder()) as server:
        url = f"https://{server.listeners[0].netloc}/"
        asyncio.run(ask(url))
        assert "certificate has expired" in asked(config, url)


def test_keys_may_be_given_as_text(authority: trustme.CA) -> None:
    """Key, chain and trusted certificates may be texts instead of files."""
    certificate = authority.issue_cert("localhost")
    settings = {
        "ssl.keystore.key": certificate.private_key_pem.bytes().decode(),
        "ssl.keystore.certificate.chain": certificate.cert_chain_pems[0].bytes().decode(),
        "ssl.truststore.certificates": authority.cert_pem.bytes().decode(),
        "ssl.client.auth": "requested",
        "ssl.enabled.protocols": ["TLSv1.3"],
    }
    context = server_context(settings)
    assert context.verify_mode is ssl.CERT_OPTIONAL
    assert context.minimum_version is ssl.TLSVersion.TLSv1_3
    assert client_context(settings).check_hostname is False


@cases(
    "settings, message",
    ({}, "An https listener needs a certificate"),
    ({"ssl.keystore.location": "/absent.pem"}, "ssl.keystore.location: /absent.pem cannot be used"),
    (
        {"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c"},
        r"TLS of the REST server: ssl\.keystore\.\*",
    ),
)
def test_wrong_tls_settings_are_reported(settings: dict[str, object], message: str) -> None:
    """A wrong TLS setting is an error at the start that names its key."""
    with pytest.raises(WorkerConfigError, match=message):
        server_context(settings)


def test_tls_mistakes_are_found_before_anything_is_served() -> None:
    """A worker without a certificate fails with a configuration error when it binds."""
    server = RestServer(rest_config(listeners="https://127.0.0.1:0"))
    with pytest.raises(WorkerConfigError, match="An https listener needs a certificate"):
        server.bind()


@cases("form", "JKS", "PKCS12")
def test_stores_of_a_java_worker_serve_as_they_are(tmp_path: Path, form: str) -> None:
    """A Java worker's properties file needs no other stores; JKS is the default type."""
    stores = Stores(tmp_path / "stores")
    config = rest_config(
        listeners="https://127.0.0.1:0",
        **{
            "ssl.keystore.location": str(stores.key_store(form)),
            "ssl.keystore.password": STORE_PASSWORD,
            "ssl.truststore.location": str(stores.trust_store(form)),
            "ssl.truststore.password": STORE_PASSWORD,
            "ssl.client.auth": "required",
        },
    )
    with serving(config, FakeHerder()) as server:
        url = f"https://{server.listeners[0].netloc}"
        known = client_context(config.rest_ssl())
        assert call_url(url, "GET", "/", ssl_context=known).status == 200


def test_a_store_that_is_none_is_refused_with_the_way_out(tmp_path: Path) -> None:
    """A store of another format is refused with the supported formats."""
    store = tmp_path / "store.jceks"
    store.write_bytes(b"\xce\xce\xce\xce")
    with pytest.raises(WorkerConfigError, match=r"neither JKS nor PKCS#12 nor PEM; keytool"):
        server_context({"ssl.keystore.location": str(store), "ssl.keystore.password": "p"})
