"""Sinks and records that they cannot process, on a real broker: tolerance, queue, reporter."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message

from pyconnect_agent.core.ids import State
from tests.support.audits.sinks import REPORTING_SINK
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import children_world
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import committed_offset, create_topics, produce, read_topic

pytestmark = pytest.mark.kafka

SECRET = "hunter2"
JSON_VALUES = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


class Kafka:
    """A topic with one partition, a dead letter topic, and functions that read both."""

    def __init__(self, bootstrap_servers: str, unique_name: Callable[[str], str]) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.topic, self.queue = unique_name("in"), unique_name("dead")
        self.sink_name = unique_name("sink")
        create_topics(bootstrap_servers, [self.topic])
        self.properties = {
            "bootstrap.servers": bootstrap_servers,
            "offset.flush.interval.ms": "200",
        }

    def sink(self, file: Path, **settings: str) -> Mapping[str, str]:
        return {
            "name": self.sink_name,
            "connector.class": REPORTING_SINK,
            "file": str(file),
            "topics": self.topic,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }

    def queue_settings(self, **settings: str) -> dict[str, str]:
        """Return settings of a dead letter queue that a single broker can have."""
        given = {"topic_name": self.queue, "topic_replication_factor": "1", **settings}
        prefix = "errors.deadletterqueue."
        return {prefix + name.replace("_", "."): value for name, value in given.items()}

    def produce(self, *values: bytes, **arguments: Any) -> None:
        produce(self.bootstrap_servers, self.topic, *values, **arguments)

    def dead_letters(self) -> list[Message]:
        return read_topic(self.bootstrap_servers, self.queue)

    def committed(self) -> int:
        """Return the sink's committed offset; negative if there is none."""
        return committed_offset(self.bootstrap_servers, f"connect-{self.sink_name}", self.topic)


@pytest.fixture
def kafka(kafka_broker: SharedBroker, unique_name: Callable[[str], str]) -> Kafka:
    return Kafka(kafka_broker.bootstrap_servers, unique_name)


def headers_of(letter: Any) -> dict[str, str | None]:
    return {
        name.removeprefix("__connect.errors."): None if value is None else value.decode()
        for name, value in letter.headers() or ()
    }


async def test_poison_records_go_to_the_queue_in_order_with_their_context(
    kafka: Kafka, tmp_path: Path
) -> None:
    """Dead letters have the original bytes and timestamps, and other records are delivered."""
    file = tmp_path / "out"
    kafka.produce(b'"good"', key=b"k0")
    kafka.produce(b"{bad 1", key=b"\xff\x00", timestamp=1_234, headers=[("h", b"\x00")])
    kafka.produce(b"{bad 2")
    kafka.produce(b'"better"', b"{bad 3")
    config = {
        **kafka.sink(file, errors_tolerance="all"),
        **JSON_VALUES,
        **kafka.queue_settings(context_headers_enable="true"),
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    }

    async with children_world(kafka.properties) as w:
        sink = w.start_task(config)
        await eventually_async(lambda: kafka.committed() == 5)
        await w.children.stop()
        assert w.listener.task_states(sink) == [State.RUNNING, State.UNASSIGNED]
    assert file.read_text() == "good\nbetter\n"
    letters = kafka.dead_letters()
    assert [letter.value() for letter in letters] == [b"{bad 1", b"{bad 2", b"{bad 3"]
    first = letters[0]
    assert first.key() == b"\xff\x00"
    assert first.timestamp()[1] == 1_234
    assert first.headers()[0] == ("h", b"\x00")
    context = headers_of(first)
    trace = context.pop("exception.stacktrace")
    assert trace is not None
    assert trace.startswith("pyconnect_api.errors.DataException: ")
    assert context.pop("exception.message")
    assert context == {
        "h": "\x00",
        "topic": kafka.topic,
        "partition": "0",
        "offset": "1",
        "connector.name": kafka.sink_name,
        "task.id": "0",
        "stage": "VALUE_CONVERTER",
        "class.name": "pyconnect_agent.builtin.converters.json.JsonConverter",
        "exception.class.name": "pyconnect_api.errors.DataException",
    }
    assert [headers_of(letter)["offset"] for letter in letters] == ["1", "2", "4"]


async def test_a_failed_transformation_sends_the_record_as_it_was_consumed(
    kafka: Kafka, tmp_path: Path
) -> None:
    """A dead letter is the consumed record, not the result of an earlier transformation."""
    file = tmp_path / "out"
    kafka.produce(b"12", b"twelve", b"13")
    config = {
        **kafka.sink(file, errors_tolerance="all"),
        **kafka.queue_settings(),
        "transforms": "route,cast",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": ".*",
        "transforms.route.replacement": "elsewhere",
        "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.cast.spec": "int32",
    }

    async with children_world(kafka.properties) as w:
        w.start_task(config)
        await eventually_async(lambda: kafka.committed() == 3)
    assert file.read_text() == "12\n13\n"
    (letter,) = kafka.dead_letters()
    assert letter.value() == b"twelve"
    assert letter.headers() is None


