"""Trust and key stores of every kind, as Java's keytool and OpenSSL write them."""

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificates

from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.key_stores import client_context, with_pem, with_stores_read
from pyconnect_clients.security import PemCertificates, PemIdentity, Tls, parse_security
from tests.support.cases import cases
from tests.support.servers.tls_clusters import STORE_PASSWORD, Stores, keytool

pytestmark = pytest.mark.wire

KEY_PASSWORD = "secret-of-the-key"
FORMS = ["JKS", "PKCS12"]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    """Trust and key stores of one authority."""
    return Stores(tmp_path_factory.mktemp("stores") / "all")


def tls(properties: dict[str, str]) -> Tls:
    found = parse_security({"security.protocol": "SSL", **properties}).tls
    assert found is not None
    return found


def trusting(location: Path, **more: str) -> dict[str, str]:
    named = {f"ssl.truststore.{name}": value for name, value in more.items()}
    return {"ssl.truststore.location": str(location), **named}


def known(location: Path, **more: str) -> dict[str, str]:
    named = {f"ssl.keystore.{name}": value for name, value in more.items()}
    return {"ssl.keystore.location": str(location), **named}


@pytest.mark.parametrize("form", FORMS)
def test_trust_stores_become_certificates(stores: Stores, form: str) -> None:
    """A trust store gives the certificates that were put in."""
    found = with_pem(tls(trusting(stores.trust_store(form), password=STORE_PASSWORD))).trust
    assert isinstance(found, PemCertificates)
    given = load_pem_x509_certificates(stores.authority.read_bytes())
    assert load_pem_x509_certificates(found.text.encode()) == given


def test_stores_are_read_for_tls_only_and_without_password(stores: Stores) -> None:
    """Without a password a JKS store is not checked to be whole, as in Java."""
    found = with_pem(tls(trusting(stores.trust_store("JKS")))).trust
    assert isinstance(found, PemCertificates)
    security = parse_security({"ssl.truststore.location": "/nowhere"})
    assert with_stores_read(security) == security


@pytest.mark.parametrize("form", FORMS)
@cases("type_", None, *FORMS)
def test_key_stores_become_key_and_chain(stores: Stores, form: str, type_: str | None) -> None:
    """The content decides between the kinds of store, whatever the type says, as in Java."""
    given = {} if type_ is None else {"type": type_}
    read = with_pem(tls(known(stores.key_store(form), password=STORE_PASSWORD, **given)))
    assert isinstance(read.identity, PemIdentity)
    key = load_pem_private_key(read.identity.key.encode(), None)
    chain = load_pem_x509_certificates(read.identity.chain.encode())
    assert chain[0].public_key() == key.public_key()
    assert read.key_password is None


def test_the_owner_of_a_key_is_trusted_in_a_trust_store(stores: Stores) -> None:
    """Java's trust manager trusts the first certificate of a key's chain."""
    for form in FORMS:
        found = with_pem(tls(trusting(stores.key_store(form), password=STORE_PASSWORD))).trust
        assert isinstance(found, PemCertificates)
        assert "CERTIFICATE" in found.text


@pytest.mark.parametrize("form", FORMS)
def test_a_store_may_hold_key_and_trust(stores: Stores, tmp_path: Path, form: str) -> None:
    """The other authority is trusted, and is not part of the key's chain."""
    other = Stores(tmp_path / "other")
    both = other.key_store(form)
    keytool(
        *("-importcert", "-noprompt", "-alias", "theirs", "-file", stores.authority),
        *("-keystore", both, "-storepass", STORE_PASSWORD),
    )
    [theirs] = load_pem_x509_certificates(stores.authority.read_bytes())
    [ours] = load_pem_x509_certificates(other.authority.read_bytes())
    read = with_pem(
        tls({**trusting(both, password=STORE_PASSWORD), **known(both, password=STORE_PASSWORD)})
    )
    assert isinstance(read.trust, PemCertificates)
    assert isinstance(read.identity, PemIdentity)
    trusted = load_pem_x509_certificates(read.trust.text.encode())
    chain = load_pem_x509_certificates(read.identity.chain.encode())
    assert theirs in trusted
    assert theirs not in chain
    assert ours not in trusted
    assert chain[0] in trusted


def test_a_key_of_jks_may_have_its_own_password(stores: Stores, tmp_path: Path) -> None:
    """`ssl.key.password` is tried before the store's password."""
    store = tmp_path / "own.jks"
    keytool(
        *("-importkeystore", "-noprompt", "-srckeystore", stores.key_store("PKCS12")),
        *("-srcstorepass", STORE_PASSWORD, "-srcstoretype", "PKCS12", "-srcalias", "client"),
        *("-destkeystore", store, "-deststoretype", "JKS"),
        *("-deststorepass", STORE_PASSWORD, "-destkeypass", KEY_PASSWORD),
    )
    properties = known(store, password=STORE_PASSWORD)
    read = with_pem(tls({**properties, "ssl.key.password": KEY_PASSWORD}))
    assert isinstance(read.identity, PemIdentity)
    with pytest.raises(ClientPropertyError, match="key's password is wrong"):
        with_pem(tls(properties))


