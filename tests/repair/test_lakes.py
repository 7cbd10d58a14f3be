"""Plans, commits and undos of an Iceberg table, beside the LakeSink that wrote it."""

import io
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from pyconnect_api import (
    BYTES_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    SchemaBuilder,
    SinkRecord,
    Struct,
    TimestampType,
    TopicPartition,
    decimal_builder,
    timestamp_builder,
)
from pyconnect_api.testing import SinkHarness
from pyconnect_connectors.lake.catalogs import catalog_errors, stored_offsets
from pyconnect_connectors.lake.settings import EVOLVE
from pyconnect_connectors.lake.sink import LakeSinkTask
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_repair.lakes import LakeChange, LakeTable
from pyconnect_repair.plan import Place, Wanted

QUIET = Events(machine=True, stream=io.StringIO())
COUNT = 6
ORDER = (
    SchemaBuilder.struct()
    .field("id", INT64_SCHEMA)
    .field("price", decimal_builder(2).build())
    .field("at", timestamp_builder().build())
    .field("raw", BYTES_SCHEMA)
    .field("ratio", SchemaBuilder.float64())
    .field("tags", SchemaBuilder.array(STRING_SCHEMA).build())
    .field("city", OPTIONAL_STRING_SCHEMA)
    .build()
)


def order(number: int) -> Struct:
    return (
        Struct(ORDER)
        .put("id", number)
        .put("price", Decimal(number) / 4)
        .put("at", datetime(2024, 1, 1, 10, number, 5, 123000, tzinfo=UTC))
        .put("raw", bytes([number, 0, 255]))
        .put("ratio", float("nan") if number == 3 else number / 7)
        .put("tags", [str(number)] * number)
        .put("city", None if number % 3 == 0 else f"c{number % 2}")
    )


def record(number: int, **members: Any) -> SinkRecord:
    given = {"value_schema": ORDER, "value": order(number), **members}
    return SinkRecord(
        "topic", 0, None, None, given["value_schema"], given["value"], number, 1,
        TimestampType.CREATE_TIME,
    )  # fmt: skip


class World:
    """A lake with a table of `COUNT` rows in two files or more."""

    def __init__(self, lake: Path, **settings: str) -> None:
        self.config = {
            "name": "to-lake",
            "lake.url": str(lake),
            "format.class": "iceberg",
            "iceberg.tables": "lake.${topic}",
            "iceberg.tables.auto-create-enabled": "true",
            **{name.replace("__", ".").replace("_", "-"): v for name, v in settings.items()},
        }
        self.lake = lake
        sink = SinkHarness(LakeSinkTask, self.config)
        for half in (range(3), range(3, COUNT)):
            sink.start()
            for number in half:
                sink.send(order(number), value_schema=ORDER, partition=TopicPartition("topic", 0))
            sink.deliver()
            sink.stop()

    @property
    def iceberg(self) -> Table:
        catalog = load_catalog("iceberg", type="sql", uri=f"sqlite:///{self.lake}/catalog.db")
        return catalog.load_table("lake.topic")

    @property
    def table(self) -> LakeTable:
        return LakeTable(self.config, "topic", QUIET)

    @property
    def snapshot(self) -> int:
        found = self.iceberg.metadata.current_snapshot_id
        assert found is not None
        return found

    def rows(self) -> list[str]:
        return sorted(map(repr, self.iceberg.scan().to_arrow().to_pylist()))

    def change(
        self, *targets: Wanted, records: Sequence[SinkRecord] = (), table: LakeTable | None = None
    ) -> LakeChange:
        made: dict[Place, SinkRecord | None] = {("topic", 0, n): record(n) for n in range(COUNT)}
        made |= {("topic", 0, int(r.original_kafka_offset)): r for r in records}
        table = table or self.table
        return table.change(targets, made)


def missing(number: int, expected: int = 1, there: int = 0) -> Wanted:
    return Wanted(kind="missing", place=("topic", 0, number), expected=expected, there=there)


def repeated(number: int, there: int, expected: int = 1) -> Wanted:
    return Wanted(kind="repeated", place=("topic", 0, number), expected=expected, there=there)


