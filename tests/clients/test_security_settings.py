"""Security in the words of both client libraries."""

from pyconnect_clients.security import kafka_python_arguments, librdkafka_settings, parse_security
from tests.support.cases import cases

PLAIN = 'org.apache.PlainLoginModule required username="a" password="b c;\\"";'


def settings(properties: dict[str, str]) -> dict[str, str]:
    return librdkafka_settings(parse_security(properties))


def arguments(properties: dict[str, str]) -> dict[str, object]:
    return kafka_python_arguments(parse_security(properties))


def test_plain_connections_need_the_protocol_only() -> None:
    """Other properties do not matter."""
    given = {"sasl.jaas.config": PLAIN, "ssl.truststore.location": "/ca.pem"}
    assert settings(given) == {"security.protocol": "plaintext"}


@cases(
    "java, librdkafka",
    (
        {"sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN},
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
    """Of every mechanism that Kafka has."""
    protocol = {"security.protocol": "sasl_plaintext"}
    assert settings({**java, "security.protocol": "SASL_PLAINTEXT"}) == protocol | librdkafka


def test_a_login_by_token_stays_in_javas_words() -> None:
    """Until a client is made: the source of its tokens is an object."""
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
    """PEM, as files or texts."""
    expected = {"security.protocol": "ssl", **librdkafka}
    assert settings({**java, "security.protocol": "SSL"}) == expected


def test_stores_keep_javas_names_until_they_are_read() -> None:
    """The code that makes the client reads the stores first."""
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
    """TLS settings are an object and are not among the arguments."""
    assert arguments({}) == {"security_protocol": "PLAINTEXT"}
    assert arguments(
        {
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": PLAIN,
            "ssl.truststore.location": "/ca.pem",
        }
    ) == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "a",
        "sasl_plain_password": 'b c;"',
    }


def test_kerberos_takes_its_service_from_either_place() -> None:
    """From the property before the login entry."""
    java = {"security.protocol": "SASL_SSL", "sasl.jaas.config": 'k.M required serviceName="s";'}
    expected = {"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}
    assert arguments(java) == {**expected, "sasl_kerberos_service_name": "s"}
    java["sasl.kerberos.service.name"] = "other"
    assert arguments(java) == {**expected, "sasl_kerberos_service_name": "other"}
    del java["sasl.kerberos.service.name"], java["sasl.jaas.config"]
    assert arguments(java) == expected
