"""LakeSink's Iceberg tables in a SQLite catalog: snapshots, offsets, schemas."""

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.table import Table
from sqlalchemy.exc import OperationalError

from pyconnect_api import (
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    ConnectException,
    Struct,
    TopicPartition,
    timestamp_builder,
)
from pyconnect_api.testing import SinkHarness
from pyconnect_connectors.lake import catalogs, table_target
from pyconnect_connectors.lake.sink import LakeSinkConnector, LakeSinkTask
from tests.connectors.lake.rows import TOPIC, send
from tests.connectors.schemas import fields
from tests.support.cases import cases

OTHER = TopicPartition("topic", 1)


def props(lake: Path, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    return {
        "name": "to-lake",
        "lake.url": str(lake),
        "format.class": "iceberg",
        "iceberg.tables": "lake.${topic}",
        "iceberg.tables.auto-create-enabled": "true",
        "retry.backoff.ms": "0",
        **(settings or {}),
    }


def started(lake: Path, settings: Mapping[str, str] | None = None, **more: object) -> SinkHarness:
    sink = SinkHarness(LakeSinkTask, props(lake, settings), **more)  # type: ignore[arg-type]
    sink.start()
    return sink


def table(lake: Path, name: str = "lake.topic") -> Table:
    catalog = load_catalog("iceberg", type="sql", uri=f"sqlite:///{lake}/catalog.db")
    return catalog.load_table(name)


def ids(lake: Path) -> list[int]:
    return sorted(table(lake).scan().to_arrow()["id"].to_pylist())


def offsets(lake: Path) -> list[str]:
    summaries = [snapshot.summary for snapshot in table(lake).snapshots()]
    return [summary["pyconnect.offsets.to-lake"] for summary in summaries if summary is not None]


def test_a_snapshot_holds_rows_and_offsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot holds rows and offsets of one interval, not of one delivery."""
    now_s = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    sink = started(tmp_path, {"iceberg.control.commit.interval-ms": "60000"})
    send(sink, range(10))
    for _ in range(4):
        sink.deliver(2)
    assert sink.commit() == {TOPIC: 0}
    now_s = 1060.0
    sink.deliver(2)
    assert sink.commit() == {TOPIC: 10}
    assert ids(tmp_path) == list(range(10))
    assert offsets(tmp_path) == ['{"topic-0": 10}']
    sink.stop()


def test_a_new_task_continues_at_the_stored_offset(tmp_path: Path) -> None:
    """A new task continues at the table's offset, even without a committed offset in Kafka."""
    sink = started(tmp_path, {"iceberg.control.commit.interval-ms": "1"})
    send(sink, range(6))
    sink.deliver(3)
    sink.task._target.finish([TOPIC])  # type: ignore[attr-defined]
    sink.crash()
    assert [record.kafka_offset for record in sink.deliver()] == [3, 4, 5]
    sink.stop()
    assert ids(tmp_path) == list(range(6))


def test_partitions_that_close_leave_no_row_to_be_read_twice(tmp_path: Path) -> None:
    """Buffered rows of closing partitions are committed first, so that no row is read twice."""
    sink = started(tmp_path)
    send(sink, range(5))
    sink.deliver()
    sink.restart()
    assert sink.deliver() == []
    assert offsets(tmp_path) == ['{"topic-0": 5}']
    sink.stop()


def test_a_zombie_cannot_commit_its_successors_records(tmp_path: Path) -> None:
    """A zombie finds other offsets, drops its rows, and continues after its successor's rows."""
    zombie, successor = started(tmp_path), started(tmp_path)
    for sink in (zombie, successor):
        send(sink, range(5))
    zombie.deliver(3)
    successor.deliver()
    successor.stop()
    zombie.stop()
    assert ids(tmp_path) == list(range(5))
    assert len(offsets(tmp_path)) == 1


def test_tasks_of_one_table_keep_each_others_offsets(tmp_path: Path) -> None:
    """Commits of two tasks may meet; the later one is repeated and keeps the other's offsets."""
    sinks = [
        started(tmp_path, partitions=[partition], settings=None) for partition in (TOPIC, OTHER)
    ]
    for index, (sink, partition) in enumerate(zip(sinks, (TOPIC, OTHER), strict=True)):
        send(sink, range(index * 10, index * 10 + 10), partition=partition)
        sink.deliver()
    threads = [threading.Thread(target=sink.stop) for sink in sinks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ids(tmp_path) == list(range(20))
    assert offsets(tmp_path)[-1] == '{"topic-0": 10, "topic-1": 10}'


@cases("landed", True, False)
def test_a_commit_of_unknown_outcome_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, landed: bool
) -> None:
    """A commit of unknown outcome is repeated only if the table does not have it."""
    sink = started(tmp_path, {"iceberg.control.commit.interval-ms": "1"})
    send(sink, range(3))
    original = table_target.append_once
    lost = [CommitStateUnknownException("no answer")]

    def losing(*arguments: Any) -> None:
        if landed or not lost:
            original(*arguments)
        if lost:
            raise lost.pop()

    monkeypatch.setattr(table_target, "append_once", losing)
    sink.task._target._next_due_ms = 0  # type: ignore[attr-defined]
    assert sink.deliver() == []
    sink.deliver()
    sink.stop()
    assert ids(tmp_path) == [0, 1, 2]
    assert len(offsets(tmp_path)) == 1


def test_snapshots_of_others_do_not_hide_the_offsets(tmp_path: Path) -> None:
    """Offsets are looked for in older snapshots if the newest one has none."""
    sink = started(tmp_path)
    send(sink, range(3))
    sink.deliver()
    sink.stop()
    found = table(tmp_path)
    found.append(found.scan().to_arrow().slice(0, 1))
    sink.committed.clear()
    sink.start()
    assert sink.deliver() == []
    sink.stop()


def test_a_partition_that_is_lost_takes_its_rows_along(tmp_path: Path) -> None:
    """The rows of a lost partition are dropped, and those of other partitions stay buffered."""
    sink = started(tmp_path, partitions=[TOPIC, OTHER])
    send(sink, range(3))
    send(sink, range(10, 13), partition=OTHER)
    sink.deliver()
    sink.lose(OTHER)
    sink.stop()
    assert ids(tmp_path) == [0, 1, 2]
    assert offsets(tmp_path) == ['{"topic-0": 3}']


def test_missing_columns_are_added_when_allowed(tmp_path: Path) -> None:
    """Missing columns are added and types widened if allowed, within one snapshot."""
    old = fields(id=INT32_SCHEMA)
    new = fields(id=INT64_SCHEMA, note=STRING_SCHEMA)
    sink = started(tmp_path, {"iceberg.tables.evolve-schema-enabled": "true"})
    sink.send(Struct(old).put("id", 1), value_schema=old)
    sink.deliver()
    sink.restart()
    sink.send(Struct(old).put("id", 2), value_schema=old)
    sink.send(Struct(new).put("id", 2**40).put("note", "n"), value_schema=new)
    sink.deliver()
    sink.stop()
    rows = table(tmp_path).scan().to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": 1, "note": None}, {"id": 2, "note": None}, {"id": 2**40, "note": "n"}]


@cases(
    "settings, text",
    ({"iceberg.tables.auto-create-enabled": "false"}, "auto-create-enabled=true creates it"),
    ({}, "lacks the columns note; .*evolve-schema-enabled=true adds them"),
)
def test_a_missing_table_or_column_names_the_setting(
    tmp_path: Path, settings: dict[str, str], text: str
) -> None:
    """The sink creates tables and columns only if a setting asks for it, which the error names."""
    new = fields(id=INT64_SCHEMA, note=STRING_SCHEMA)
    sink = started(tmp_path, settings)
    if not settings:
        send(sink, range(1))
        sink.deliver()
        sink.restart()
    sink.send(Struct(new).put("id", 1).put("note", "n"), value_schema=new)

    def written() -> None:
        sink.deliver()
        sink.stop()

    with pytest.raises(ConnectException, match=text):
        written()


def test_a_table_is_partitioned_as_the_config_says(tmp_path: Path) -> None:
    """A new table is partitioned by values and times as the config says."""
    schema = fields(id=INT64_SCHEMA, at=timestamp_builder())
    sink = started(tmp_path, {"iceberg.tables.default-partition-by": "day(at),id"})
    for hour in range(2):
        at = datetime(2024, 6, 1 + hour, tzinfo=UTC)
        sink.send(Struct(schema).put("id", hour).put("at", at), value_schema=schema)
    sink.deliver()
    sink.stop()
    found = table(tmp_path)
    assert [(f.name, str(f.transform)) for f in found.spec().fields] == [
        ("at_day", "day"),
        ("id", "identity"),
    ]
    assert len(found.inspect.files()) == 2
    assert ids(tmp_path) == [0, 1]


def test_changed_offsets_are_those_of_the_table(tmp_path: Path) -> None:
    """Changed offsets are stored in the table, and None removes a partition's offset."""
    sink = started(tmp_path, partitions=[TOPIC, OTHER])
    send(sink, range(3))
    send(sink, range(10, 13), partition=OTHER)
    sink.deliver()
    sink.stop()
    assert LakeSinkConnector().alter_offsets(props(tmp_path), {TOPIC: 1, OTHER: None})
    assert offsets(tmp_path)[-1] == '{"topic-0": 1}'
    sink.committed = {OTHER: 3}
    sink.start()
    assert [record.kafka_offset for record in sink.deliver()] == [1, 2]
    sink.stop()
    assert ids(tmp_path) == [0, 1, 1, 2, 2, 10, 11, 12]


def test_a_locked_catalog_is_tried_again_until_the_last_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A locked catalog is tried again; the last attempt fails with the database's own reason."""
    sink = started(tmp_path, {"max.retries": "1"})

    def locked(*_: object) -> None:
        raise OperationalError("UPDATE secret", {}, Exception("database is locked"))

    monkeypatch.setattr(table_target, "load_table", locked)
    send(sink, range(1))
    sink.task._target.close([TOPIC])  # type: ignore[attr-defined]
    sink.task._target._taken[TOPIC] = 0  # type: ignore[attr-defined]
    assert sink.deliver() == []
    with pytest.raises(ConnectException, match=r"database is locked \(2 attempts\)") as caught:
        sink.deliver()
    assert "secret" not in str(caught.value)


@cases(
    "settings, name",
    ({"lake.url": ""}, "iceberg.catalog.uri"),
    ({"iceberg.tables": "topic"}, "iceberg.tables"),
    ({"iceberg.tables.default-partition-by": "week(at)"}, "iceberg.tables.default-partition-by"),
    (
        {"iceberg.catalog.type": "rest", "iceberg.catalog.uri": "http://127.0.0.1:9"},
        "iceberg.catalog.uri",
    ),
    ({"iceberg.catalog.uri": "sqlite:////no/such/directory/c.db"}, "iceberg.catalog.uri"),
)
def test_a_wrong_setting_is_found_by_validation(
    tmp_path: Path, settings: dict[str, str], name: str
) -> None:
    """Validation adds the error to the setting that has to be changed."""
    config = LakeSinkConnector().validate(props(tmp_path, settings))
    found = [value.name for value in config.config_values if value.error_messages]
    assert found[:1] == [name]


def test_the_offsets_key_is_the_connectors(tmp_path: Path) -> None:
    """Two connectors may write one table, each with offsets of its own."""
    for name in ("a", "b"):
        sink = started(tmp_path, {"name": name})
        send(sink, range(2))
        sink.deliver()
        sink.stop()
    assert ids(tmp_path) == [0, 0, 1, 1]
    assert catalogs.stored_offsets(table(tmp_path), "a") == {"topic-0": 2}
