"""Meaning of client properties, in the agent's errors and warnings."""

import pytest

from pyconnect_agent.core.clients.librdkafka import client_security, translate
from pyconnect_agent.core.config.client_keys import ClientKind
from pyconnect_api import ConfigException
from pyconnect_clients.security import Protocol

PLAIN = 'o.PlainLoginModule required username="u" password="hunter2";'


def test_unusable_settings_are_errors_of_the_configuration() -> None:
    """Of a worker, which does not start, or of a connector, whose task fails."""
    broken = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "x"}
    with pytest.raises(ConfigException, match=r"configuration: sasl\.jaas\.config: .*hidden"):
        client_security(broken)
    with pytest.raises(ConfigException, match="hidden"):
        translate(broken, ClientKind.ADMIN)


def test_settings_without_effect_are_warned_of_once() -> None:
    """Unless they are what Java has anyway."""
    java = {"ssl.protocol": "TLSv1.3", "ssl.cipher.suites": "X", "sasl.mechansim": "PLAIN"}
    security, warnings = client_security(java)
    assert security.protocol is Protocol.PLAINTEXT
    assert warnings == [
        "The client setting 'ssl.cipher.suites' has no effect in this worker",
        "The client setting 'sasl.mechansim' has no effect in this worker",
    ]
    assert list(translate(java, ClientKind.ADMIN).warnings) == warnings


def test_a_client_gets_its_security_beside_everything_else() -> None:
    """Key stores stay named: reading files is none of core's business."""
    java = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": PLAIN,
        "ssl.truststore.location": "/t.jks",
        "client.id": "c",
    }
    built = translate(java, ClientKind.ADMIN)
    expected = {
        "client.id": "c",
        "security.protocol": "sasl_ssl",
        "sasl.username": "u",
        "sasl.password": "hunter2",
        "ssl.truststore.location": "/t.jks",
    }
    assert {name: built.properties.get(name) for name in expected} == expected
    assert "sasl.jaas.config" not in built.properties
    assert "hunter2" not in repr(built)
