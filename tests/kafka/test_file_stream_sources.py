"""FileStreamSource in child processes, with a real broker."""

import os
import signal
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from pyconnect_agent.core.ids import State, TargetState
from tests.support.agents.file_stream import LINES, FileStreams, source_is_done, write_lines
from tests.support.eventually import eventually_async
from tests.support.fakes.children_world import children_world
from tests.support.plugins.sources import STAMPED_SOURCE, TIMESTAMP_MS
from tests.support.servers.otlp_collector import otlp_collector

pytestmark = pytest.mark.kafka


async def test_a_file_goes_through_kafka_byte_by_byte(streams: FileStreams, tmp_path: Path) -> None:
    """Source and sink run, offsets are committed, topics are tracked, and both end in order.

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
    """Run source and sink until all lines are in the sink's file."""
    async with children_world({**streams.properties(), **tracing}) as w:
        source = await w.run_task(streams.source(source_file))
        sink = await w.run_task(streams.sink(sink_file))
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
        task = await w.run_task(config)
        await w.task_is(task, State.RUNNING)
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
        source = await w.run_task(config)
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
    """At-least-once: every line arrives, some perhaps twice, none out of reach."""
    source_file = tmp_path / "in"
    write_lines(source_file, 300_000)

    async with children_world(streams.properties(offset_flush_interval_ms="20")) as w:
        config = streams.source(source_file)
        source = await w.run_task(config)
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
    """The final commit covers every acknowledged record, whatever the interval."""
    source_file = tmp_path / "in"
    write_lines(source_file, 100)

    async with children_world(streams.properties(offset_flush_interval_ms="3600000")) as w:
        source = await w.run_task(streams.source(source_file))
        await eventually_async(lambda: w.listener.topics)
        assert w.store.entries == {}
        await w.children.tasks.stop([source])
        assert w.listener.task_states(source)[-1] is State.UNASSIGNED
        await source_is_done(w, streams, source_file)


async def test_an_oversized_record_fails_the_task_by_name_and_size(
    streams: FileStreams, tmp_path: Path
) -> None:
    """As with Java's producer it is an asynchronous failure; what came before is committed."""
    source_file = tmp_path / "in"
    source_file.write_bytes(b"small\n" + b"x" * 2_000_000 + b"\n")

    async with children_world(streams.properties()) as w:
        source = await w.run_task(streams.source(source_file))
        await w.task_is(source, State.FAILED)
        trace = w.listener.task_trace(source)
        assert "Unrecoverable exception from producer send callback" in trace
        assert f"2000000 bytes (key, value and headers) for topic '{streams.topic}'" in trace
        assert w.store.entries == {streams.offset_key(source_file): b'{"position":6}'}


async def test_an_oversized_record_is_skipped_when_errors_are_tolerated(
    streams: FileStreams, tmp_path: Path
) -> None:
    """The task goes on behind it."""
    source_file = tmp_path / "in"
    source_file.write_bytes(b"small\n" + b"x" * 2_000_000 + b"\nlast\n")

    async with children_world(streams.properties()) as w:
        await w.run_task(streams.source(source_file, errors_tolerance="all"))
        await source_is_done(w, streams, source_file)
    assert streams.values() == [b"small", b"last"]
