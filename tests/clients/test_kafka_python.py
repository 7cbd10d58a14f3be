"""Security as kafka-python's arguments."""

from __future__ import annotations

from pyconnect_clients.kafka_python import kafka_python_arguments
from pyconnect_clients.security import parse_security

PLAIN = 'org.apache.PlainLoginModule required username="a" password="b c;\\"";'


def arguments(properties: dict[str, str]) -> dict[str, object]:
    return kafka_python_arguments(parse_security(properties))


def test_a_login_by_password_becomes_arguments() -> None:
    """What is about TLS is an object, and not among them."""
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
