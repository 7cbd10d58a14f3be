"""The two sides of a compare as rows of one shape.

Columns: `first`, `second` (hashes of the row), `key_first`, `key_second` (of the key, upsert only),
`tail` (true: the row may be there or not), `unparsable`, `tombstone`, `position` (order of the
versions of a key), and the columns of a place.

The tail of a source file is what lies beyond its committed offset, that of a sink's topic what lies
beyond the group's; that of any topic also holds records of open transactions, and that of a sink's
file a last line without an end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.database_tables.positions import with_tail_of
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.file_side import FileSide
from pyconnect_reconcile.files import FixedFiles, is_local
from pyconnect_reconcile.spec import FRAMED_FORMS, ColumnRule, Side, TopicSide
from pyconnect_reconcile.table_side import VALUE, TableSide
from pyconnect_reconcile.topics.reading import UNCOMMITTED
from pyconnect_reconcile.topics.snapshot import PartitionRange
from pyconnect_reconcile.values.extract import text_of
from pyconnect_reconcile.values.hashes import HASHES, hashes
from pyconnect_reconcile.values.lines import with_lines, writes_lines
from pyconnect_reconcile.values.normal import (
    is_unparsable,
    normal_column,
    normal_value,
    with_json_columns,
)
from pyconnect_reconcile.values.registered import framed_content
from pyconnect_reconcile.values.rows import RowPlan, record_columns, row_plan, table_columns

KEY_HASHES = ("key_first", "key_second")
PATTERN_MARKS, ESCAPED = re.compile(r"([\\*?\[\]{}])"), r"\\\1"
LINE_FORMATS = frozenset({"text", "json"})
WITH_COLUMNS = frozenset({"csv", "parquet", "orc", "iceberg"})
SHAPED = frozenset({*HASHES, *KEY_HASHES, "tail", "unparsable"})
NO_PLACE = {
    "topic": "CAST(NULL AS STRING)",
    "partition": "CAST(NULL AS INT)",
    "offset": "CAST(NULL AS BIGINT)",
    "timestamp_ms": "CAST(NULL AS BIGINT)",
    "key": "CAST(NULL AS BINARY)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """One side: lazy rows, each use of them reads again; `name` is for people.

    `copies` are read in place of files: copy to original.
    """

    name: str
    rows: DataFrame
    side: Side
    length: int | None = None
    files: FixedFiles = field(default_factory=FixedFiles)


def rows_of(
    bench: Bench,
    side: Side,
    *,
    columns: tuple[ColumnRule, ...],
    plan: RowPlan | None = None,
    with_tail: bool = False,
) -> Rows:
    """Return a side's rows; ReconcileError for files that are not there."""
    match side:
        case TopicSide():
            return _topic(bench, side, columns, plan, with_tail=with_tail)
        case FileSide():
            return _files(bench, side, columns, plan)
        case TableSide():
            return _table(bench, side, columns, plan)


def plan_of(bench: Bench, columns: tuple[ColumnRule, ...]) -> RowPlan | None:
    """Return how the records of a topic become rows of a table, None where no rule says it."""
    spec = bench.spec
    for side in (spec.left, spec.right):
        if not isinstance(side, TopicSide) or side.row is None:
            continue
        if side.value not in FRAMED_FORMS:
            ranges = bench.snapshot(side.topics, side.cluster).partitions
            records = _records(bench, side, ranges, with_tail=True)
            others = [each for each in (spec.left, spec.right) if isinstance(each, FileSide)]
            return row_plan(
                records,
                side.row,
                columns,
                writes=spec.job == "topic-sink",
                flat=any(each.format == "csv" for each in others),
            )
        if side.row.of != VALUE:
            raise ReconcileError(
                f"columns of the table are not in the values, which are in {side.value}",
                hint="name the columns that are compared: --column NAME:TYPE",
            )
    return None


