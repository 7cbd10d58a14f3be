"""Meaning of security properties, and refusals."""

import pytest

from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.security import (
    KerberosLogin,
    PasswordLogin,
    PemCertificates,
    PemFile,
    PemIdentity,
    Protocol,
    Security,
    StoreFile,
    Tls,
    parse_security,
    refuse_other_names,
)
from tests.support.cases import cases

PLAIN = 'org.apache.PlainLoginModule required username="me" password="pa ss";'
SECRETS = ("pa ss", "SECRET")


def tls(properties: dict[str, str]) -> Tls:
    found = parse_security({"security.protocol": "SSL", **properties}).tls
    assert found is not None
    return found


def test_unused_settings_are_not_read() -> None:
    """Java's default is plain; broken logins and stores matter to those who use them."""
    assert parse_security({}) == Security(protocol=Protocol.PLAINTEXT, tls=None, sasl=None)
    broken = {"sasl.jaas.config": "broken", "ssl.keystore.key": "alone", "sasl.mechanism": "X"}
    assert parse_security(broken).sasl is None
    with pytest.raises(ClientPropertyError, match=r"sasl\.jaas\.config"):
        parse_security({**broken, "security.protocol": "SASL_PLAINTEXT"})
    with pytest.raises(ClientPropertyError, match=r"ssl\.keystore\.certificate\.chain"):
        parse_security({**broken, "security.protocol": "SSL"})


def test_values_are_trimmed_and_names_of_protocols_have_no_case() -> None:
    """As Java's parser does; null and empty values count as unset."""
    security = parse_security(
        {
            "security.protocol": " sasl_ssl ",
            "sasl.mechanism": "PLAIN ",
            "sasl.jaas.config": f" {PLAIN} ",
            "ssl.truststore.location": "",
            "ssl.keystore.location": None,
        }
    )
    assert (security.protocol, security.tls) == (Protocol.SASL_SSL, Tls())
    assert security.sasl is not None
    assert security.sasl.login == PasswordLogin(username="me", password="pa ss")
    assert security.sasl.username == "me"


@cases(
    "properties, trust",
    ({"ssl.truststore.location": "/ca.pem"}, PemFile(location="/ca.pem")),
    ({"ssl.truststore.location": "/CA.CRT"}, PemFile(location="/CA.CRT")),
    ({"ssl.truststore.location": "/ca", "ssl.truststore.type": "pem"}, PemFile(location="/ca")),
    ({"ssl.truststore.certificates": "-----BEGIN"}, PemCertificates(text="-----BEGIN")),
    (
        {"ssl.truststore.location": "/t.jks", "ssl.truststore.password": "p"},
        StoreFile(store="ssl.truststore", location="/t.jks", type=None, password="p"),
    ),
    (
        {"ssl.truststore.location": "/t", "ssl.truststore.type": "PKCS12"},
        StoreFile(store="ssl.truststore", location="/t", type="PKCS12", password=None),
    ),
)
def test_trust_comes_from_text_file_or_store(properties: dict[str, str], trust: object) -> None:
    """Names and types tell PEM; what else a file is tells its content."""
    assert tls(properties).trust == trust


