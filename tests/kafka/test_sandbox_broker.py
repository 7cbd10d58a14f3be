"""The sandbox's broker is a real one that can be stopped, killed, frozen and started again."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from pyconnect_sandbox.broker import BrokerConfig, BrokerSecurity, KafkaBroker, answers_metadata
from pyconnect_sandbox.errors import PortTaken, SandboxError, ServerExited, ServerNotReady
from pyconnect_sandbox.processes import ProcessIdentity
from pyconnect_sandbox.runtime import KafkaRuntime, archives_root
from pyconnect_sandbox.server import LOOPBACK, accepts_connections
from tests.support.commands.processes import is_gone, python_environment
from tests.support.eventually import eventually
from tests.support.servers.kafka import Servers, SharedBroker

pytestmark = pytest.mark.kafka


def produce(bootstrap_servers: str, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce(topic, value)
    assert producer.flush(30) == 0


def consume_one(bootstrap_servers: str, topic: str) -> bytes | None:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe([topic])
        message = eventually(lambda: consumer.poll(0.5), describe="a record")
        assert message is not None
        assert message.error() is None
        return message.value()
    finally:
        consumer.close()


def test_the_shared_broker_answers(kafka_broker: SharedBroker) -> None:
    """The session's broker answers a metadata request."""
    assert answers_metadata(kafka_broker.bootstrap_servers, timeout_s=150)


def test_the_first_group_and_the_first_transaction_find_a_coordinator(
    kafka_broker: SharedBroker,
) -> None:
    """The coordinators' topics exist once the broker has started."""
    topics = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers}).list_topics(
        timeout=400
    )
    assert {"__consumer_offsets", "__transaction_state"} <= set(topics.topics)


@pytest.fixture(scope="module")
def own_broker(module_servers: Servers) -> KafkaBroker:
    """A broker that tests may stop, kill and freeze."""
    return module_servers.broker()


@pytest.fixture
def broker(own_broker: KafkaBroker) -> KafkaBroker:
    """A broker that runs, whatever the last test did to it."""
    return own_broker.start()


def test_records_survive_a_stop_and_a_kill_on_the_same_port(broker: KafkaBroker) -> None:
    """A broker that is restarted, or killed and started, serves its records at its address."""
    address = broker.bootstrap_servers
    produce(address, "kept", b"before the stop")

    assert broker.restart().bootstrap_servers == address
    assert consume_one(address, "kept") == b"before the stop"
    broker.kill()
    assert not answers_metadata(address, timeout_s=0.5)
    broker.start()

    assert broker.bootstrap_servers == address
    produce(address, "kept", b"after the kill")


def test_a_suspended_broker_answers_again_when_it_is_resumed(broker: KafkaBroker) -> None:
    """A frozen broker accepts connections and answers nothing until it is resumed."""
    broker.suspend()
    assert accepts_connections(broker.ports.plaintext)
    assert not answers_metadata(broker.bootstrap_servers, timeout_s=0.5)
    broker.resume()

    assert eventually(lambda: answers_metadata(broker.bootstrap_servers, timeout_s=1))


def test_a_suspended_broker_can_be_stopped(broker: KafkaBroker) -> None:
    """A stop resumes the frozen broker first, so that it ends in order."""
    identity = broker.identity
    broker.suspend()

    assert broker.stop()
    assert is_gone(identity)


@pytest.fixture(scope="module")
def sasl_broker(module_servers: Servers) -> KafkaBroker:
    users = {"alice": 'pass"word', "bob": "secret"}
    return module_servers.broker(security=BrokerSecurity(acl=True, sasl_users=users))


def test_acls_bind_sasl_users_and_not_the_plaintext_listener(sasl_broker: KafkaBroker) -> None:
    """ACLs limit a SASL user, while PLAINTEXT clients administer the cluster."""
    administrator = AdminClient({"bootstrap.servers": sasl_broker.bootstrap_servers})
    administrator.create_topics([NewTopic("ledger", 1, 1)])["ledger"].result(60)
    alice = AdminClient(
        {
            "bootstrap.servers": sasl_broker.sasl_bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": 'pass"word',
        }
    )

    def error_code_of_ledger() -> KafkaError | None:
        error: KafkaError | None = alice.list_topics("ledger", timeout=400).topics["ledger"].error
        return error

    refused = error_code_of_ledger()
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    allow = AclBinding(
        ResourceType.TOPIC,
        "ledger",
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.DESCRIBE,
        AclPermissionType.ALLOW,
    )
    administrator.create_acls([allow])[allow].result(60)
    assert eventually(lambda: error_code_of_ledger() is None)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_refused(sasl_broker: KafkaBroker, mechanism: str) -> None:
    """Every SASL mechanism accepts the password and refuses any other one."""

    def connect(password: str, within_s: float) -> int:
        client = AdminClient(
            {
                "bootstrap.servers": sasl_broker.sasl_bootstrap_servers,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.username": "bob",
                "sasl.password": password,
                "log_level": 0,
            }
        )
        return len(client.list_topics(timeout=within_s).brokers)

    assert connect("secret", 60) == 1
    with pytest.raises(KafkaException):
        connect("guess", 2)


