"""FileStreamSource and FileStreamSink in child processes, with a real broker."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from tests.support.children_world import ChildrenWorld, children_world, run
from tests.support.eventually import eventually_async
from tests.support.kafka import SharedBroker
from tests.support.stamped_source import STAMPED_SOURCE, TIMESTAMP_MS

pytestmark = pytest.mark.kafka

LINES = 20_000


class Kafka:
    """Names of one test, and looks into its topic."""

    def __init__(self, bootstrap_servers: str, unique_name: Callable[[str], str]) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.topic = unique_name("lines")
        self.source_name = unique_name("source")
        self.sink_name = unique_name("sink")
        admin = AdminClient({"bootstrap.servers": bootstrap_servers})
        for future in admin.create_topics([NewTopic(self.topic, 1, 1)]).values():
            future.result()

    def properties(self, **settings: str) -> Mapping[str, str]:
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "offset.flush.interval.ms": "200",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }

    def source(self, file: Path, **settings: str) -> Mapping[str, str]:
        return {
            "name": self.source_name,
            "connector.class": "FileStreamSource",
            "file": str(file),
            "topic": self.topic,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }

    def sink(self, file: Path, **settings: str) -> Mapping[str, str]:
        return {
            "name": self.sink_name,
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "file": str(file),
            "topics": self.topic,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }

    def produce(self, *values: bytes) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap_servers})
        for value in values:
            producer.produce(self.topic, value)
        assert producer.flush(30) == 0

    def values(self) -> list[bytes]:
        """Everything in the topic."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": "reader",
                "enable.auto.commit": False,
            }
        )
        try:
            end = consumer.get_watermark_offsets(ClientPartition(self.topic, 0), timeout=10)[1]
            consumer.assign([ClientPartition(self.topic, 0, 0)])
            values: list[bytes] = []
            while len(values) < end:
                for message in consumer.consume(5_000, 10):
                    assert message.error() is None
                    values.append(message.value() or b"")
            return values
        finally:
            consumer.close()

    def first(self) -> Message:
        """The first record of the topic."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap_servers, "group.id": "reader"})
        try:
            consumer.assign([ClientPartition(self.topic, 0, 0)])
            (message,) = consumer.consume(1, 10)
            return message
        finally:
            consumer.close()

    def committed(self) -> int:
        """The sink's committed offset; negative when there is none."""
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap_servers, "group.id": f"connect-{self.sink_name}"}
        )
        try:
            return int(consumer.committed([ClientPartition(self.topic, 0)], timeout=10)[0].offset)
        except KafkaException:
            return -1
        finally:
            consumer.close()

    def offset_key(self, file: Path) -> bytes:
        return f'["{self.source_name}",{{"filename":"{file}"}}]'.encode()


@pytest.fixture
def kafka(kafka_broker: SharedBroker, unique_name: Callable[[str], str]) -> Kafka:
    return Kafka(kafka_broker.bootstrap_servers, unique_name)


def write_lines(path: Path, count: int = LINES, start: int = 0) -> None:
    with path.open("a") as out:
        out.writelines(f"{number} ä {'x' * 50}\n" for number in range(start, start + count))


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


async def source_is_done(w: ChildrenWorld, kafka: Kafka, file: Path) -> None:
    """The committed offset is the file's size."""
    expected = b'{"position":%d}' % file.stat().st_size
    await eventually_async(
        lambda: w.store.entries.get(kafka.offset_key(file)) == expected,
        30,
        describe=lambda: (w.store.entries, w.listener.tasks),
    )


def test_a_file_goes_through_kafka_byte_by_byte(kafka: Kafka, tmp_path: Path) -> None:
    """Source and sink run, offsets are committed, topics are tracked, and both end in order."""
    source_file, sink_file = tmp_path / "in", tmp_path / "out"
    write_lines(source_file)

    async def scenario() -> None:
        async with children_world(kafka.properties()) as w:
            source = await w.run_task(kafka.source(source_file))
            sink = await w.run_task(kafka.sink(sink_file))
            await w.task_is(source, State.RUNNING)
            await w.task_is(sink, State.RUNNING)
            await source_is_done(w, kafka, source_file)
            await eventually_async(
                lambda: sink_file.stat().st_size == source_file.stat().st_size, 30
            )
            await eventually_async(lambda: kafka.committed() == LINES, 30)
            assert set(w.listener.topics) == {(source, kafka.topic), (sink, kafka.topic)}
            await w.children.stop()
            assert w.listener.task_states(source) == [State.RUNNING, State.UNASSIGNED]
            assert w.listener.task_states(sink) == [State.RUNNING, State.UNASSIGNED]
        assert sink_file.read_bytes() == source_file.read_bytes()

    run(scenario)


def test_timestamp_and_headers_of_a_record_reach_the_topic(kafka: Kafka) -> None:
    """What the record carries is what the broker stores."""
    config = {
        **kafka.source(Path("unused")),
        "connector.class": STAMPED_SOURCE,
        "header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
    }

    async def scenario() -> None:
        async with children_world(kafka.properties()) as w:
            task = await w.run_task(config)
            await w.task_is(task, State.RUNNING)
            await eventually_async(lambda: kafka.values() == [b"v"], 30)
            message = kafka.first()
            assert message.timestamp()[1] == TIMESTAMP_MS
            assert message.headers() == [("origin", b"test")]
            assert w.listener.task_states(task) == [State.RUNNING]

    run(scenario)


