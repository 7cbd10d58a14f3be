"""Values that an audit cannot read, or would change, are reported and not left out."""

import io
import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import DoubleType, StructField, StructType, TimestampNTZType, TimestampType

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.capture import capture
from pyconnect_reconcile.compares import sides
from pyconnect_reconcile.compares.columns import columns_of
from pyconnect_reconcile.compares.sides import frame_of
from pyconnect_reconcile.data_sides import MARK, TablePosition, TableSide
from pyconnect_reconcile.errors import NotAuditable, ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.spec import MAIN, ColumnRule, read_spec
from pyconnect_reconcile.stores.sqlite import copied
from pyconnect_reconcile.stores.tables import exact_rows, with_tail_of
from pyconnect_reconcile.topics.snapshot import PartitionRange, TopicSnapshot, TopicsSnapshot
from pyconnect_reconcile.values.kinds import Compared
from pyconnect_reconcile.values.normal import with_tokens

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

CLUSTERS = {"main": {"bootstrap": "b:9092"}}
QUIET = Events(machine=True, stream=io.StringIO())


def snapshot(*, committed: int, written: int, asked_start: int | None = None) -> TopicsSnapshot:
    part = PartitionRange(
        topic="t",
        partition=0,
        start=asked_start or 0,
        end=committed,
        earliest=0,
        last_stable=written,
        high_watermark=written,
        asked_start=asked_start,
        asked_end=committed,
    )
    topic = TopicSnapshot(topic="t", topic_id="i", cleanup_policy="delete", partitions=(part,))
    return TopicsSnapshot(cluster_id="c", taken_ms=1, topics=(topic,))


def table(path: Path, *statements: str) -> TableSide:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return TableSide(url=f"jdbc:sqlite:{path}", table="t")


