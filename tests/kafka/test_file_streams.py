"""FileStream connectors in child processes, with a real broker.

Further tests have sinks whose topics match a pattern, or are deleted and created again.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from tests.support.agents.file_stream import (
    LINES,
    FileStreams,
    lines_of,
    source_is_done,
    write_lines,
)
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import children_world
from tests.support.plugins.sources import STAMPED_SOURCE, TIMESTAMP_MS
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.otlp_collector import otlp_collector
from tests.support.servers.topics import create_topics, produce

pytestmark = pytest.mark.kafka


async def test_a_killed_sink_resumes_at_its_committed_offset(
    streams: FileStreams, tmp_path: Path
) -> None:
    """The new task appends only what was not committed."""
    sink_file = tmp_path / "out"

    async with children_world(streams.properties()) as w:
        streams.produce(b"one", b"two")
        config = streams.sink(sink_file, consumer_override_session_timeout_ms="6000")
        sink = w.start_task(config)
        await eventually_async(lambda: streams.committed() == 2)
        os.kill(w.pid(sink), signal.SIGKILL)
        await w.task_is(sink, State.FAILED)
        streams.produce(b"three")
        w.children.tasks.start(sink, config, config, TargetState.STARTED)
        await eventually_async(lambda: sink_file.read_text() == "one\ntwo\nthree\n")
        await eventually_async(lambda: streams.committed() == 3)


async def test_a_paused_sink_delivers_nothing_until_it_is_resumed(
    streams: FileStreams, tmp_path: Path
) -> None:
    """The sink keeps its membership, so that the resume needs no new assignment."""
    sink_file = tmp_path / "out"

    async with children_world(streams.properties()) as w:
        streams.produce(b"one")
        sink = w.start_task(streams.sink(sink_file))
        await eventually_async(lambda: streams.committed() == 1)
        w.children.tasks.set_target_state(sink, TargetState.PAUSED)
        await w.task_is(sink, State.PAUSED)
        streams.produce(b"two")
        assert sink_file.read_text() == "one\n"
        w.children.tasks.set_target_state(sink, TargetState.STARTED)
        await w.task_is(sink, State.RUNNING)
        await eventually_async(lambda: sink_file.read_text() == "one\ntwo\n")


async def test_two_tasks_of_a_sink_share_the_partitions(
    kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """A rebalance closes and opens partitions; every line arrives once in a quiet topic."""
    streams = FileStreams(kafka_broker.bootstrap_servers, partitions=4)
    sink_file = tmp_path / "out"

    async with children_world(streams.properties()) as w:
        config = streams.sink(
            sink_file, tasks_max="2", consumer_override_heartbeat_interval_ms="300"
        )
        first = w.start_task(config)
        streams.produce(*(b"a%d" % number for number in range(100)))
        await eventually_async(lambda: len(lines_of(sink_file)) == 100)
        second = ConnectorTaskId(first.connector, 1)
        w.children.tasks.start(second, config, config, TargetState.STARTED)
        await w.task_is(second, State.RUNNING)
        await eventually_async(lambda: members(streams) == 2)
        streams.produce(*(b"b%d" % number for number in range(100)))
        await eventually_async(lambda: len(lines_of(sink_file)) >= 200)
        await w.children.stop()
        wanted = {f"{letter}{number}" for letter in "ab" for number in range(100)}
        assert sorted(lines_of(sink_file)) == sorted(wanted)


def members(streams: FileStreams) -> int:
    """Return the number of members of the sink's group that have partitions."""
    admin = AdminClient({"bootstrap.servers": streams.bootstrap_servers})
    group = f"connect-{streams.sink_name}"
    described = admin.describe_consumer_groups([group])[group].result()
    return sum(1 for member in described.members if member.assignment.topic_partitions)


async def test_a_pattern_must_match_the_whole_topic_name(
    streams: FileStreams, tmp_path: Path
) -> None:
    """A topic that only begins like the pattern is not consumed."""
    sink_file = tmp_path / "out"
    longer = streams.topic + "-more"
    create_topics(streams.bootstrap_servers, [longer])
    streams.produce(b"wanted")
    produce(streams.bootstrap_servers, longer, b"unwanted")

    async with children_world(streams.properties()) as w:
        config = {k: v for k, v in streams.sink(sink_file).items() if k != "topics"}
        sink = w.start_task({**config, "topics.regex": streams.topic})
        await eventually_async(lambda: streams.committed() == 1)
        assert sink_file.read_text() == "wanted\n"
        await eventually_async(lambda: w.listener.topics == [(sink, streams.topic)])


