"""The records of a topic that `topics read` and `connectors try` show, and their form."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from pyconnect_cli.kafka.model import TopicPartition
from pyconnect_cli.kafka.reader import read_to_the_end
from tests.cli.offsets_world import sink_entry
from tests.support.agents.agent import sink_config
from tests.support.cases import cases
from tests.support.commands.pyconnect_command import Ended, Pyconnect
from tests.support.fakes.connect_server import FakeConnect, FakeConnector, serve
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import create_topics, produce

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def topic(kafka_broker: SharedBroker) -> Iterator[str]:
    """A topic with 30 texts in one partition; bytes, a null and aborted records in another."""
    name = unique_name("read")
    settings = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    admin = AdminClient(settings)
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(30)
    plain = Producer(settings)
    for number in range(30):
        plain.produce(name, f"line {number}", f"k{number}", 0, timestamp=1000 + number)
    plain.produce(name, b"\xff\x00", None, 1, headers=[("h", b"v")], timestamp=2000)
    plain.produce(name, None, "gone", 1, timestamp=2001)
    assert plain.flush(30) == 0
    aborting = Producer({**settings, "transactional.id": name})
    aborting.init_transactions(30)
    for _ in range(20):
        aborting.begin_transaction()
        aborting.produce(name, "aborted", partition=1, timestamp=3000)
        aborting.flush(30)
        aborting.abort_transaction(30)
    yield name
    admin.delete_topics([name])[name].result(30)


@pytest.fixture
def pyconnect(kafka_broker: SharedBroker, tmp_path: Path) -> Pyconnect:
    return Pyconnect(tmp_path, "http://127.0.0.1:1", kafka_broker.bootstrap_servers)


def values(outcome: Ended) -> list[object]:
    assert outcome.code == 0, outcome.err
    return [record["value"] for record in json.loads(outcome.out)]


def test_the_newest_records_come_last_and_aborted_ones_do_not_come(
    pyconnect: Pyconnect, topic: str
) -> None:
    """Markers and aborted records at the end do not replace committed ones."""
    newest = values(pyconnect("topics", "read", topic, "--max", "4", "-o", "json"))
    assert newest == ["line 28", "line 29", {"base64": "/wA="}, None]


def test_the_oldest_records_of_a_partition(pyconnect: Pyconnect, topic: str) -> None:
    """The command shows at most --max records of the requested partition."""
    options = ("--from-beginning", "--max", "3", "--partition", "0", "-o", "json")
    assert values(pyconnect("topics", "read", topic, *options)) == ["line 0", "line 1", "line 2"]


def test_a_table_shows_texts_bytes_nulls_and_headers(pyconnect: Pyconnect, topic: str) -> None:
    """Bytes that are not text are hexadecimal, a null is a dash."""
    outcome = pyconnect("topics", "read", topic, "--partition", "1", "-o", "wide")
    lines = [line.split() for line in outcome.out.splitlines()]
    assert lines == [
        ["PARTITION", "OFFSET", "TIME", "KEY", "VALUE", "HEADERS"],
        ["1", "0", "1970-01-01T00:00:02.000Z", "-", "0xff00", "h=v"],
        ["1", "1", "1970-01-01T00:00:02.001Z", "gone", "-"],
    ]


@cases("arguments, message", (("--partition", "7"), "has no partition 7"), ((), "does not exist"))
def test_a_missing_topic_or_partition_is_not_found(
    pyconnect: Pyconnect, topic: str, arguments: tuple[str, ...], message: str
) -> None:
    """A missing topic and a missing partition exit with 3."""
    outcome = pyconnect("topics", "read", topic if arguments else unique_name("none"), *arguments)
    assert (outcome.code, message in outcome.err) == (3, True), outcome.err


def test_a_sink_behind_a_marker_of_a_transaction_has_no_lag(
    kafka_broker: SharedBroker, tmp_path: Path, topic: str
) -> None:
    """A marker is not lag, nor are aborted records for a sink that reads committed ones."""
    config: dict[str, str | None] = {"connector.class": "FileSink", "topics": topic}
    committed = {**config, "consumer.override.isolation.level": "read_committed"}
    sinks = {
        "behind": FakeConnector(config=config, type="sink"),
        "committed": FakeConnector(config=committed, type="sink"),
    }
    sinks["behind"].offsets = [sink_entry(topic, 0, 29), sink_entry(topic, 1, 41)]
    sinks["committed"].offsets = [sink_entry(topic, 0, 30), sink_entry(topic, 1, 2)]
    with serve(FakeConnect(connectors=sinks)) as url:
        command = Pyconnect(tmp_path, url, kafka_broker.bootstrap_servers)
        outcome = command("offsets", "lag", "--all", "-o", "json")
        status = command("status", "-o", "json")
    assert json.loads(status.out)["lag"] == {"behind": 1, "committed": 0}
    lags = [(row["connector"], row["partition"], row["lag"]) for row in json.loads(outcome.out)]
    assert lags == [("behind", 0, 1), ("behind", 1, 0), ("committed", 0, 0), ("committed", 1, 0)]
    places = {TopicPartition(topic, 1): (2, 42)}
    settings = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    assert read_to_the_end(settings, places, "read_uncommitted") == set()


def test_a_dead_letter_queue_is_shown_with_its_errors(
    kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """The output has each record's origin and error; other connectors' records are left out."""
    queue = unique_name("dlq")
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    about = {
        "connector.name": "sink",
        "task.id": "0",
        "topic": "orders",
        "partition": "3",
        "offset": "41",
        "stage": "VALUE_CONVERTER",
        "exception.class.name": "org.apache.kafka.connect.errors.DataException",
        "exception.message": "not JSON",
        "exception.stacktrace": "org.apache...\n\tat x",
    }
    for connector in ("sink", "other"):
        told = {**about, "connector.name": connector}
        headers = [(f"__connect.errors.{key}", value) for key, value in told.items()]
        producer.produce(queue, b"\xff", "k", headers=headers)
    assert producer.flush(30) == 0
    sink = {"errors.deadletterqueue.topic.name": queue}
    connect = FakeConnect(
        connectors={
            "sink": FakeConnector(config={**sink}, type="sink"),
            "plain": FakeConnector(config={}, type="sink"),
        }
    )
    with serve(connect) as url:
        command = Pyconnect(tmp_path, url, kafka_broker.bootstrap_servers)
        outcome = command("connectors", "dlq", "sink", "--max", "10")
        document = json.loads(command("connectors", "dlq", "sink", "--max", "10", "-o", "json").out)
        without = command("connectors", "dlq", "plain")
    assert "orders:3@41" in outcome.out
    assert "DataException: not JSON" in " ".join(outcome.out.split())
    assert "left out: 1 record of other connectors" in outcome.err
    assert [record["error"]["exception.stacktrace"] for record in document] == [
        about["exception.stacktrace"]
    ]
    assert (without.code, "has no dead letter queue" in without.err) == (9, True)


def test_a_sink_would_get_the_newest_records_of_a_topic(
    kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """A trial of a sink reads without a consumer group and does not write the sink's file."""
    topic, name = unique_name("lines"), unique_name("tried")
    bootstrap = kafka_broker.bootstrap_servers
    create_topics(bootstrap, [topic])
    produce(bootstrap, topic, b'"a"', b'"b"', b'"c"')
    written = tmp_path / "out.txt"
    file = tmp_path / "sink.json"
    file.write_text(json.dumps({"name": name, "config": sink_config(written, topic)}))
    command = ["-m", "pyconnect_cli", "connectors", "try", str(file), "-n", "2", "-o", "json"]
    done = subprocess.run(
        [sys.executable, *command, "--topic", topic, "--kafka-bootstrap", bootstrap],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    # The record has no envelope with a schema, which the converter of Kafka's own files expects.
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 of 2 records fail" in done.stderr
    found = json.loads(done.stdout)["records"]
    assert [step["step"] for each in found for step in each["steps"]] == ["JsonConverter"] * 2
    assert not written.exists()
    groups = AdminClient({"bootstrap.servers": bootstrap}).list_consumer_groups().result()
    assert not [each.group_id for each in groups.valid if name in each.group_id]