async def test_a_failure_that_is_not_tolerated_is_in_the_queue_before_the_task_fails(
    kafka: Kafka, tmp_path: Path
) -> None:
    """A failure that is not tolerated is in the queue, and its error shows no value."""
    kafka.produce(b'"good"', b'{"password": "%s", }' % SECRET.encode())
    config = {**kafka.sink(tmp_path / "out"), **JSON_VALUES, **kafka.queue_settings()}

    async with children_world(kafka.properties) as w:
        sink = w.start_task(config)
        await w.task_is(sink, State.FAILED)
        trace = w.listener.task_trace(sink)
        assert "Tolerance exceeded in error handler\n" in trace
        assert f"topic '{kafka.topic}', partition 0, offset 1" in trace
        assert SECRET not in trace
    assert [letter.value() for letter in kafka.dead_letters()] == [b'{"password": "hunter2", }']
    assert kafka.committed() < 2


async def test_a_queue_that_cannot_be_created_fails_the_task(kafka: Kafka, tmp_path: Path) -> None:
    """A queue with more replicas than brokers fails the task."""
    config = {
        **kafka.sink(tmp_path / "out", errors_tolerance="all"),
        **kafka.queue_settings(topic_replication_factor="3"),
    }

    async with children_world(kafka.properties) as w:
        sink = w.start_task(config)
        await w.task_is(sink, State.FAILED)
        trace = w.listener.task_trace(sink)
        expected = f"Could not initialize dead letter queue with topic={kafka.queue}"
        assert trace.startswith(f"pyconnect_api.errors.ConnectException: {expected}\n")
        assert "eplication" in trace.partition("Caused by: ")[2]


async def test_a_queue_that_exists_is_used_as_it_is(kafka: Kafka, tmp_path: Path) -> None:
    """An existing queue is used, whatever the replication factor in the settings."""
    create_topics(kafka.bootstrap_servers, [kafka.queue])
    kafka.produce(b"{bad")
    config = {
        **kafka.sink(tmp_path / "out", errors_tolerance="all"),
        **JSON_VALUES,
        **kafka.queue_settings(topic_replication_factor="3"),
    }

    async with children_world(kafka.properties) as w:
        w.start_task(config)
        await eventually_async(lambda: kafka.committed() == 1)
    assert len(kafka.dead_letters()) == 1


@pytest.mark.parametrize("how", ["", "wait"])
async def test_a_reported_record_is_durable_before_its_offset_is_committed(
    kafka: Kafka, tmp_path: Path, how: str
) -> None:
    """A reported record is durable before the commit, whether task or worker waits for it."""
    file, notes = tmp_path / "out", tmp_path / "notes"
    values = [b"errant %d" % number if number % 2 else b"%d" % number for number in range(200)]
    kafka.produce(*values)
    config = {
        **kafka.sink(file, errors_tolerance="all", report=how, notes=str(notes)),
        **kafka.queue_settings(context_headers_enable="true"),
    }

    async with children_world(kafka.properties) as w:
        w.start_task(config)
        await eventually_async(lambda: kafka.committed() == 200)
    letters = kafka.dead_letters()
    assert [letter.value() for letter in letters] == values[1::2]
    context = headers_of(letters[0])
    assert context["stage"] == "TASK_PUT"
    assert context["class.name"] == "pyconnect_api.task.SinkTask"
    assert context["exception.class.name"] == "builtins.ValueError"
    assert context["exception.message"] == "no place for offset 1"
    assert file.read_text().splitlines() == [str(number) for number in range(0, 200, 2)]
    commits = [tuple(map(int, line.split())) for line in notes.read_text().splitlines()]
    assert commits[-1] == (200, 100, 0)
    assert all(
        reports >= offset // 2 and unfinished == 0 for offset, reports, unfinished in commits
    )


async def test_a_record_of_the_tasks_own_making_is_serialized(kafka: Kafka, tmp_path: Path) -> None:
    """The task's converters serialize a record that the task has made itself."""
    kafka.produce(b"errant")
    config = {
        **kafka.sink(tmp_path / "out", errors_tolerance="all", report="changed"),
        **kafka.queue_settings(),
    }

    async with children_world(kafka.properties) as w:
        w.start_task(config)
        await eventually_async(lambda: kafka.committed() == 1)
    (letter,) = kafka.dead_letters()
    assert (letter.key(), letter.value()) == (b"new key", b"new value")


@pytest.mark.parametrize("how", ["", "hide"])
async def test_a_report_fails_the_task_when_errors_are_not_tolerated(
    kafka: Kafka, tmp_path: Path, how: str
) -> None:
    """A report without tolerance fails the task, even if the task catches the error."""
    kafka.produce(b"good", b"errant")
    config = {**kafka.sink(tmp_path / "out", report=how), **kafka.queue_settings()}

    async with children_world(kafka.properties) as w:
        sink = w.start_task(config)
        await w.task_is(sink, State.FAILED)
        trace = w.listener.task_trace(sink)
        assert "Exiting WorkerSinkTask due to unrecoverable exception." in trace
        assert "Tolerance exceeded in error handler" in trace
        assert "no place for offset 1" in trace
    assert [letter.value() for letter in kafka.dead_letters()] == [b"errant"]
    assert kafka.committed() < 2