@pytest.mark.parametrize("partitioned", [False, True])
def test_one_commit_repairs_a_table_and_an_undo_restores_it(
    tmp_path: Path, partitioned: bool
) -> None:
    """A repair restores the sink's rows and keeps its offsets; an undo restores the snapshot."""
    by = {"iceberg__tables__default_partition_by": "city"} if partitioned else {}
    world = World(tmp_path, **by)
    whole = world.rows()
    files = {task.file.file_path for task in world.iceberg.scan().plan_files()}
    world.iceberg.delete("id == 1")
    files &= {task.file.file_path for task in world.iceberg.scan().plan_files()}
    world.iceberg.add_files([min(files)], check_duplicate_files=False)
    found = world.iceberg
    found.append(found.scan("id == 3").to_arrow())
    base, damaged = world.snapshot, world.rows()
    number = {text: damaged.count(text) for text in damaged}
    targets = [missing(1)]
    targets += [
        repeated(n, number[text]) for n, text in enumerate(whole) if number.get(text, 0) > 1
    ]
    table = world.table
    change = world.change(*targets, table=table)
    assert change.refused == []
    assert change.counts == {"missing": 1, "repeated": sum(number.values()) - len(number)}
    again = world.change(*reversed(targets))
    assert again.digest.hexdigest() == change.digest.hexdigest()
    done = table.commit(change, "repair-1")
    assert world.rows() == whole
    current = world.iceberg.current_snapshot()
    assert current is not None
    assert (current.snapshot_id, current.parent_snapshot_id) == (done, base)
    assert current.summary is not None
    assert current.summary["total-records"] == str(COUNT)
    assert stored_offsets(world.iceberg, "to-lake") == {"topic-0": COUNT}
    assert world.table.committed("repair-1") == done
    for _ in range(2):
        world.table.undo(base, "repair-1")
        assert world.rows() == damaged
    assert world.table.committed("repair-1") is None


def test_rows_that_the_table_does_not_have_as_the_audit_says_are_left(tmp_path: Path) -> None:
    """A row is refused if its count is not the audit's, or if the sink would not write it."""
    world = World(tmp_path)
    wide = SchemaBuilder.struct().field("id", INT64_SCHEMA).field("more", STRING_SCHEMA).build()
    odd = [
        record(10, value=None, value_schema=None),
        record(11, value={"id": 1}, value_schema=None),
        record(12, value=Struct(wide).put("id", 1).put("more", "x"), value_schema=wide),
    ]
    targets = [missing(2), repeated(4, there=2), *map(missing, (10, 11, 12))]
    change = world.change(*targets, records=odd)
    assert not change.counts
    counted = "the table has 1 rows like the one that the sink would write, and the audit counted "
    assert [each.partition("@")[2] for each in change.refused] == [
        "10: the connector makes no row of a record",
        "11: The value has no schema, which an Iceberg table needs",
        f"12: Table lake.topic lacks the columns more; {EVOLVE}=true adds them (record topic-0@12)",
        f"2: {counted}0",
        f"4: {counted}2",
    ]


def test_a_table_that_has_changed_is_left(tmp_path: Path) -> None:
    """A new snapshot before, during or after a repair ends it or its undo."""
    world = World(tmp_path)
    world.iceberg.delete("id == 1")
    base, stale = world.snapshot, world.table
    change = world.change(missing(1), table=stale)
    found = world.iceberg
    found.append(found.scan("id == 2").to_arrow())
    with pytest.raises(ReconcileError, match="has changed since the report"):
        world.table.require_snapshot(base)
    damaged = world.rows()
    with pytest.raises(Exception, match="branch main has changed"), catalog_errors("c"):
        stale.commit(change, "repair-1")
    assert world.rows() == damaged
    before = world.snapshot
    table = world.table
    table.commit(world.change(missing(1), table=table), "repair-2")
    world.iceberg.delete("id == 0")
    with pytest.raises(ReconcileError, match="snapshots since the repair"):
        world.table.undo(before, "repair-2")
    with pytest.raises(ReconcileError, match="another table"):
        world.table.require("other")