def test_an_identity_is_both_key_and_chain() -> None:
    """As texts, or in one file."""
    texts = {"ssl.keystore.key": "K", "ssl.keystore.certificate.chain": "C"}
    assert tls(texts).identity == PemIdentity(key="K", chain="C")
    found = tls({"ssl.keystore.location": "/k.pem", "ssl.key.password": "SECRET"})
    assert (found.identity, found.key_password) == (PemFile(location="/k.pem"), "SECRET")
    store = {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": "SECRET"}
    expected = StoreFile(store="ssl.keystore", location="/k.p12", type=None, password="SECRET")
    assert tls(store).identity == expected
    assert "SECRET" not in repr(tls({**store, "ssl.key.password": "SECRET"}))


def test_empty_and_ineffective_properties_have_meanings() -> None:
    """An empty algorithm takes any host name; Java's algorithms and timeouts are named."""
    algorithm = "ssl.endpoint.identification.algorithm"
    assert [tls(given).checks_host_name for given in ({}, {algorithm: "HTTPS"})] == [True, True]
    assert not tls({algorithm: " "}).checks_host_name
    given = {"ssl.protocol": "TLSv1.3", "sasl.login.class": "x", "client.id": "c"}
    expected = ("ssl.protocol", "sasl.login.class")
    assert parse_security({**given, "ssl.truststore.type": "JKS"}).without_effect == expected


LOGINS = [
    (
        {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": PLAIN},
        PasswordLogin(username="me", password="pa ss"),
    ),
    (
        {"sasl.jaas.config": 'k.M required serviceName="kafka" keyTab="/k" principal="p@R";'},
        KerberosLogin(service_name="kafka", keytab="/k", principal="p@R", relogin_ms=None),
    ),
]


@pytest.mark.parametrize(("properties", "login"), LOGINS)
def test_logins_are_of_properties_and_jaas(properties: dict[str, str], login: object) -> None:
    """Of each mechanism; without a name it is GSSAPI, and secrets are not shown."""
    security = parse_security({"security.protocol": "SASL_PLAINTEXT", **properties})
    assert security.sasl is not None
    assert security.sasl.login == login
    assert security.sasl.mechanism == properties.get("sasl.mechanism", "GSSAPI")
    assert not [secret for secret in SECRETS if secret in repr(security)]


SASL = {"security.protocol": "SASL_SSL"}
REFUSED = [
    ({"security.protocol": "TLS"}, "security.protocol: TLS"),
    ({"security.protocol": "SSL", "ssl.truststore.type": "BCFKS", "ssl.truststore.location": "/t"},
     "ssl.truststore.type: BCFKS"),
    ({"security.protocol": "SSL", "ssl.truststore.certificates": "SECRET",
      "ssl.truststore.location": "/t"}, "ssl.truststore.location: ssl.truststore.certificates"),
    ({"security.protocol": "SSL", "ssl.truststore.certificates": "SECRET",
      "ssl.truststore.type": "JKS"}, "ssl.truststore.type: it is JKS"),
    ({"security.protocol": "SSL", "ssl.keystore.key": "SECRET"},
     "ssl.keystore.certificate.chain: it is missing"),
    ({"security.protocol": "SSL", "ssl.keystore.certificate.chain": "SECRET"},
     "ssl.keystore.key: it is missing"),
    ({"security.protocol": "SSL", "ssl.keystore.type": "JKS", "ssl.keystore.location": "/k"},
     "ssl.keystore.password: it is missing"),
    ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "LDAPS"},
     "ssl.endpoint.identification.algorithm: LDAPS"),
    ({**SASL, "sasl.mechanism": "DIGEST-MD5"}, "sasl.mechanism: DIGEST-MD5"),
    ({**SASL, "sasl.mechanism": "PLAIN"}, "sasl.jaas.config: PLAIN needs a username"),
    ({**SASL, "sasl.mechanism": "PLAIN", "sasl.jaas.config": 'M required username="SECRET";'},
     "sasl.jaas.config: PLAIN needs a password"),
    ({**SASL, "sasl.mechanism": "OAUTHBEARER"}, "sasl.oauthbearer.token.endpoint.url: it is"),
]  # fmt: skip


@pytest.mark.parametrize(("properties", "text"), REFUSED)
def test_unusable_settings_are_refused_with_their_key(
    properties: dict[str, str], text: str
) -> None:
    """With what is wrong, mostly with what to do, and never with a secret."""
    with pytest.raises(ClientPropertyError) as refused:
        parse_security(properties)
    assert str(refused.value).startswith(text)
    assert "SECRET" not in str(refused.value)


@cases("name", "sasl.username", "ssl.ca.location", "sasl.mechanisms")
def test_names_of_librdkafka_are_refused_with_javas(name: str) -> None:
    """Java's clients would ignore them, and so would our own in other places."""
    with pytest.raises(ClientPropertyError, match=f"{name}: this is librdkafka's name"):
        refuse_other_names({name: "SECRET"})
    refuse_other_names({"sasl.jaas.config": PLAIN, "ssl.truststore.location": "/ca"})
