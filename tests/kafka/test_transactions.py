"""`pyconnect transactions` with a real coordinator and a transaction that no client will end."""

import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pyconnect_sandbox.broker import KafkaBroker
from tests.support.commands.pyconnect_command import Pyconnect
from tests.support.eventually import eventually
from tests.support.fakes.connect_server import FakeConnect, FakeConnector, serve
from tests.support.names import unique_name
from tests.support.servers.kafka import Servers
from tests.support.servers.topics import create_topics, ends_of, read_topic

pytestmark = pytest.mark.kafka

WAIT_S = 150
TASK_ID = "g-numbers-0"
_WRITER = """
import os, sys
from confluent_kafka import Producer
servers, transactional_id, topic = sys.argv[1:]
producer = Producer(
    {
        "bootstrap.servers": servers,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": 600000,
    }
)
producer.init_transactions(30)
producer.begin_transaction()
producer.produce(topic, b"never committed", partition=0)
assert producer.flush(30) == 0
os._exit(0)
"""


@pytest.fixture(scope="module")
def broker(module_servers: Servers) -> KafkaBroker:
    """A broker for this module alone, because its tests restart it."""
    return module_servers.broker()


@pytest.fixture
def topic(broker: KafkaBroker) -> str:
    topic = unique_name("records")
    create_topics(broker.bootstrap_servers, [topic])
    return topic


@pytest.fixture
def connect(topic: str) -> FakeConnect:
    numbers = FakeConnector(config={"name": "numbers", "topic": topic})
    return FakeConnect(connectors={"numbers": numbers})


@pytest.fixture
def pyconnect(broker: KafkaBroker, connect: FakeConnect, tmp_path: Path) -> Iterator[Pyconnect]:
    with serve(connect) as url:
        yield Pyconnect(tmp_path, url, broker.bootstrap_servers)


def leave_open(broker: KafkaBroker, topic: str) -> None:
    """Leave a transaction open, like a task whose process is killed."""
    command = [sys.executable, "-c", _WRITER, broker.bootstrap_servers, TASK_ID, topic]
    subprocess.run(command, check=True, timeout=WAIT_S)


def forget(broker: KafkaBroker) -> None:
    """Make the coordinator forget the id, as faults of brokers did (KAFKA-12671 and others).

    A tombstone in the coordinator's log, which it reads at its start, makes it forget the id. Only
    admin tools may write there.
    """
    log = "__transaction_state"
    name = TASK_ID.encode()
    key = struct.pack(">hh", 0, len(name)) + name
    found = read_topic(broker.bootstrap_servers, log)
    (partition,) = {record.partition() for record in found if record.key() == key}
    writer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "client.id": "__admin_client"}
    )
    failures: list[object] = []
    writer.produce(
        log,
        None,
        key,
        partition,
        on_delivery=lambda error, _: failures.append(error) if error else None,
    )
    assert writer.flush(30) == 0
    assert not failures
    broker.restart()


def last_stable_offset(broker: KafkaBroker, topic: str) -> int:
    return ends_of(broker.bootstrap_servers, topic, [0], committed=True)[0]


def test_transactions_are_listed_with_their_owners(
    broker: KafkaBroker, topic: str, pyconnect: Pyconnect
) -> None:
    """A task's transaction has its state; foreign ids need an option; unknown ids exit with 3."""
    leave_open(broker, topic)
    foreign = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "somebody-else"}
    )
    foreign.init_transactions(30)
    listed = pyconnect("transactions", "list", "--group", "g", "-o", "json")
    assert listed.code == 0, listed.err
    (one,) = json.loads(listed.out)
    assert (one["owner"], one["task"], one["state"]) == ("numbers", 0, "Ongoing")
    assert one["partitions"] == [{"topic": topic, "partition": 0}]
    everything = pyconnect("txn", "ls", "--group", "g", "--all-ids", "-o", "name").out.split()
    assert everything == ["g-numbers-0", "somebody-else"]
    opened = pyconnect("txn", "list", "--group", "g", "--all-ids", "--open", "-o", "name").out
    assert opened.split() == ["g-numbers-0"]
    described = pyconnect("transactions", "describe", TASK_ID, "--group", "g")
    assert "numbers/0" in described.out
    assert f"{topic}:0" in described.out
    assert pyconnect("transactions", "describe", "nobody").code == 3
    assert pyconnect("transactions", "list").code == 2


