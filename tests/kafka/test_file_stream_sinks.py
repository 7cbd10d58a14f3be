"""FileStreamSink in child processes, with a real broker."""

import os
import signal
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from tests.support.agents.file_stream import FileStreams, lines_of
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import children_world
from tests.support.servers.kafka import SharedBroker
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
        sink = await w.run_task(config)
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
    """It keeps its membership: the resume needs no new assignment."""
    sink_file = tmp_path / "out"

    async with children_world(streams.properties()) as w:
        streams.produce(b"one")
        sink = await w.run_task(streams.sink(sink_file))
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
            sink_file,
            tasks_max="2",
            consumer_override_heartbeat_interval_ms="300",
        )
        first = await w.run_task(config)
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
    """Members of the sink's group that have partitions."""
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
        sink = await w.run_task({**config, "topics.regex": streams.topic})
        await eventually_async(lambda: streams.committed() == 1)
        assert sink_file.read_text() == "wanted\n"
        await eventually_async(lambda: w.listener.topics == [(sink, streams.topic)])


async def test_undecodable_records_fail_a_sink_or_are_skipped(
    streams: FileStreams, tmp_path: Path
) -> None:
    """Skipped records advance the committed offset."""
    sink_file = tmp_path / "out"
    streams.produce(b'"good"', b"{bad", b'"better"')
    json = {
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }

    async with children_world(streams.properties()) as w:
        sink = await w.run_task({**streams.sink(sink_file), **json})
        await w.task_is(sink, State.FAILED)
        trace = w.listener.task_trace(sink)
        assert "Tolerance exceeded in error handler" in trace
        assert "DataException" in trace
    async with children_world(streams.properties()) as w:
        sink = await w.run_task({**streams.sink(sink_file), **json, "errors.tolerance": "all"})
        await eventually_async(lambda: streams.committed() == 3)
        assert sink_file.read_text().splitlines()[-2:] == ["good", "better"]


async def test_an_unwritable_file_fails_the_sink(streams: FileStreams, tmp_path: Path) -> None:
    """The text names the file."""
    async with children_world(streams.properties()) as w:
        sink = await w.run_task(streams.sink(tmp_path / "no" / "such" / "directory"))
        await w.task_is(sink, State.FAILED)
        trace = w.listener.task_trace(sink)
        assert "Couldn't find or create file" in trace
        assert "for FileStreamSinkTask" in trace


async def test_a_sink_can_begin_at_the_age_of_records(
    streams: FileStreams, tmp_path: Path, kafka_broker: SharedBroker
) -> None:
    """As a consumer of Java does since Kafka 4.0 (KIP-1106); later records follow."""
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
        await w.run_task(streams.sink(sink_file, consumer_override_auto_offset_reset=reset))
        await eventually_async(lambda: streams.committed() == 3)
        streams.produce(b"newest")
        await eventually_async(lambda: sink_file.read_text() == "new\nnewest\n")