async def test_undecodable_records_fail_a_sink_or_are_skipped(
    streams: FileStreams, tmp_path: Path
) -> None:
    """A skipped record advances the committed offset."""
    sink_file = tmp_path / "out"
    streams.produce(b'"good"', b"{bad", b'"better"')
    json = {
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }

    async with children_world(streams.properties()) as w:
        sink = w.start_task({**streams.sink(sink_file), **json})
        await w.task_is(sink, State.FAILED)
        trace = w.listener.task_trace(sink)
        assert "Tolerance exceeded in error handler" in trace
        assert "DataException" in trace
    async with children_world(streams.properties()) as w:
        sink = w.start_task({**streams.sink(sink_file), **json, "errors.tolerance": "all"})
        await eventually_async(lambda: streams.committed() == 3)
        assert sink_file.read_text().splitlines()[-2:] == ["good", "better"]


async def test_an_unwritable_file_fails_the_sink(streams: FileStreams, tmp_path: Path) -> None:
    """The trace of the failed sink names the file."""
    async with children_world(streams.properties()) as w:
        sink = w.start_task(streams.sink(tmp_path / "no" / "such" / "directory"))
        await w.task_is(sink, State.FAILED)
        trace = w.listener.task_trace(sink)
        assert "Couldn't find or create file" in trace
        assert "for FileStreamSinkTask" in trace


async def test_a_sink_can_begin_at_the_age_of_records(
    streams: FileStreams, tmp_path: Path, kafka_broker: SharedBroker
) -> None:
    """A sink can begin at the age of records, as a Java consumer since Kafka 4.0 (KIP-1106)."""
    sink_file = tmp_path / "out"
    now_ms = round(time.time() * 1000)
    for age_h, line in ((3, b"old"), (2, b"older than the limit"), (0, b"new")):
        produce(
            kafka_broker.bootstrap_servers,
            streams.topic,
            line,
            timestamp=now_ms - age_h * 3_600_000,
        )

    async with children_world(streams.properties()) as w:
        reset = "by_duration:PT1H"
        w.start_task(streams.sink(sink_file, consumer_override_auto_offset_reset=reset))
        await eventually_async(lambda: streams.committed() == 3)
        streams.produce(b"newest")
        await eventually_async(lambda: sink_file.read_text() == "new\nnewest\n")


