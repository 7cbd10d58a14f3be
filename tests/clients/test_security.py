"""The meaning of security properties, refusals, and the settings of both client libraries."""

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
    kafka_python_arguments,
    librdkafka_settings,
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
    """Java's default is plaintext, for which broken logins and stores do not matter."""
    assert parse_security({}) == Security(protocol=Protocol.PLAINTEXT, tls=None, sasl=None)
    broken = {"sasl.jaas.config": "broken", "ssl.keystore.key": "alone", "sasl.mechanism": "X"}
    assert parse_security(broken).sasl is None
    with pytest.raises(ClientPropertyError, match=r"sasl\.jaas\.config"):
        parse_security({**broken, "security.protocol": "SASL_PLAINTEXT"})
    with pytest.raises(ClientPropertyError, match=r"ssl\.keystore\.certificate\.chain"):
        parse_security({**broken, "security.protocol": "SSL"})


def test_values_are_trimmed_and_names_of_protocols_have_no_case() -> None:
    """Null and empty values count as unset, as in Java's parser."""
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
    """The type or the name shows PEM; the content of other files shows their kind."""
    assert tls(properties).trust == trust


def test_an_identity_is_both_key_and_chain() -> None:
    """An identity is two texts, or one file."""
    texts = {"ssl.keystore.key": "K", "ssl.keystore.certificate.chain": "C"}
    assert tls(texts).identity == PemIdentity(key="K", chain="C")
    found = tls({"ssl.keystore.location": "/k.pem", "ssl.key.password": "SECRET"})
    assert (found.identity, found.key_password) == (PemFile(location="/k.pem"), "SECRET")
    store = {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": "SECRET"}
    expected = StoreFile(store="ssl.keystore", location="/k.p12", type=None, password="SECRET")
    assert tls(store).identity == expected
    assert "SECRET" not in repr(tls({**store, "ssl.key.password": "SECRET"}))


def test_empty_and_ineffective_properties_have_meanings() -> None:
    """An empty algorithm accepts each host name; properties without effect are named."""
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
    """Each mechanism's login is read; GSSAPI is the default, and secrets are not shown."""
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
    """Errors say what is wrong and mostly what to do, and never show a secret."""
    with pytest.raises(ClientPropertyError) as refused:
        parse_security(properties)
    assert str(refused.value).startswith(text)
    assert "SECRET" not in str(refused.value)


@cases("name", "sasl.username", "ssl.ca.location", "sasl.mechanisms")
def test_names_of_librdkafka_are_refused_with_javas(name: str) -> None:
    """Java's clients would ignore librdkafka's names."""
    with pytest.raises(ClientPropertyError, match=f"{name}: this is librdkafka's name"):
        refuse_other_names({name: "SECRET"})
    refuse_other_names({"sasl.jaas.config": PLAIN, "ssl.truststore.location": "/ca"})


PLAIN_JAAS = 'org.apache.PlainLoginModule required username="a" password="b c;\\"";'


def settings(properties: dict[str, str]) -> dict[str, str]:
    return librdkafka_settings(parse_security(properties))


def arguments(properties: dict[str, str]) -> dict[str, object]:
    return kafka_python_arguments(parse_security(properties))


def test_plain_connections_need_the_protocol_only() -> None:
    """With a plain connection other properties do not matter."""
    given = {"sasl.jaas.config": PLAIN_JAAS, "ssl.truststore.location": "/ca.pem"}
    assert settings(given) == {"security.protocol": "plaintext"}


@cases(
    "java, librdkafka",
    (
        {"sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN_JAAS},
        {"sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.password": 'b c;"'},
    ),
    (
        {
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": "o.ScramLoginModule required username=u password='p w';",
        },
        {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "u", "sasl.password": "p w"},
    ),
    (
        {
            "sasl.kerberos.service.name": "kafka",
            "sasl.jaas.config": 'k.M required keyTab="/k" principal="p@R";',
        },
        {
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.keytab": "/k",
            "sasl.kerberos.principal": "p@R",
        },
    ),
)
def test_logins_are_translated(java: dict[str, str], librdkafka: dict[str, str]) -> None:
    """Each mechanism that Kafka has is translated."""
    protocol = {"security.protocol": "sasl_plaintext"}
    assert settings({**java, "security.protocol": "SASL_PLAINTEXT"}) == protocol | librdkafka


def test_a_login_by_token_stays_in_javas_words() -> None:
    """The source of a login's tokens is an object, which is made with the client."""
    java = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
        "sasl.jaas.config": 'o.OAuthBearerLoginModule required clientId="i" clientSecret="s";',
    }
    assert settings(java) == {**java, "security.protocol": "sasl_plaintext"}


HTTPS = {"ssl.endpoint.identification.algorithm": "https"}


@cases(
    "java, librdkafka",
    ({"ssl.truststore.location": "/ca.pem"}, {**HTTPS, "ssl.ca.location": "/ca.pem"}),
    ({"ssl.truststore.certificates": "-----BEGIN"}, {**HTTPS, "ssl.ca.pem": "-----BEGIN"}),
    (
        {"ssl.keystore.key": "K", "ssl.keystore.certificate.chain": "C", "ssl.key.password": "p"},
        {**HTTPS, "ssl.key.pem": "K", "ssl.certificate.pem": "C", "ssl.key.password": "p"},
    ),
    (
        {"ssl.keystore.location": "/k.pem"},
        {**HTTPS, "ssl.certificate.location": "/k.pem", "ssl.key.location": "/k.pem"},
    ),
    (
        {"ssl.endpoint.identification.algorithm": ""},
        {"ssl.endpoint.identification.algorithm": "none"},
    ),
)
def test_tls_is_translated(java: dict[str, str], librdkafka: dict[str, str]) -> None:
    """TLS has PEM files or PEM texts."""
    expected = {"security.protocol": "ssl", **librdkafka}
    assert settings({**java, "security.protocol": "SSL"}) == expected


def test_stores_keep_javas_names_until_they_are_read() -> None:
    """The code that makes a client reads the stores first."""
    stores = {
        "ssl.truststore.location": "/t.jks",
        "ssl.keystore.location": "/k",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": "s",
        "ssl.key.password": "k",
    }
    expected = {"security.protocol": "ssl", **HTTPS, **stores}
    assert settings({**stores, "security.protocol": "SSL"}) == expected


def test_a_login_by_password_becomes_arguments() -> None:
    """The arguments do not have the TLS settings, which become an object."""
    assert arguments({}) == {"security_protocol": "PLAINTEXT"}
    assert arguments(
        {
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": PLAIN_JAAS,
            "ssl.truststore.location": "/ca.pem",
        }
    ) == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "a",
        "sasl_plain_password": 'b c;"',
    }


def test_kerberos_takes_its_service_from_either_place() -> None:
    """The service's property takes precedence over the login entry."""
    java = {"security.protocol": "SASL_SSL", "sasl.jaas.config": 'k.M required serviceName="s";'}
    expected = {"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}
    assert arguments(java) == {**expected, "sasl_kerberos_service_name": "s"}
    java["sasl.kerberos.service.name"] = "other"
    assert arguments(java) == {**expected, "sasl_kerberos_service_name": "other"}
    del java["sasl.kerberos.service.name"], java["sasl.jaas.config"]
    assert arguments(java) == expected