def inferred_columns(bench: Bench, *sides: Side | None) -> tuple[ColumnRule, ...]:
    """Return the columns of the first side that has a schema of its own."""
    for side in sides:
        if isinstance(side, TableSide):
            return _rules(bench.tables[side.place].frame)
        if isinstance(side, FileSide) and side.format in WITH_COLUMNS:
            files = bench.files.get(side.paths, FixedFiles())
            return _rules(_load(bench, side, files.listed or side.paths))
    return ()


def _rules(frame: DataFrame) -> tuple[ColumnRule, ...]:
    return tuple(
        ColumnRule(name=field.name, path=field.name, type=field.dataType.simpleString())
        for field in frame.schema.fields
    )


def _topic(
    bench: Bench,
    side: TopicSide,
    columns: tuple[ColumnRule, ...],
    plan: RowPlan | None,
    *,
    with_tail: bool,
) -> Rows:
    ranges = bench.snapshot(side.topics, side.cluster).partitions
    records = _records(bench, side, ranges, with_tail=with_tail)
    if writes_lines(bench.spec):
        records = with_lines(records)
    if plan is not None:
        records, content, unparsable = record_columns(records, plan)
    elif side.value in FRAMED_FORMS:
        records, content, unparsable = framed_content(bench.schemas, records, side, columns)
    elif columns:
        form = side.value if side.value in {"json", "connect-json"} else "json"
        records, content, unparsable = with_json_columns(records, form, columns)
    else:
        content, unparsable = [normal_value(side.value)], is_unparsable(side.value)
    if bench.spec.job == "topic-topic" and bench.spec.mode == "append":
        content = [sql.col("key"), *content]
    if plan is not None and bench.spec.mode == "upsert":
        key = plan.key_columns(content)
    else:
        key = [sql.col("key")] if bench.spec.key == "key" else [text_of(bench.spec.key)]
    rows = _shaped(bench, records, content, key, unparsable)
    rows = rows.withColumn("tombstone", sql.col("value").isNull())
    rows = rows.withColumn("position", sql.struct("offset", "partition"))
    length = sum(part.length for part in ranges)
    return Rows(name=", ".join(side.topics), rows=rows, side=side, length=length)


def _records(
    bench: Bench, side: TopicSide, ranges: tuple[PartitionRange, ...], *, with_tail: bool
) -> DataFrame:
    headers = bench.spec.key.startswith("header:")

    def read(parts: tuple[PartitionRange, ...], isolation: str, tail: bool) -> DataFrame:
        records = bench.records(parts, isolation=isolation, cluster=side.cluster, headers=headers)
        return records.withColumn("tail", sql.lit(tail))

    # A sink and a copy may read uncommitted records, which is what Kafka's consumers do by default.
    beyond = (
        (tuple(part.beyond_end for part in ranges), side.isolation),
        (tuple(part.open_offsets for part in ranges), UNCOMMITTED),
    )
    tails = [
        read(parts, isolation, tail=True)
        for parts, isolation in beyond
        if with_tail and any(part.length for part in parts)
    ]
    # Last, as shuffles are fitted to what was read last.
    certain = read(ranges, side.isolation, tail=False)
    return reduce(lambda one, other: one.unionByName(other), tails, certain)


def _files(
    bench: Bench, side: FileSide, columns: tuple[ColumnRule, ...], plan: RowPlan | None
) -> Rows:
    files = bench.files.get(side.paths, FixedFiles())
    paths = tuple(map(str, files.copies)) or files.listed or side.paths
    frame = _load(bench, side, paths).withColumn("tail", sql.lit(False))
    tail = files.uncommitted or files.unfinished
    beyond = (str(tail),) if tail is not None else files.beyond
    if beyond:
        rest = _load(bench, side, beyond).withColumn("tail", sql.lit(True))
        frame = frame.unionByName(rest, allowMissingColumns=side.complete)
    if plan is None:
        rows = _from_frame(bench, frame, side.format in LINE_FORMATS, side.value, columns)
    else:
        rows = _from_plan(bench, frame, plan, "UTC")
    return Rows(name=", ".join(side.paths), rows=rows, side=side, files=files)