def test_a_taken_port_is_named(kafka_runtime: KafkaRuntime, tmp_path: Path) -> None:
    """A broker that is asked for a port in use reports it instead of starting elsewhere."""
    with socket.create_server((LOOPBACK, 0)) as occupied:
        port = occupied.getsockname()[1]
        broker = KafkaBroker(BrokerConfig(runtime=kafka_runtime, directory=tmp_path, port=port))
        with pytest.raises(PortTaken, match=f"Port {port} on .* is in use"):
            broker.start()


@pytest.mark.long(only=True)
def test_other_ports_are_tried_when_a_free_one_is_taken_meanwhile(
    kafka_runtime: KafkaRuntime, tmp_path: Path
) -> None:
    """A broker whose chosen port is taken before it listens starts on another one."""
    broker = KafkaBroker(
        BrokerConfig(runtime=kafka_runtime, directory=tmp_path, hold_file=tmp_path / "hold")
    )
    chosen = broker.ports.plaintext
    with socket.create_server((LOOPBACK, chosen), backlog=1), broker:
        assert broker.ports.plaintext != chosen
        assert answers_metadata(broker.bootstrap_servers, timeout_s=150)


@pytest.mark.long(only=True)
def test_the_second_start_maps_the_classes_of_the_first(
    kafka_runtime: KafkaRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that ended in order leaves a class archive, which the next one maps."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    config = BrokerConfig(
        runtime=kafka_runtime,
        directory=tmp_path / "broker",
        # A busy machine needs long to write archives, and a broker killed meanwhile leaves none.
        start_timeout_s=150,
        stop_timeout_s=150,
        hold_file=tmp_path / "hold",
    )
    with KafkaBroker(config) as broker:
        assert archives_root().is_relative_to(tmp_path)
        assert not list(archives_root().glob("Kafka-*"))

        broker.restart()

        (archive,) = archives_root().glob("Kafka-*")
        assert str(archive) in Path(f"/proc/{broker.pid}/maps").read_text()


def test_a_broker_that_cannot_start_shows_why(kafka_runtime: KafkaRuntime, tmp_path: Path) -> None:
    """The error of a broker that ends early has the end of its log."""
    broker = KafkaBroker(
        BrokerConfig(
            runtime=kafka_runtime,
            directory=tmp_path,
            properties={"authorizer.class.name": "no.such.Authorizer"},
            hold_file=tmp_path / "hold",
        )
    )
    with pytest.raises(ServerExited, match=r"(?s)exit code 1 .*no\.such\.Authorizer"):
        broker.start()


def test_broker_properties_that_kafka_refuses_are_named(
    kafka_runtime: KafkaRuntime, tmp_path: Path
) -> None:
    """Kafka's own error, without its stack, says why the directory cannot be formatted."""
    broker = KafkaBroker(
        BrokerConfig(runtime=kafka_runtime, directory=tmp_path, properties={"num.io.threads": "0"})
    )
    with pytest.raises(SandboxError, match=r"Invalid value 0 for .* num\.io\.threads") as refused:
        broker.start()
    assert "\tat " not in refused.value.message


def test_a_broker_that_is_not_ready_in_time_leaves_no_process(
    kafka_runtime: KafkaRuntime, tmp_path: Path
) -> None:
    """A broker that is not ready in time is stopped, and the error has the time of the wait."""
    broker = KafkaBroker(
        BrokerConfig(
            runtime=kafka_runtime,
            directory=tmp_path,
            start_timeout_s=150,
            hold_file=tmp_path / "hold",
        )
    )
    broker.launch()
    identity = broker.identity
    with pytest.raises(ServerNotReady, match="did not answer within 0"):
        broker.wait_until_ready(0.2)
    assert is_gone(identity)
    assert not broker.is_running


_OWNER = """
import sys, time
from pathlib import Path
from pyconnect_sandbox.broker import BrokerConfig, KafkaBroker
from pyconnect_sandbox.jars import find_runtime
directory = Path(sys.argv[1])
broker = KafkaBroker(
    BrokerConfig(runtime=find_runtime(), directory=directory, hold_file=directory / "hold")
).start()
print(broker.identity.pid, broker.identity.start_mark, flush=True)
sys.stdin.read()
"""


def test_a_killed_owner_leaves_no_broker(tmp_path: Path) -> None:
    """A tethered broker ends when the process that started it is killed with SIGKILL."""
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(tmp_path)],
        env=python_environment(os.environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        pid, start_mark = owner.stdout.readline().strip().split(maxsplit=1)
        identity = ProcessIdentity(pid=int(pid), start_mark=start_mark)
        assert not is_gone(identity)
        owner.send_signal(signal.SIGKILL)
    eventually(lambda: is_gone(identity), describe="the end of the broker")