async def test_a_file_goes_through_kafka_byte_by_byte(streams: FileStreams, tmp_path: Path) -> None:
    """Both connectors copy every byte, commit offsets, track topics, and end in order.

    A collector gets a span of one record in a thousand of each.
    """
    source_file, sink_file = tmp_path / "in", tmp_path / "out"
    write_lines(source_file)

    with otlp_collector() as collector:
        tracing = {"agent.tracing.otlp.endpoint": collector.url}
        await run_both(source_file, sink_file, streams, tracing)
    names = Counter(span["name"] for span in collector.spans)
    sampled = -(-LINES // 1000)
    assert names == {f"send {streams.topic}": sampled, f"process {streams.topic}": sampled}
    assert sink_file.read_bytes() == source_file.read_bytes()


async def run_both(
    source_file: Path, sink_file: Path, streams: FileStreams, tracing: Mapping[str, str]
) -> None:
    """Run source and sink until the sink's file has all lines."""
    async with children_world({**streams.properties(), **tracing}) as w:
        source = w.start_task(streams.source(source_file))
        sink = w.start_task(streams.sink(sink_file))
        await w.task_is(source, State.RUNNING)
        await w.task_is(sink, State.RUNNING)
        await source_is_done(w, streams, source_file)
        await eventually_async(lambda: sink_file.stat().st_size == source_file.stat().st_size, 30)
        await eventually_async(lambda: streams.committed() == LINES)
        used = {(source, streams.topic), (sink, streams.topic)}
        await eventually_async(lambda: set(w.listener.topics) == used)
        await w.children.stop()
        assert w.listener.task_states(source) == [State.RUNNING, State.UNASSIGNED]
        assert w.listener.task_states(sink) == [State.RUNNING, State.UNASSIGNED]


async def test_timestamp_and_headers_of_a_record_reach_the_topic(streams: FileStreams) -> None:
    """The broker stores the timestamp and the headers of the record."""
    config = {
        **streams.source(Path("unused")),
        "connector.class": STAMPED_SOURCE,
        "header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
    }

    async with children_world(streams.properties()) as w:
        task = await w.running_task(config)
        await eventually_async(lambda: streams.values() == [b"v"])
        (message,) = streams.records()
        assert message.timestamp()[1] == TIMESTAMP_MS
        assert message.headers() == [("origin", b"test")]
        assert w.listener.task_states(task) == [State.RUNNING]


async def test_a_killed_source_resumes_at_the_committed_offset(
    streams: FileStreams, tmp_path: Path
) -> None:
    """No committed record is sent twice, and no record is lost."""
    source_file = tmp_path / "in"
    write_lines(source_file, 1_000)

    async with children_world(streams.properties()) as w:
        config = streams.source(source_file)
        source = w.start_task(config)
        await source_is_done(w, streams, source_file)
        os.kill(w.pid(source), signal.SIGKILL)
        await w.task_is(source, State.FAILED)
        assert "SIGKILL" in w.listener.task_trace(source)
        write_lines(source_file, 500, 1_000)
        w.children.tasks.start(source, config, config, TargetState.STARTED)
        await source_is_done(w, streams, source_file)
    assert b"\n".join(streams.values()) + b"\n" == source_file.read_bytes()


async def test_a_source_killed_in_the_middle_loses_nothing(
    streams: FileStreams, tmp_path: Path
) -> None:
    """With at-least-once delivery every line arrives, some perhaps twice."""
    source_file = tmp_path / "in"
    write_lines(source_file, 300_000)

    async with children_world(streams.properties(offset_flush_interval_ms="20")) as w:
        config = streams.source(source_file)
        source = w.start_task(config)
        await eventually_async(lambda: w.store.entries)
        os.kill(w.pid(source), signal.SIGKILL)
        await w.task_is(source, State.FAILED)
        assert w.store.entries[streams.offset_key(source_file)] != (
            b'{"position":%d}' % source_file.stat().st_size
        )
        w.children.tasks.start(source, config, config, TargetState.STARTED)
        await source_is_done(w, streams, source_file)
    assert set(streams.values()) == set(source_file.read_bytes().splitlines())


async def test_a_stopped_source_has_committed_its_sent_records(
    streams: FileStreams, tmp_path: Path
) -> None:
    """The final commit covers every acknowledged record, whatever the commit interval."""
    source_file = tmp_path / "in"
    write_lines(source_file, 100)

    async with children_world(streams.properties(offset_flush_interval_ms="3600000")) as w:
        source = w.start_task(streams.source(source_file))
        await eventually_async(lambda: w.listener.topics)
        assert w.store.entries == {}
        await w.children.tasks.stop([source])
        assert w.listener.task_states(source)[-1] is State.UNASSIGNED
        await source_is_done(w, streams, source_file)


async def test_an_oversized_record_fails_the_task_by_name_and_size(
    streams: FileStreams, tmp_path: Path
) -> None:
    """An oversized record fails the task asynchronously, and earlier records are committed."""
    source_file = tmp_path / "in"
    source_file.write_bytes(b"small\n" + b"x" * 2_000_000 + b"\n")

    async with children_world(streams.properties()) as w:
        source = w.start_task(streams.source(source_file))
        await w.task_is(source, State.FAILED)
        trace = w.listener.task_trace(source)
        assert "Unrecoverable exception from producer send callback" in trace
        assert f"2000000 bytes (key, value and headers) for topic '{streams.topic}'" in trace
        assert w.store.entries == {streams.offset_key(source_file): b'{"position":6}'}


async def test_an_oversized_record_is_skipped_when_errors_are_tolerated(
    streams: FileStreams, tmp_path: Path
) -> None:
    """With errors.tolerance=all the task goes on behind an oversized record."""
    source_file = tmp_path / "in"
    source_file.write_bytes(b"small\n" + b"x" * 2_000_000 + b"\nlast\n")

    async with children_world(streams.properties()) as w:
        w.start_task(streams.source(source_file, errors_tolerance="all"))
        await source_is_done(w, streams, source_file)
    assert streams.values() == [b"small", b"last"]


class Topics:
    """Topics whose names begin with the same prefix."""

    def __init__(self, bootstrap_servers: str, prefix: str) -> None:
        self.bootstrap_servers, self.prefix = bootstrap_servers, prefix
        self.admin = AdminClient({"bootstrap.servers": bootstrap_servers})

    def create(self, *endings: str) -> None:
        create_topics(self.bootstrap_servers, [f"{self.prefix}{ending}" for ending in endings])

    def delete(self, ending: str) -> None:
        for future in self.admin.delete_topics([f"{self.prefix}{ending}"]).values():
            future.result()

    def produce(self, ending: str, value: str) -> None:
        produce(self.bootstrap_servers, f"{self.prefix}{ending}", value.encode())

    def sink(self, name: str, pattern: str, file: Path) -> dict[str, str]:
        return {
            "name": name,
            "connector.class": "FileStreamSink",
            "file": str(file),
            "topics.regex": pattern,
            "consumer.override.metadata.max.age.ms": "300",
        }


class SinkGroup:
    """The offsets that a sink's group has committed for partition 0 of each topic."""

    def __init__(self, bootstrap_servers: str, group_id: str) -> None:
        self._group_id = group_id
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers})

    def offset(self, topic: str) -> int:
        asked = ConsumerGroupTopicPartitions(self._group_id, [TopicPartition(topic, 0)])
        (future,) = self._admin.list_consumer_group_offsets([asked]).values()
        (found,) = future.result().topic_partitions
        return int(found.offset)