def _table(
    bench: Bench, side: TableSide, columns: tuple[ColumnRule, ...], plan: RowPlan | None
) -> Rows:
    table = bench.tables[side.place]
    frame = table.frame.withColumn("tail", sql.lit(False))
    if side.position is not None:
        frame = with_tail_of(table.frame, side.position)
    if plan is None:
        rows = _from_frame(bench, frame, False, "", columns)
    else:
        rows = _from_plan(bench, frame, plan, side.zone)
    return Rows(name=side.table, rows=rows, side=side, files=table.files)


def _from_plan(bench: Bench, frame: DataFrame, plan: RowPlan, zone: str) -> DataFrame:
    """Shape rows of named columns as those that a connector makes of records."""
    content = table_columns(plan, zone)
    key = plan.key_columns(content) if bench.spec.mode == "upsert" else []
    return _without_place(_shaped(bench, frame, content, key, sql.lit(False)))


def _from_frame(
    bench: Bench, frame: DataFrame, lines: bool, form: str, columns: tuple[ColumnRule, ...]
) -> DataFrame:
    """Shape rows of files or tables: `lines` have one column `value`, others named columns."""
    unparsable: Column = sql.lit(False)
    if lines and columns:
        frame, content, unparsable = with_json_columns(frame, "json", columns)
    elif lines:
        content, unparsable = [normal_value(form)], is_unparsable(form)
    else:
        content = [normal_column(rule, sql.col(f"`{rule.name}`")) for rule in columns]
    key_path = bench.spec.key.partition(":")[2] or bench.spec.key
    if bench.spec.mode != "upsert":
        key: list[Column] = []
    elif lines:
        key = [sql.get_json_object(sql.col("value").cast("string"), f"$.{key_path}")]
    else:
        key = [sql.col(f"`{key_path}`").cast("string")]
    rows = _shaped(bench, frame, content, key, unparsable)
    if not lines:
        return _without_place(rows)
    return _placeless(rows)


def _without_place(rows: DataFrame) -> DataFrame:
    """Return rows of named columns with the columns of a place and of a value, which are null."""
    kept = [name for name in rows.columns if name in SHAPED]
    return _placeless(rows.select(*kept).withColumn("value", sql.lit(None).cast("binary")))


def _placeless(rows: DataFrame) -> DataFrame:
    for name, expression in NO_PLACE.items():
        rows = rows.withColumn(name, sql.expr(expression))
    rows = rows.withColumn("tombstone", sql.lit(False))
    return rows.withColumn("position", sql.struct("offset", "partition"))


def _shaped(
    bench: Bench, frame: DataFrame, content: list[Column], key: list[Column], unparsable: Column
) -> DataFrame:
    columns = dict(zip(HASHES, hashes(content), strict=True))
    columns["unparsable"] = unparsable
    if "tail" not in frame.columns:
        columns["tail"] = sql.lit(False)
    if bench.spec.mode == "upsert":
        texts = [each.cast("binary") for each in key]
        columns |= dict(zip(KEY_HASHES, hashes(texts), strict=True))
    return frame.withColumns(columns)


def _located(path: str) -> str:
    """Return a local path as Spark takes it: not encoded, and without patterns if it exists."""
    absolute = str(Path(path).absolute())
    return f"file://{PATTERN_MARKS.sub(ESCAPED, absolute) if Path(path).exists() else absolute}"


def _load(bench: Bench, side: FileSide, paths: tuple[str, ...]) -> DataFrame:
    located = [_located(path) if is_local(path) else path for path in paths]
    # JSON lines are compared as texts in their canonical form: no schema is inferred.
    form = "text" if side.format == "json" else side.format
    options = {"header": "true"} if form == "csv" else {}
    return bench.spark.read.format(form).options(**options, **side.options).load(located)
