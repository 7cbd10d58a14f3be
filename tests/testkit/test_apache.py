"""The connectors that test workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyconnect_api import (
    INT32_SCHEMA,
    INT64_SCHEMA,
    ConnectException,
    ExactlyOnceSupport,
    Struct,
    TopicPartition,
)
from pyconnect_api.testing import ConnectorHarness, ManualStop, SinkHarness, SourceHarness
from pyconnect_testkit.apache.mock import (
    MockSinkConnector,
    MockSinkTask,
    MockSourceConnector,
    MockSourceTask,
)
from pyconnect_testkit.apache.monitorable import (
    MonitorableSinkConnector,
    MonitorableSourceConnector,
    MonitorableSourceTask,
)
from pyconnect_testkit.apache.schema_source import (
    VALUE_SCHEMAS,
    SchemaSourceConnector,
    SchemaSourceTask,
)
from pyconnect_testkit.apache.throttle import Throttle
from pyconnect_testkit.apache.verifiable import VerifiableSinkConnector, VerifiableSourceConnector
from tests.support.eventually import eventually


def events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def without_time(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in event.items() if name != "time_ms"} for event in found]


def test_verifiable_source_numbers_its_records_and_reports_each(tmp_path: Path) -> None:
    """Key the task, value the number; a line when polled, another when acknowledged."""
    output = tmp_path / "events"
    props = {"name": "v", "topic": "t", "throughput": "-1", "output.file": str(output)}
    connector = ConnectorHarness(VerifiableSourceConnector, props)
    connector.start()
    assert [config["id"] for config in connector.task_configs(3)] == ["0", "1", "2"]
    source = connector.source(1, max_tasks=2)
    source.start()
    (first, _) = source.run(2)
    assert (first.key_schema, first.key) == (INT32_SCHEMA, 1)
    assert (first.value_schema, first.value) == (INT64_SCHEMA, 0)
    source.commit()
    source.restart()
    assert source.poll()[0].value == 2
    common = {"name": "v", "task": 1, "topic": "t"}
    assert without_time(events(output)) == [
        {**common, "seqno": 0},
        {**common, "seqno": 1},
        {**common, "seqno": 0, "committed": True},
        {**common, "seqno": 1, "committed": True},
        {**common, "seqno": 2},
    ]


def test_verifiable_source_can_put_all_it_knows_into_the_value() -> None:
    """A struct of name, task, topic, time and number."""
    props = {"name": "v", "topic": "t", "throughput": "-1", "complete.record.data": "true"}
    connector = ConnectorHarness(VerifiableSourceConnector, props)
    connector.start()
    source = connector.source()
    source.start()
    (record,) = source.poll()
    assert isinstance(record.value, Struct)
    assert (record.value.get("seqno"), record.value.get("name")) == (0, "v")


@pytest.mark.parametrize("name", ["throughput", "id"])
def test_a_number_that_is_none_fails_the_task(name: str) -> None:
    """With Apache's text."""
    connector = ConnectorHarness(VerifiableSourceConnector, {"topic": "t", "throughput": "1"})
    connector.start()
    source = connector.source()
    source.props[name] = "many"
    with pytest.raises(ConnectException, match="Invalid VerifiableSourceTask configuration"):
        source.start()


def test_verifiable_sink_reports_records_and_their_flush(tmp_path: Path) -> None:
    """A record is flushed once, with the partition it is of."""
    output = tmp_path / "events"
    other = TopicPartition("topic", 1)
    connector = ConnectorHarness(VerifiableSinkConnector, {"name": "v", "output.file": str(output)})
    connector.start()
    sink = connector.sink(partitions=[TopicPartition("topic", 0), other])
    sink.start()
    sink.send(7, key=3)
    sink.send(8, key=3, partition=other)
    sink.deliver()
    sink.revoke(other)
    sink.commit()
    first = {"name": "v", "task": 3, "sinkTask": 0, "topic": "topic", "seqno": 7, "offset": 0}
    second = {**first, "seqno": 8}
    assert without_time(events(output)) == [
        first,
        second,
        {**second, "flushed": True},
        {**first, "flushed": True},
    ]


def test_schema_source_takes_its_schemas_in_turn(tmp_path: Path) -> None:
    """As many records as asked for, then nothing; the second schema has one field more."""
    props = {
        "topic": "t",
        "num.messages": "3",
        "throughput": "-1",
        "multiple.schema": "true",
        "partition.count": "2",
        "output.file": str(tmp_path / "events"),
    }
    connector = ConnectorHarness(SchemaSourceConnector, props)
    connector.start()
    source = connector.source()
    source.start()
    records = source.run(3)
    assert [record.value_schema for record in records] == [*VALUE_SCHEMAS, VALUE_SCHEMAS[0]]
    values = [record.value for record in records]
    assert [v.get("partitioning") for v in values if isinstance(v, Struct)] == [0, 1, 0]
    assert isinstance(values[1], Struct)
    assert values[1].get("string") == "def"
    assert source.poll() == []
    assert source.stop_requested.waits_s == [1.0]
    assert events(tmp_path / "events")[-1] == {"task": 0, "seqno": 2}