def test_rows_whose_position_has_no_order_are_not_left_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A time of another form is refused: as null it would look like a row that is never read."""
    side = table(
        tmp_path / "a.db",
        "CREATE TABLE t (id INTEGER, changed TIMESTAMP)",
        "INSERT INTO t VALUES (1, '2026-01-01 00:00:00'), (2, NULL)",
    )
    rows = tmp_path / "rows"
    position = TablePosition(timestamps=("changed",), timestamp="2026-02-01 00:00:00")
    frame = copied(side, rows).read(spark, rows)
    assert [row.id for row in with_tail_of(frame, position).collect()] == [1]
    side = table(tmp_path / "a.db", "INSERT INTO t VALUES (3, '2026-01-01T00:00:00.1234567Z')")
    odd = tmp_path / "odd"
    with pytest.raises(NotAuditable, match="1 row has a value in changed"):
        with_tail_of(copied(side, odd).read(spark, odd), position)


def test_a_night_keeps_rows_whose_place_is_null(spark: SparkSession) -> None:
    """Rows without a place in Kafka belong to no earlier night, so they are compared."""
    row = {"of": "kafka", "keys": ["t", "p", "o"]}
    asked = read_spec(
        {
            "job": "topic-sink",
            "clusters": CLUSTERS,
            "left": {"kind": "topic", "topics": ["t"], "row": row},
            "right": {"kind": "table", "url": "jdbc:sqlite:/a.db", "table": "t"},
            "since_last": True,
        }
    )
    before = snapshot(committed=9, written=9, asked_start=5)
    bench = Bench(spark=spark, spec=asked, snapshots={MAIN: before}, events=QUIET)
    places = [("t", 0, 4), ("t", 0, 5), ("t", 0, None), (None, 0, 4), ("other", 0, 1)]
    frame = spark.createDataFrame(places, "t string, p int, o bigint")

    class Plan:
        keys = ("t", "p", "o")

    plan: Any = Plan()
    kept = sides._of_this_run(bench, frame, plan).collect()
    assert {tuple(each) for each in kept} == set(places[1:])


def test_values_that_differ_at_their_end_differ(spark: SparkSession) -> None:
    """A line end behind a text, and the last digit of a long number, make a difference."""
    cases = [
        ("date", "2026-01-01", "2026-01-01\n"),
        ("timestamp", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z\n"),
        ("time", "10:00:00", "10:00:00\n"),
        ("binary", "QUJD", "QUJD\n"),
        ("date", f"{MARK}123456789012345678901", f"{MARK}123456789012345678902"),
        ("time", f"{MARK}123456789012345678901", f"{MARK}123456789012345678902"),
        ("timestamp_ms", f"{MARK}{'1' * 50}2", f"{MARK}{'1' * 50}3"),
    ]
    kinds, *rows = zip(*cases, strict=True)
    names = [f"c{at}" for at in range(len(kinds))]
    frame = spark.createDataFrame(rows, [*names])
    columns = [
        Compared(rule=ColumnRule(name=name, path=name), kind=kind)
        for name, kind in zip(names, kinds, strict=True)
    ]
    frame, tokens = with_tokens(frame, [sql.col(name) for name in names], columns)
    one, other = frame.select(*tokens).collect()
    assert [case for case, *both in zip(cases, one, other, strict=True) if both[0] == both[1]] == []


def test_values_that_another_database_may_round_are_refused(spark: SparkSession) -> None:
    """Oracle's NUMBER and times beyond microseconds are refused, because Spark would round them."""
    frame = spark.createDataFrame([], "id decimal(18,2), n decimal(38,10)")
    with pytest.raises(NotAuditable, match="may round the numbers of n in t"):
        exact_rows(lambda _: frame, "jdbc:oracle:thin:@h:1521/d", "t", "UTC")
    assert exact_rows(lambda _: frame.select("id"), "jdbc:oracle:x", "t", "UTC").columns == ["id"]
    clock = {"logical_time_type": True}
    for kind, metadata, is_refused in (
        (TimestampType(), {"scale": 9}, True),
        (TimestampNTZType(), {"scale": 7}, True),
        (TimestampType(), {"scale": 6}, False),
        (TimestampType(), clock | {"scale": 3}, True),
        (TimestampType(), clock | {"scale": 0}, False),
        (DoubleType(), {"scale": 9}, False),
    ):
        schema = StructType([StructField("a", kind, metadata=metadata)])
        rows = spark.createDataFrame([], schema)
        refusal = pytest.raises(NotAuditable, match="times of a in t may have more digits")
        with refusal if is_refused else nullcontext():
            assert exact_rows(lambda _, rows=rows: rows, "jdbc:db2:x", "t", "UTC") is rows  # type: ignore[misc]


def test_columns_of_either_side_are_compared(spark: SparkSession) -> None:
    """A column that only one of two sides has is an error."""
    one, other = (spark.createDataFrame([], f"a int, {name} int") for name in "bc")
    for frames in ((one, one.select("a")), (one.select("a"), one), (one, other)):
        with pytest.raises(ReconcileError, match="there is no column"):
            columns_of(frames)


@pytest.mark.parametrize("form", ["orc", "avro"])
def test_columns_of_some_files_only_are_columns(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    """A column of only some files is compared, although Spark reads the schema of one file."""
    for number, columns in enumerate(("1 AS a", "1 AS a, 2 AS b", "1 AS a")):
        rows = spark.range(1).selectExpr(*columns.split(", "))
        rows.coalesce(1).write.format(form).save(str(tmp_path / f"rows/{number}"))
    paths = [str(tmp_path / f"rows/{number}") for number in range(3)]
    side = {"kind": "files", "paths": paths, "format": form}
    asked = read_spec({"job": "topic-topic", "clusters": CLUSTERS, "left": side, "right": side})
    work = tmp_path / "work"
    work.mkdir()
    captured = capture(asked, work, lambda: spark)
    bench = Bench(spark=spark, spec=asked, snapshots={}, events=QUIET, files=captured.files)
    assert asked.left is not None
    frame = frame_of(bench, asked.left)
    assert frame is not None
    assert {tuple(row) for row in frame.select("a", "b").collect()} == {(1, None), (1, 2)}
