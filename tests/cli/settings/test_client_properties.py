"""Kafka client properties of commands: read as by the agent, with errors of the command line."""

import ssl
from pathlib import Path

import pytest
import trustme

from pyconnect_cli.errors import UsageError
from pyconnect_cli.kafka.admin import KafkaAccess
from pyconnect_cli.settings.given_files import read_security
from tests.cli.conftest import Run
from tests.support.cases import cases

PLAIN = (
    "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' username="ops" password="hunter2";\n'
)
SASL = f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n{PLAIN}"


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """A certificate to trust."""
    path = tmp_path / "authority"
    trustme.CA().cert_pem.write_to_path(str(path))
    return path


def cluster(tmp_path: Path, text: str) -> KafkaAccess:
    file = tmp_path / "client.properties"
    file.write_text(text)
    return KafkaAccess(bootstrap="a:1, b:2,", security=read_security(str(file)))


def test_one_file_serves_both_clients(tmp_path: Path, authority: Path) -> None:
    """Each client gets its own settings; stores become texts; without a file there is no login."""
    brokers = cluster(tmp_path, f"{SASL}ssl.truststore.location={authority}\nclient.id=other\n")
    assert brokers.librdkafka() == {
        "bootstrap.servers": "a:1, b:2,",
        "security.protocol": "sasl_ssl",
        "ssl.endpoint.identification.algorithm": "https",
        "ssl.ca.pem": authority.read_text(),
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ops",
        "sasl.password": "hunter2",
    }
    arguments = brokers.kafka_python()
    context = arguments.pop("ssl_context")
    assert isinstance(context, ssl.SSLContext)
    assert len(context.get_ca_certs()) == 1
    assert arguments == {
        "bootstrap_servers": ["a:1", "b:2"],
        "client_id": "pyconnect",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "ops",
        "sasl_plain_password": "hunter2",
    }
    assert brokers.username == "ops"
    assert "hunter2" not in repr(brokers)
    brokers = KafkaAccess(bootstrap="a:1")
    plain = {"bootstrap.servers": "a:1", "security.protocol": "plaintext"}
    assert (brokers.librdkafka(), brokers.username) == (plain, None)


@cases(
    "text, message, hint",
    ("security.protocol=SASL_SSL\nsasl.mechanism=X\n", "sasl.mechanism: X", "SCRAM-SHA-512"),
    ("ssl.ca.location=/ca\n", "librdkafka's name", "ssl.truststore.location"),
    (
        "security.protocol=SSL\nssl.truststore.location=/nowhere\n",
        "ssl.truststore.location: /nowhere cannot be used: No such file",
        "",
    ),
)
def test_bad_properties_fail(run: Run, tmp_path: Path, text: str, message: str, hint: str) -> None:
    """The exit code is 2 before any broker is asked; the error has the key and a hint."""
    file = tmp_path / "client.properties"
    file.write_text(text)
    outcome = run(
        "transactions", "list", "--group", "g",
        "--kafka-bootstrap", "127.0.0.1:1", "--kafka-properties", str(file),
    )  # fmt: skip
    assert outcome.code == 2
    assert message in outcome.err
    assert hint in outcome.err


def test_properties_without_effect_are_reported(run: Run, tmp_path: Path) -> None:
    """A warning names misspelt security keys, and no keys of other clients."""
    file = tmp_path / "client.properties"
    file.write_text("sasl.mechansim=PLAIN\nmax.poll.records=5\n")
    outcome = run(
        "--timeout", "1s", "offsets", "orphans", "list", "--topic", "t",
        "--kafka-bootstrap", "127.0.0.1:1", "--kafka-properties", str(file),
    )  # fmt: skip
    assert "without effect here: sasl.mechansim\n" in outcome.err


def test_a_source_of_tokens_that_cannot_be_used_is_a_wrong_use(tmp_path: Path) -> None:
    """The error has the reason, for both clients."""
    brokers = cluster(
        tmp_path,
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.oauthbearer.token.endpoint.url=https://127.0.0.1:1/token\n"
        "sasl.jaas.config=o.M required clientId=i clientSecret=s"
        f' ssl.truststore.location="{tmp_path}/no.pem";\n',
    )
    for client in (brokers.librdkafka, brokers.kafka_python):
        with pytest.raises(UsageError, match=r"ssl\.truststore"):
            client()