def test_schema_source_goes_on_after_its_last_committed_record() -> None:
    """The count of messages starts from zero again, the numbers do not."""
    props = {"topic": "t", "num.messages": "1", "throughput": "-1", "id": "0"}
    source = SourceHarness(SchemaSourceTask, props, offsets=[({"id": 0}, {"seqno": 9})])
    source.start()
    assert source.poll()[0].source_offset == {"seqno": 10}


@pytest.mark.parametrize("kind", [MockSourceConnector, MockSinkConnector])
def test_a_mock_connector_reports_its_failure_after_the_delay(
    kind: type[MockSourceConnector | MockSinkConnector],
) -> None:
    """Through its context, from a thread of its own; it has one task."""
    connector = ConnectorHarness(kind, {"mock_mode": "connector-failure", "delay_ms": "1"})
    connector.start()
    assert len(connector.task_configs(5)) == 1
    eventually(lambda: bool(connector.context.errors), timeout_s=20)
    connector.stop()


def test_mock_tasks_fail_on_request_and_move_no_records() -> None:
    """Without a mode they only run."""
    failing = {"mock_mode": "task-failure", "delay_ms": "-1"}
    source = SourceHarness(MockSourceTask, failing)
    source.start()
    with pytest.raises(RuntimeError, match="task failure"):
        source.poll()
    sink = SinkHarness(MockSinkTask, {"mock_mode": "task-failure", "delay_ms": "60000"})
    sink.start()
    sink.send("x")
    sink.deliver()
    assert sink.context.timeouts_ms == [250, 250]
    idle = SourceHarness(MockSourceTask, {})
    idle.start()
    assert idle.poll() == []


def test_monitorable_source_ends_transactions_at_fibonacci_numbers() -> None:
    """Odd ones are committed, even ones aborted."""
    props = {"name": "m", "topic": "t", "messages.per.poll": "4", "max.messages": "13"}
    connector = ConnectorHarness(MonitorableSourceConnector, props)
    connector.start()
    source = SourceHarness(
        MonitorableSourceTask, connector.task_configs(1)[0], define_boundaries=True
    )
    source.start()
    records = source.run(13)
    assert records[0].headers.last_with_name("header-1") is not None
    sizes = [[str(r.value) for r in transaction] for transaction in source.transactions]
    assert sizes == [
        ["value-m-0-1"],
        ["value-m-0-3"],
        ["value-m-0-4", "value-m-0-5"],
        [f"value-m-0-{n}" for n in range(9, 14)],
    ]
    assert source.poll() == []


def test_monitorable_connectors_answer_and_fail_as_their_settings_say(tmp_path: Path) -> None:
    """What a worker asks, and what it is to be told, are options."""
    connector = MonitorableSourceConnector()
    support = connector.exactly_once_support
    assert support({"custom.exactly.once.support": "SUPPORTED"}) is ExactlyOnceSupport.SUPPORTED
    assert support({}) is None
    with pytest.raises(ConnectException):
        support({"custom.exactly.once.support": "fail"})
    assert connector.alter_offsets({"alter.offsets.result": "true"}, [])
    failing = ConnectorHarness(
        MonitorableSourceConnector,
        {"name": "m", "connector.start.inject.error": "true", "output.file": str(tmp_path / "e")},
    )
    with pytest.raises(RuntimeError, match="connector start"):
        failing.start()
    failing.stop()
    assert [event["event"] for event in events(tmp_path / "e")] == [
        "connector-start",
        "connector-stop",
    ]


def test_monitorable_sink_reports_partitions_records_and_commits(tmp_path: Path) -> None:
    """In the order of the worker's calls."""
    output = tmp_path / "events"
    connector = ConnectorHarness(
        MonitorableSinkConnector, {"name": "m", "output.file": str(output)}
    )
    connector.start()
    sink = connector.sink()
    sink.start()
    sink.send(1)
    sink.send(2)
    sink.deliver()
    sink.stop()
    connector.stop()
    assert [(event["event"], event.get("count")) for event in events(output)] == [
        ("connector-start", None),
        ("task-start", None),
        ("open", None),
        ("records", 2),
        ("commit", 2),
        ("close", None),
        ("task-stop", None),
        ("connector-stop", None),
    ]


def test_a_throttle_without_limit_never_waits() -> None:
    """A negative rate is none; zero waits for the end."""
    stop = ManualStop()
    Throttle(-1, stop).wait(1_000_000)
    assert stop.waits_s == []
    stop.set()
    Throttle(0, stop).wait(0)
    assert stop.waits_s == [None]


def test_a_throttle_pays_its_debt_in_sleeps_worth_it() -> None:
    """At 1000 records a second, two milliseconds at every second record."""
    stop = ManualStop()
    throttle = Throttle(1000, stop)
    for _ in range(4):
        throttle.pause()
    assert stop.waits_s == pytest.approx([0.002, 0.002])