def test_pem_is_known_by_its_content(stores: Stores, tmp_path: Path) -> None:
    """PEM needs no type and no name of its own, and a wrong type is refused, as in Java."""
    file = tmp_path / "authority"
    file.write_bytes(stores.authority.read_bytes())
    text = file.read_text()
    assert with_pem(tls(trusting(file))).trust == PemCertificates(text=text)
    with pytest.raises(ClientPropertyError, match=r"set ssl\.truststore\.type=PEM"):
        with_pem(tls(trusting(file, type="JKS")))
    identity = tmp_path / "identity"
    identity.write_bytes(stores.identity("untold").read_bytes())
    found = with_pem(tls({**known(identity), "ssl.key.password": "p"}))
    assert found.identity == PemIdentity(key=identity.read_text(), chain=identity.read_text())
    assert found.key_password == "p"


@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_password_is_said(stores: Stores, form: str) -> None:
    """The error has the key of the store's location, and not the password."""
    for properties in (
        trusting(stores.trust_store(form), password="hunter2"),
        known(stores.key_store(form), password="hunter2"),
    ):
        with pytest.raises(ClientPropertyError, match="the password is wrong") as refused:
            with_pem(tls(properties))
        assert refused.value.key in properties
        assert "hunter2" not in str(refused.value)


def test_files_that_are_not_stores_are_refused(stores: Stores, tmp_path: Path) -> None:
    """Missing, cut, foreign and empty files are refused."""
    whole = stores.trust_store("JKS").read_bytes()
    cases = {
        "none": (None, "No such file"),
        "cut": (whole[:40], "it is cut short"),
        "other": (b"\xce\xce\xce\xce", "neither JKS nor"),
        "broken": (b"\x30\x00", "not a PKCS#12 file"),
        "key": (whole[:3] + b"\x00", "neither JKS nor"),
    }
    for name, (data, text) in cases.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
        with pytest.raises(ClientPropertyError, match=text):
            with_pem(tls(trusting(tmp_path / name)))
    with pytest.raises(ClientPropertyError, match="there are no keys in it"):
        with_pem(tls(known(stores.trust_store("JKS"), password=STORE_PASSWORD)))
    with pytest.raises(ClientPropertyError, match=r"ssl\.keystore\.password: it is missing"):
        with_pem(tls(known(stores.key_store("JKS"))))


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> dict[str, object]:
    """Connect two contexts in memory; return the certificate that the client has shown."""
    pipes = [ssl.MemoryBIO() for _ in range(2)]
    sides = [
        client.wrap_bio(pipes[0], pipes[1], server_hostname=host),
        server.wrap_bio(pipes[1], pipes[0], server_side=True),
    ]
    for _ in range(10):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    sides[0].write(b"!")
    assert sides[1].read(1) == b"!"
    return dict(sides[1].getpeercert() or {})


@cases("form", "pem", "text", *FORMS)
def test_contexts_convince_a_server_with_stores_of_every_kind(stores: Stores, form: str) -> None:
    """A server that asks for a certificate gets it, and the client checks the server's."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(stores.identity("server"))
    server.load_verify_locations(stores.authority)
    server.verify_mode = ssl.CERT_REQUIRED
    identity = stores.identity("client")
    properties = {
        "pem": lambda: {**trusting(stores.authority), **known(identity)},
        "text": lambda: {
            "ssl.truststore.certificates": stores.authority.read_text(),
            "ssl.keystore.key": identity.read_text(),
            "ssl.keystore.certificate.chain": identity.read_text(),
        },
    }.get(
        form,
        lambda: {
            **trusting(stores.trust_store(form), password=STORE_PASSWORD),
            **known(stores.key_store(form), password=STORE_PASSWORD),
        },
    )()
    assert handshake(client_context(tls(properties)), server, "127.0.0.1")["subject"]
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        handshake(client_context(tls(properties)), server, "elsewhere")
    anyone = {**properties, "ssl.endpoint.identification.algorithm": ""}
    assert handshake(client_context(tls(anyone)), server, "elsewhere")["subject"]


def test_pem_that_cannot_be_used_is_said(stores: Stores, tmp_path: Path) -> None:
    """The error names the keys' prefix, and a missing password is not asked for on the terminal."""
    cases = [
        (trusting(tmp_path / "none.pem"), r"ssl\.truststore\.\*: .*No such file"),
        ({"ssl.truststore.certificates": "junk"}, r"ssl\.truststore\.\*"),
        (known(stores.authority), r"ssl\.keystore\.\*"),
    ]
    for properties, text in cases:
        with pytest.raises(ClientPropertyError, match=text):
            client_context(tls(properties))