def test_a_killed_source_resumes_at_the_committed_offset(kafka: Kafka, tmp_path: Path) -> None:
    """Nothing committed is sent twice, and nothing is lost."""
    source_file = tmp_path / "in"
    write_lines(source_file, 1_000)

    async def scenario() -> None:
        async with children_world(kafka.properties()) as w:
            config = kafka.source(source_file)
            source = await w.run_task(config)
            await source_is_done(w, kafka, source_file)
            os.kill(w.pid(source), signal.SIGKILL)
            await w.task_is(source, State.FAILED)
            assert "SIGKILL" in w.listener.task_trace(source)
            write_lines(source_file, 500, 1_000)
            w.children.start_task(source, config, config, TargetState.STARTED)
            await source_is_done(w, kafka, source_file)
        assert b"\n".join(kafka.values()) + b"\n" == source_file.read_bytes()

    run(scenario)


def test_a_source_killed_in_the_middle_loses_nothing(kafka: Kafka, tmp_path: Path) -> None:
    """At-least-once: every line arrives, some perhaps twice, none out of reach."""
    source_file = tmp_path / "in"
    write_lines(source_file, 300_000)

    async def scenario() -> None:
        async with children_world(kafka.properties(offset_flush_interval_ms="20")) as w:
            config = kafka.source(source_file)
            source = await w.run_task(config)
            await eventually_async(lambda: w.store.entries, 30)
            os.kill(w.pid(source), signal.SIGKILL)
            await w.task_is(source, State.FAILED)
            assert w.store.entries[kafka.offset_key(source_file)] != (
                b'{"position":%d}' % source_file.stat().st_size
            )
            w.children.start_task(source, config, config, TargetState.STARTED)
            await source_is_done(w, kafka, source_file)
        assert set(kafka.values()) == set(source_file.read_bytes().splitlines())

    run(scenario)


def test_a_stopped_source_has_committed_what_it_sent(kafka: Kafka, tmp_path: Path) -> None:
    """The final commit covers every acknowledged record, whatever the interval."""
    source_file = tmp_path / "in"
    write_lines(source_file, 100)

    async def scenario() -> None:
        async with children_world(kafka.properties(offset_flush_interval_ms="3600000")) as w:
            source = await w.run_task(kafka.source(source_file))
            await eventually_async(lambda: w.listener.topics, 30)
            assert w.store.entries == {}
            await w.children.stop_tasks([source])
            assert w.listener.task_states(source)[-1] is State.UNASSIGNED
            await source_is_done(w, kafka, source_file)

    run(scenario)


def test_a_killed_sink_resumes_at_its_committed_offset(kafka: Kafka, tmp_path: Path) -> None:
    """The new task appends only what was not committed."""
    sink_file = tmp_path / "out"

    async def scenario() -> None:
        async with children_world(kafka.properties()) as w:
            kafka.produce(b"one", b"two")
            config = kafka.sink(sink_file, consumer_override_session_timeout_ms="6000")
            sink = await w.run_task(config)
            await eventually_async(lambda: kafka.committed() == 2, 30)
            os.kill(w.pid(sink), signal.SIGKILL)
            await w.task_is(sink, State.FAILED)
            kafka.produce(b"three")
            w.children.start_task(sink, config, config, TargetState.STARTED)
            await eventually_async(lambda: sink_file.read_text() == "one\ntwo\nthree\n", 40)
            await eventually_async(lambda: kafka.committed() == 3, 30)

    run(scenario)


def test_a_paused_sink_delivers_nothing_until_it_is_resumed(kafka: Kafka, tmp_path: Path) -> None:
    """It keeps its membership: the resume needs no new assignment."""
    sink_file = tmp_path / "out"

    async def scenario() -> None:
        async with children_world(kafka.properties()) as w:
            kafka.produce(b"one")
            sink = await w.run_task(kafka.sink(sink_file))
            await eventually_async(lambda: kafka.committed() == 1, 30)
            w.children.set_task_target_state(sink, TargetState.PAUSED)
            await w.task_is(sink, State.PAUSED)
            kafka.produce(b"two")
            assert sink_file.read_text() == "one\n"
            w.children.set_task_target_state(sink, TargetState.STARTED)
            await w.task_is(sink, State.RUNNING)
            await eventually_async(lambda: sink_file.read_text() == "one\ntwo\n", 30)

    run(scenario)


