"""Java's client settings in kafka-python's words."""

from pyconnect_agent.core.clients.configs import kafka_python_config
from pyconnect_clients.security import PasswordLogin, PemFile, Tls
from tests.support.agents.worker_properties import distributed

PLAIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="a" password="b c;\\"";'
)


def test_kafka_python_gets_the_same_network_and_login() -> None:
    """In its own argument names; security is handed over beside them."""
    worker_properties = dict(
        distributed(bootstrap_servers="a:1,b:2", request_timeout_ms="50000").originals
    )
    config = kafka_python_config(
        worker_properties
        | {
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": PLAIN,
            "ssl.truststore.location": "/ca.pem",
            "send.buffer.bytes": "-1",
            "receive.buffer.bytes": "100",
        },
        client_id="me",
    )
    assert config.arguments == {
        "bootstrap_servers": ["a:1", "b:2"],
        "client_id": "me",
        "request_timeout_ms": 50000,
        "reconnect_backoff_max_ms": 1000,
        "receive_buffer_bytes": 100,
    }
    assert config.security.tls == Tls(trust=PemFile(location="/ca.pem"))
    assert config.security.sasl is not None
    assert config.security.sasl.login == PasswordLogin(username="a", password='b c;"')
    assert "b c" not in repr(config)


def test_missing_settings_have_connects_defaults() -> None:
    """kafka-python waits up to 30 s before it connects again: longer than a session lasts."""
    arguments = kafka_python_config({"bootstrap.servers": "a:1"}, client_id="me").arguments
    assert (arguments["reconnect_backoff_max_ms"], arguments["request_timeout_ms"]) == (1000, 40000)
    given = {"reconnect.backoff.max.ms": "7"}
    assert kafka_python_config(given, client_id="me").arguments["reconnect_backoff_max_ms"] == 7