def test_the_open_transaction_of_a_dead_producer_is_terminated(
    broker: KafkaBroker, topic: str, pyconnect: Pyconnect, connect: FakeConnect
) -> None:
    """Only a transaction without a running task and of a known connector can be terminated."""
    leave_open(broker, topic)
    assert last_stable_offset(broker, topic) == 0
    terminate = ("transactions", "terminate", TASK_ID, "--group", "g")
    refused = pyconnect(*terminate, "--yes")
    assert refused.code == 9
    assert "numbers/0 is RUNNING" in refused.err
    connect.connectors["numbers"].tasks = ["FAILED"]
    assert pyconnect(*terminate).code == 9  # not confirmed
    assert pyconnect(*terminate, "--dry-run").code == 0
    assert last_stable_offset(broker, topic) == 0
    stranger = pyconnect("transactions", "terminate", TASK_ID, "--group", "other", "--yes")
    assert stranger.code == 9
    assert "belongs to no connector" in stranger.err
    ended = pyconnect(*terminate, "--yes")
    assert ended.code == 0, ended.err
    eventually(
        lambda: last_stable_offset(broker, topic) == 2,
        WAIT_S,
        lambda: last_stable_offset(broker, topic),
    )
    again = pyconnect(*terminate, "--yes")
    assert again.code == 0
    assert "has no open transaction (Empty)" in again.err
    assert pyconnect("transactions", "terminate", "nobody", "--yes").code == 3


def test_a_missing_topic_or_partition_is_an_error(topic: str, pyconnect: Pyconnect) -> None:
    """A missing topic or partition exits with 3 and does not look like a healthy cluster."""
    find = ("transactions", "find-hanging", "--topic", topic)
    eventually(lambda: pyconnect(*find).code == 0, WAIT_S)  # the new topic has a leader
    missing = pyconnect(*find, "--topic", "recrods")
    assert missing.code == 3, missing.err
    assert "topic recrods does not exist" in missing.err
    assert pyconnect("transactions", "abort", "recrods", "0", "1", "--yes").code == 3
    partition = pyconnect("transactions", "abort", topic, "7", "1", "--yes")
    assert partition.code == 3, partition.err
    assert f"topic {topic} has no partition 7" in partition.err


def test_a_hanging_transaction_is_found_and_aborted(
    broker: KafkaBroker, topic: str, pyconnect: Pyconnect
) -> None:
    """A transaction that its coordinator knows is not hanging; after an abort readers go on."""
    leave_open(broker, topic)
    find = ("transactions", "find-hanging", "--group", "g", "--min-idle", "0s")
    found = pyconnect(*find)
    assert found.code == 0, found.err
    producer_id = json.loads(pyconnect("txn", "describe", TASK_ID, "-o", "json").out)["producer_id"]
    abort = ("transactions", "abort", topic, "0", str(producer_id), "--min-idle", "0s")
    refused = pyconnect(*abort, "--yes")
    assert refused.code == 9
    assert "its coordinator knows it (Ongoing)" in refused.err
    forget(broker)
    hanging = eventually(
        lambda: json.loads(pyconnect(*find, "-o", "json").out or "[]"), WAIT_S, "a hanging one"
    )
    assert [entry["producer_id"] for entry in hanging] == [producer_id]
    assert pyconnect(*find).code == 1
    assert pyconnect(*find[:-2]).code == 0  # younger than transactions may live
    assert last_stable_offset(broker, topic) == 0
    unconfirmed = pyconnect(*abort)
    assert unconfirmed.code == 9
    assert "records from offset 0 on" in unconfirmed.err
    assert pyconnect(*abort, "--dry-run").code == 0
    assert last_stable_offset(broker, topic) == 0
    aborted = pyconnect(*abort, "--yes")
    assert aborted.code == 0, aborted.err
    eventually(
        lambda: last_stable_offset(broker, topic) == 2,
        WAIT_S,
        lambda: last_stable_offset(broker, topic),
    )
    assert pyconnect(*find).code == 0
    again = pyconnect(*abort, "--yes")
    assert again.code == 0
    assert "has no open transaction" in again.err