def test_two_tasks_of_a_sink_share_the_partitions(
    kafka_broker: SharedBroker, unique_name: Callable[[str], str], tmp_path: Path
) -> None:
    """A rebalance closes and opens partitions; every line arrives once in a quiet topic."""
    kafka = Kafka(kafka_broker.bootstrap_servers, unique_name)
    topic = unique_name("wide")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for future in admin.create_topics([NewTopic(topic, 4, 1)]).values():
        future.result()
    kafka.topic = topic
    sink_file = tmp_path / "out"

    async def scenario() -> None:
        async with children_world(kafka.properties()) as w:
            config = kafka.sink(
                sink_file,
                tasks_max="2",
                consumer_override_heartbeat_interval_ms="300",
            )
            first = await w.run_task(config)
            kafka.produce(*(b"a%d" % number for number in range(100)))
            await eventually_async(lambda: len(lines_of(sink_file)) == 100, 30)
            second = ConnectorTaskId(first.connector, 1)
            w.children.start_task(second, config, config, TargetState.STARTED)
            await w.task_is(second, State.RUNNING)
            await eventually_async(lambda: members(kafka) == 2, 30)
            kafka.produce(*(b"b%d" % number for number in range(100)))
            await eventually_async(lambda: len(lines_of(sink_file)) >= 200, 30)
            await w.children.stop()
            wanted = {f"{letter}{number}" for letter in "ab" for number in range(100)}
            assert sorted(lines_of(sink_file)) == sorted(wanted)

    run(scenario)


def members(kafka: Kafka) -> int:
    """Members of the sink's group that have partitions."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    group = f"connect-{kafka.sink_name}"
    described = admin.describe_consumer_groups([group])[group].result()
    return sum(1 for member in described.members if member.assignment.topic_partitions)


def test_a_pattern_must_match_the_whole_topic_name(kafka: Kafka, tmp_path: Path) -> None:
    """A topic that only begins like the pattern is not consumed."""
    sink_file = tmp_path / "out"
    longer = kafka.topic + "-more"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for future in admin.create_topics([NewTopic(longer, 1, 1)]).values():
        future.result()
    kafka.produce(b"wanted")
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(longer, b"unwanted")
    assert producer.flush(30) == 0

    async def scenario() -> None:
        async with children_world(kafka.properties()) as w:
            config = {k: v for k, v in kafka.sink(sink_file).items() if k != "topics"}
            sink = await w.run_task({**config, "topics.regex": kafka.topic})
            await eventually_async(lambda: kafka.committed() == 1, 30)
            assert sink_file.read_text() == "wanted\n"
            assert w.listener.topics == [(sink, kafka.topic)]

    run(scenario)


def test_an_oversized_record_fails_the_task_by_name_and_size(kafka: Kafka, tmp_path: Path) -> None:
    """As with Java's producer it is an asynchronous failure; what came before is committed."""
    source_file = tmp_path / "in"
    source_file.write_bytes(b"small\n" + b"x" * 2_000_000 + b"\n")

    async def scenario() -> None:
        async with children_world(kafka.properties()) as w:
            source = await w.run_task(kafka.source(source_file))
            await w.task_is(source, State.FAILED, 30)
            trace = w.listener.task_trace(source)
            assert "Unrecoverable exception from producer send callback" in trace
            assert f"2000000 bytes (key, value and headers) for topic '{kafka.topic}'" in trace
            assert w.store.entries == {kafka.offset_key(source_file): b'{"position":6}'}

    run(scenario)


def test_an_oversized_record_is_skipped_when_errors_are_tolerated(
    kafka: Kafka, tmp_path: Path
) -> None:
    """The task goes on behind it."""
    source_file = tmp_path / "in"
    source_file.write_bytes(b"small\n" + b"x" * 2_000_000 + b"\nlast\n")

    async def scenario() -> None:
        async with children_world(kafka.properties()) as w:
            await w.run_task(kafka.source(source_file, errors_tolerance="all"))
            await source_is_done(w, kafka, source_file)
        assert kafka.values() == [b"small", b"last"]

    run(scenario)


def test_undecodable_records_fail_a_sink_or_are_skipped(kafka: Kafka, tmp_path: Path) -> None:
    """Skipped records advance the committed offset."""
    sink_file = tmp_path / "out"
    kafka.produce(b'"good"', b"{bad", b'"better"')
    json = {
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }

    async def scenario() -> None:
        async with children_world(kafka.properties()) as w:
            sink = await w.run_task({**kafka.sink(sink_file), **json})
            await w.task_is(sink, State.FAILED, 30)
            trace = w.listener.task_trace(sink)
            assert "Tolerance exceeded in error handler" in trace
            assert "DataException" in trace
        async with children_world(kafka.properties()) as w:
            sink = await w.run_task({**kafka.sink(sink_file), **json, "errors.tolerance": "all"})
            await eventually_async(lambda: kafka.committed() == 3, 30)
            assert sink_file.read_text().splitlines()[-2:] == ["good", "better"]

    run(scenario)


def test_an_unwritable_file_fails_the_sink(kafka: Kafka, tmp_path: Path) -> None:
    """The text names the file."""

    async def scenario() -> None:
        async with children_world(kafka.properties()) as w:
            sink = await w.run_task(kafka.sink(tmp_path / "no" / "such" / "directory"))
            await w.task_is(sink, State.FAILED, 30)
            trace = w.listener.task_trace(sink)
            assert "Couldn't find or create file" in trace
            assert "for FileStreamSinkTask" in trace

    run(scenario)
