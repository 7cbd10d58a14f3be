"""TLS of the REST server's listeners."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme

from pyconnect_agent.core.errors import WorkerConfigError
from pyconnect_agent.rest.server import RestServer
from pyconnect_agent.rest.tls import client_context, server_context
from tests.support.fake_herder import FakeHerder
from tests.support.rest_client import call_url
from tests.support.rest_services import rest_config, serving
from tests.support.tls_clusters import STORE_PASSWORD, Stores

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


@pytest.mark.parametrize("prefix", ["", "listeners.https."])
def test_an_https_listener_serves_with_its_certificate(
    prefix: str, authority: trustme.CA, tmp_path: Path
) -> None:
    """TLS settings come with or without the listeners' prefix."""
    config = rest_config(
        listeners="http://127.0.0.1:0,https://127.0.0.1:0",
        **_tls_properties(authority, tmp_path, prefix),
    )
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with serving(config, FakeHerder()) as server:
        plain, secure = server.listeners
        assert call_url(f"http://{plain.netloc}", "GET", "/").status == 200
        answer = call_url(f"https://{secure.netloc}", "GET", "/", ssl_context=context)
        assert answer.status == 200
        # http comes first when both are there.
        assert server.advertised_url == f"http://{plain.netloc}/"


def test_required_client_certificates_are_asked_for(authority: trustme.CA, tmp_path: Path) -> None:
    """`ssl.client.auth=required` turns away who has no certificate."""
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


def test_keys_may_be_given_as_text(authority: trustme.CA) -> None:
    """Key, chain and trusted certificates need no files."""
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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "An https listener needs a certificate"),
        (
            {"ssl.keystore.location": "/absent.pem"},
            "ssl.keystore.location: /absent.pem cannot be used",
        ),
        (
            {"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c"},
            r"TLS of the REST server: ssl\.keystore\.\*",
        ),
    ],
)
def test_wrong_tls_settings_are_reported(settings: dict[str, object], message: str) -> None:
    """A TLS mistake is found at start, with the key to look at."""
    with pytest.raises(WorkerConfigError, match=message):
        server_context(settings)


def test_tls_mistakes_are_found_before_anything_is_served() -> None:
    """A worker without a certificate fails when it binds, as a matter of configuration."""
    server = RestServer(rest_config(listeners="https://127.0.0.1:0"))
    with pytest.raises(WorkerConfigError, match="An https listener needs a certificate"):
        server.bind()


@pytest.mark.parametrize("form", ["JKS", "PKCS12"])
def test_stores_of_a_java_worker_serve_as_they_are(tmp_path: Path, form: str) -> None:
    """A Java worker's file needs no other files here; JKS is what it has unless it says so."""
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
    """With the formats that there are."""
    store = tmp_path / "store.jceks"
    store.write_bytes(b"\xce\xce\xce\xce")
    with pytest.raises(WorkerConfigError, match=r"neither JKS nor PKCS#12 nor PEM; keytool"):
        server_context({"ssl.keystore.location": str(store), "ssl.keystore.password": "p"})