@pytest.fixture
def topics(kafka_broker: SharedBroker, unique_name: Callable[[str], str]) -> Topics:
    return Topics(kafka_broker.bootstrap_servers, unique_name("topics"))


def sorted_lines(path: Path) -> list[str]:
    return sorted(path.read_text().splitlines()) if path.exists() else []


async def test_a_pattern_has_javas_meaning(
    topics: Topics, unique_name: Callable[[str], str], tmp_path: Path
) -> None:
    """A pattern may have look-ahead and subtracted classes, which the client does not know."""
    topics.create("-a1", "-b2", "-x3", "-internal", "-a1-more")
    for ending in ("-a1", "-b2", "-x3", "-internal", "-a1-more"):
        topics.produce(ending, ending)
    file = tmp_path / "out"
    pattern = topics.prefix + r"-(?!internal)([\p{Lower}&&[^x]]\d|nothing)"

    properties = {"bootstrap.servers": topics.bootstrap_servers}
    async with children_world(properties) as w:
        w.start_task(topics.sink(unique_name("sink"), pattern, file))
        await eventually_async(lambda: len(sorted_lines(file)) == 2)
        await w.children.stop()
    assert sorted_lines(file) == ["-a1", "-b2"]


async def test_topics_that_come_and_go_are_followed(
    topics: Topics, unique_name: Callable[[str], str], tmp_path: Path
) -> None:
    """A sink of a pattern follows topics that come and go, without a new task."""
    file = tmp_path / "out"

    properties = {"bootstrap.servers": topics.bootstrap_servers}
    async with children_world(properties) as w:
        sink = await w.running_task(topics.sink(unique_name("sink"), topics.prefix + ".*", file))
        topics.create("-a")
        topics.produce("-a", "a1")
        await eventually_async(lambda: sorted_lines(file) == ["a1"])
        topics.create("-b")
        topics.produce("-b", "b1")
        await eventually_async(lambda: sorted_lines(file) == ["a1", "b1"])
        topics.delete("-a")
        topics.produce("-b", "b2")
        await eventually_async(lambda: sorted_lines(file) == ["a1", "b1", "b2"])
        await w.children.stop()
        assert w.listener.task_states(sink) == [State.RUNNING, State.UNASSIGNED]


async def test_a_topic_of_a_list_may_be_deleted_and_come_back(
    topics: Topics, unique_name: Callable[[str], str], tmp_path: Path
) -> None:
    """A deleted topic that is created again is read from its beginning, while others go on."""
    file = tmp_path / "out"
    connector = unique_name("sink")
    config = topics.sink(connector, "", file)
    del config["topics.regex"]
    config["topics"] = f"{topics.prefix}-a,{topics.prefix}-b"
    topics.create("-a", "-b")
    for value in ("a1", "a2", "a3"):
        topics.produce("-a", value)
    committed = SinkGroup(topics.bootstrap_servers, f"connect-{connector}")

    properties = {"bootstrap.servers": topics.bootstrap_servers, "offset.flush.interval.ms": "300"}
    async with children_world(properties) as w:
        sink = w.start_task(config)
        await eventually_async(lambda: sorted_lines(file) == ["a1", "a2", "a3"])
        await eventually_async(lambda: committed.offset(f"{topics.prefix}-a") == 3)
        topics.delete("-a")
        topics.produce("-b", "b1")
        await eventually_async(lambda: sorted_lines(file) == ["a1", "a2", "a3", "b1"])
        await eventually_async(lambda: committed.offset(f"{topics.prefix}-b") == 1)
        topics.create("-a")
        topics.produce("-a", "a4")
        await eventually_async(lambda: sorted_lines(file) == ["a1", "a2", "a3", "a4", "b1"])
        await eventually_async(lambda: committed.offset(f"{topics.prefix}-a") == 1)
        await w.children.stop()
        assert w.listener.task_states(sink) == [State.RUNNING, State.UNASSIGNED]
