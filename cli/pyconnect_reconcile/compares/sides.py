"""The two sides of a compare as rows of one shape.

Columns: `first`, `second` (hashes of the row), `key_first`, `key_second` (of the key, upsert only),
`keyless` (upsert: the row itself is its key), `tail` (true: the row is optional),
`unparsable`, `tombstone`, `copies` (1), `unheld` (names of the columns that cannot hold the
record's values), and the columns of a place with its lane.

The tail of a source file is the part beyond its committed offset, that of a sink's topic the part
beyond the group's offsets. The tail of any topic also has the records of open transactions, and
that of a sink's file has a last line without an end.
"""

import re
from dataclasses import dataclass, field, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import TimestampNTZType

from pyconnect_reconcile.bench import UNCOMMITTED, Bench
from pyconnect_reconcile.compares.loading import COLUMNAR, load
from pyconnect_reconcile.data_sides import (
    BASE64,
    ENVELOPE,
    ICEBERG,
    LINE_FORMATS,
    PLAIN,
    VALUE,
    FileSide,
    TableSide,
)
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.files import FixedFiles
from pyconnect_reconcile.spec import FRAMED_FORMS, Side, Spec, TopicSide
from pyconnect_reconcile.stores.tables import with_tail_of
from pyconnect_reconcile.topics.snapshot import PartitionRange
from pyconnect_reconcile.values.canonical import HASHES, hashes, token, with_marked, with_steps
from pyconnect_reconcile.values.extract import (
    json_path,
    member_token,
    text_of,
    with_text,
    without_mark,
)
from pyconnect_reconcile.values.framed import AVRO_MEMBER, framed_content
from pyconnect_reconcile.values.kinds import kind_steps
from pyconnect_reconcile.values.normal import (
    MARKED,
    Columns,
    Content,
    field_of,
    json_columns,
    quoted,
    typed_columns,
    whole_values,
)
from pyconnect_reconcile.values.rows import RowPlan, record_content, row_plan
from pyconnect_reconcile.values.table_rows import row_key, table_content

KEY_HASHES = ("key_first", "key_second")
WITH_COLUMNS = COLUMNAR | {ICEBERG}
SHAPED = frozenset(
    {*HASHES, *KEY_HASHES, "keyless", "tied", "tail", "unparsable", "unheld", "copies"}
)
ROW = "pyconnect_row"
"""The key of a table's row, by which a finding names the row."""
KEY_TEXT, KEY_MEMBER = "pyconnect_key", "key.json:"
TYPED_KEYS = (KEY_MEMBER, AVRO_MEMBER)
LETTER_OF = "__connect.errors.connector.name"
"""The header of a dead letter that names its connector."""
ENVELOPED = r'(?s)\A\{"value":(.*)\}\z'
NO_VALUE = "}"
LANE_BITS = 32
EVERYTHING = Columns()
NO_PLACE = {
    "topic": "CAST(NULL AS STRING)",
    "partition": "CAST(NULL AS INT)",
    "offset": "CAST(NULL AS BIGINT)",
    "timestamp_ms": "CAST(NULL AS BIGINT)",
    "key": "CAST(NULL AS BINARY)",
    "lane": "CAST(NULL AS BIGINT)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows of one side, read again at each use; `name` is a text for people.

    `length` is the number of offsets of topics, None for other sides.
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
    columns: Columns = EVERYTHING,
    plan: RowPlan | None = None,
    with_tail: bool = False,
) -> Rows:
    """Return a side's rows; ReconcileError for files that do not exist."""
    match side:
        case TopicSide():
            return _topic(bench, side, columns, plan, with_tail=with_tail)
        case FileSide():
            return _files(bench, side, columns, plan)
        case TableSide():
            pass
    table = bench.tables[side.place]
    frame = _of_this_run(bench, table.frame, plan).withColumn("tail", sql.lit(False))
    keys = () if plan is None else plan.keys
    if side.position is not None:
        frame = with_tail_of(table.frame, side.position)
        keys = keys or tuple(filter(None, [side.position.incrementing]))
    if keys:
        frame = frame.withColumn(ROW, row_key(frame, keys))
    if plan is None:
        rows = _from_columns(bench, _of_zone(frame, side.zone), columns)
    else:
        rows = _from_plan(bench, frame, plan, side.zone)
    return Rows(name=side.table, rows=rows, side=side, files=table.files)


def plan_of(bench: Bench, columns: Columns) -> RowPlan | None:
    """Return how the records of a topic become rows of a table; None without a rule for it."""
    spec = bench.spec
    for side in (spec.left, spec.right):
        if not isinstance(side, TopicSide) or side.row is None:
            continue
        if side.value not in FRAMED_FORMS:
            ranges = bench.snapshot(side.topics, side.cluster).partitions
            records = records_of(bench, side, ranges, with_tail=True)
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


def frame_of(bench: Bench, side: Side) -> DataFrame | None:
    """Return the rows of a side whose columns have names; None for other sides."""
    if isinstance(side, TableSide):
        return _of_zone(bench.tables[side.place].frame, side.zone)
    if isinstance(side, FileSide) and side.format in WITH_COLUMNS:
        files = bench.files.get(side.place, FixedFiles())
        return load(bench, side, files.listed or side.paths, "")
    return None


def named_rows(bench: Bench, side: Side) -> DataFrame | None:
    """Return the rows of `frame_of` with `tail` and a timestamp of null; None as there."""
    frame = frame_of(bench, side)
    if frame is None:
        return None
    absent = sql.expr(NO_PLACE["timestamp_ms"])
    return frame.withColumns({"tail": sql.lit(False), "timestamp_ms": absent})


def content_of(bench: Bench, records: DataFrame, side: TopicSide, columns: Columns) -> Content:
    by_member = bench.spec.key.startswith("json:") and _key_at(bench, columns) is None
    if side.value in FRAMED_FORMS:
        return framed_content(bench.schemas, records, side, columns, all_marked=by_member)
    if columns.all:
        form = side.value if side.value == "connect-json" else "json"
        return json_columns(records, form, columns, all_marked=by_member)
    return whole_values(records, side.value)


def _topic(
    bench: Bench, side: TopicSide, columns: Columns, plan: RowPlan | None, *, with_tail: bool
) -> Rows:
    ranges = bench.snapshot(side.topics, side.cluster).partitions
    records = records_of(bench, side, ranges, with_tail=with_tail)
    if _writes_lines(bench.spec):
        assert isinstance(bench.spec.right, FileSide)
        records = _with_lines(records, bench.spec.right)
    if plan is not None:
        content = record_content(records, plan)
        key = plan.key_columns(content.columns) if bench.spec.mode == "upsert" else []
    else:
        content = content_of(bench, records, side, columns)
        content, found = _with_key(bench, content, columns)
        key = [found]
    compared = content.columns
    if bench.spec.job == "topic-topic" and bench.spec.mode == "append":
        compared = [sql.col("key"), *compared]
    rows = _shaped(bench, content, compared, key)
    # The lane of a record: the index of its topic, then its partition in LANE_BITS.
    lane = sql.lit(None).cast("bigint")
    for index, topic in enumerate(side.topics):
        lane = sql.when(sql.col("topic") == topic, sql.lit(index << LANE_BITS)).otherwise(lane)
    lane = (lane + sql.col("partition")).cast("bigint")
    rows = rows.withColumns({"tombstone": sql.col("value").isNull(), "lane": lane})
    length = sum(part.length for part in ranges)
    return Rows(name=", ".join(side.topics), rows=rows, side=side, length=length)


def _key_at(bench: Bench, columns: Columns) -> int | None:
    """Return the index of the compared column that is the key, in any case; None without one."""
    path = (bench.spec.key.partition(":")[2] or bench.spec.key).removeprefix("$.")
    named = [{each.rule.name, each.rule.path} for each in columns.all]
    similar = [{name.lower() for name in names} for names in named]
    at = [n for n, names in enumerate(named) if path in names]
    at += [n for n, names in enumerate(similar) if path.lower() in names]
    return at[0] if at else None


def _with_key(bench: Bench, content: Content, columns: Columns) -> tuple[Content, Column]:
    """Return the content, possibly with one more column, and the column of the key."""
    key = bench.spec.key
    if key.startswith("json:") and MARKED in content.frame.columns:
        at = _key_at(bench, columns)
        if at is not None:
            return content, content.columns[at]
        path = json_path(key.removeprefix("json:"))
        return content, sql.get_json_object(sql.col(MARKED), path)
    if key == "key" or bench.spec.mode != "upsert":
        return content, sql.col("key")
    if key.startswith(TYPED_KEYS):
        frame, found = content.frame, sql.col(f"`{key}`")
        if key.startswith(KEY_MEMBER):
            frame = with_marked(frame, sql.col("key"), KEY_TEXT)
            found = member_token(sql.col(KEY_TEXT), key.removeprefix(KEY_MEMBER))
        at = _key_at(bench, columns)
        steps = kind_steps(columns.all[at]) if at is not None else []
        frame = with_steps(frame, [KEY_TEXT], [found], [steps])
        return replace(content, frame=frame), sql.col(KEY_TEXT)
    named = with_text(content.frame, KEY_TEXT, key)
    return replace(content, frame=named), sql.col(KEY_TEXT)


def records_of(
    bench: Bench, side: TopicSide, ranges: tuple[PartitionRange, ...], *, with_tail: bool
) -> DataFrame:
    headers = bench.spec.key.startswith("header:") or side.connector is not None

    def read(parts: tuple[PartitionRange, ...], isolation: str, tail: bool) -> DataFrame:
        records = bench.records(parts, isolation=isolation, cluster=side.cluster, headers=headers)
        return records.withColumn("tail", sql.lit(tail))

    # A sink or a copy may read uncommitted records, as Kafka's consumers do by default.
    beyond = (
        (tuple(part.beyond_end for part in ranges), side.isolation),
        (tuple(part.open_offsets for part in ranges), UNCOMMITTED),
    )
    tails = [
        read(parts, isolation, tail=True)
        for parts, isolation in beyond
        if with_tail and any(part.length for part in parts)
    ]
    certain = read(ranges, side.isolation, tail=False)
    records = reduce(lambda one, other: one.unionByName(other), tails, certain)
    if side.connector is None:
        return records
    is_own = text_of(f"header:{LETTER_OF}") == side.connector
    return records.where(sql.coalesce(is_own, sql.lit(True)))


def _writes_lines(spec: Spec) -> bool:
    """Return whether records are compared with the lines that a sink wrote of them."""
    return (
        spec.job == "topic-sink"
        and isinstance(spec.left, TopicSide)
        and spec.left.value in {"bytes", "text"}
        and isinstance(spec.right, FileSide)
        and spec.right.format == "text"
        and not spec.columns
    )


def _line_end(side: FileSide) -> str:
    return side.options.get("lineSep", "\n")


def _with_lines(records: DataFrame, side: FileSide) -> DataFrame:
    """Return one row for each line that a file sink writes of a record; `value` is the line."""
    end, value = _line_end(side), sql.coalesce("value", sql.lit(b"null"))
    if side.lines:
        records, value = records.where("length(value) > 0"), sql.col("value")
    if side.lines == BASE64:
        # Some releases of Spark break long texts into lines.
        text = sql.regexp_replace(sql.base64(value), "\r\n", "")
        return records.withColumn("value", sql.encode(text, "US-ASCII"))
    # In this charset each byte is one character, so no byte changes.
    charset = "ISO-8859-1"
    parts = sql.split(sql.decode(value, charset), re.escape(end))
    lines = sql.transform(parts, lambda line: sql.encode(line, charset))
    several = sql.contains(value, sql.lit(end.encode()))
    found = records.withColumn(
        "value", sql.explode(sql.when(several, lines).otherwise(sql.array(value)))
    )
    return found.where("length(value) > 0") if side.lines else found


def line_of(side: FileSide) -> Column:
    """Return the line of a row that `_files` has made, as bytes."""
    value = sql.col("value").cast("string")
    if side.lines == ENVELOPE:
        envelope = sql.concat(sql.lit('{"value":'), value, sql.lit("}"))
        other = sql.expr(f"substring(CAST(value AS STRING), {len(NO_VALUE) + 1})")
        value = sql.when(value.startswith(NO_VALUE), other).otherwise(envelope)
    return value.cast("binary")


def _files(bench: Bench, side: FileSide, columns: Columns, plan: RowPlan | None) -> Rows:
    files = bench.files.get(side.place, FixedFiles())
    paths = tuple(map(str, files.copies)) or files.listed or side.paths
    ends = side is bench.spec.right and _writes_lines(bench.spec)
    line_end = _line_end(side) if ends else ""
    frame = load(bench, side, paths, line_end).withColumn("tail", sql.lit(False))
    if side.lines in {PLAIN, BASE64}:
        # A file may lack its last line if that is empty.
        frame = frame.where("length(value) > 0")
    elif side.lines == ENVELOPE:
        within = sql.regexp_extract("value", ENVELOPED, 1)
        # A line without an envelope must not equal the text of any value.
        other = sql.concat(sql.lit(NO_VALUE), "value")
        frame = frame.withColumn("value", sql.when(within != "", within).otherwise(other))
    tail = files.uncommitted or files.unfinished
    beyond = (str(tail),) if tail is not None else files.beyond
    if beyond:
        rest = load(bench, side, beyond, line_end).withColumn("tail", sql.lit(True))
        frame = frame.unionByName(rest, allowMissingColumns=side.complete)
    if plan is not None:
        rows = _from_plan(bench, frame, plan, "UTC")
    elif side.format in LINE_FORMATS:
        rows = _from_lines(bench, frame, side.value, columns)
    else:
        rows = _from_columns(bench, frame, columns)
    return Rows(name=", ".join(side.paths), rows=rows, side=side, files=files)


def _of_this_run(bench: Bench, frame: DataFrame, plan: RowPlan | None) -> DataFrame:
    """Leave out the rows of records before the ends of the last report."""
    left = bench.spec.left
    if not bench.spec.since_last or plan is None or not isinstance(left, TopicSide):
        return frame
    topic, partition, offset = (sql.col(quoted(name)) for name in plan.keys)
    for part in bench.snapshot(left.topics, left.cluster).partitions:
        of_part = (topic == part.topic) & (partition == part.partition)
        before = of_part & (offset < (part.asked_start or 0))
        # A row without a place may belong to this run.
        frame = frame.where(~sql.coalesce(before, sql.lit(False)))
    return frame


def _of_zone(frame: DataFrame, zone: str) -> DataFrame:
    """Return rows whose times without a zone have become instants, read in this zone."""
    local = [each.name for each in frame.schema if isinstance(each.dataType, TimestampNTZType)]
    times = {name: sql.col(quoted(name)).cast("timestamp") for name in local}
    found = {name: sql.to_utc_timestamp(time, zone) for name, time in times.items()}
    return frame.withColumns(found) if found and zone != "UTC" else frame


def _from_plan(bench: Bench, frame: DataFrame, plan: RowPlan, zone: str) -> DataFrame:
    """Shape rows of named columns as the rows that a connector makes of records."""
    content = table_content(frame, plan, zone)
    key = plan.key_columns(content.columns) if bench.spec.mode == "upsert" else []
    return _without_place(_shaped(bench, content, content.columns, key))


def _from_lines(bench: Bench, frame: DataFrame, form: str, columns: Columns) -> DataFrame:
    """Shape lines in one column `value`; if the topic has JSON, the lines are read as JSON."""
    topics = (side for side in (bench.spec.left, bench.spec.right) if isinstance(side, TopicSide))
    if form == "text" and any(side.value not in {"bytes", "text"} for side in topics):
        form = "json"
    at = _key_at(bench, columns)
    if columns.all:
        by_member = bench.spec.mode == "upsert" and at is None
        content = json_columns(frame, "json", columns, all_marked=by_member)
    else:
        content = whole_values(frame, form)
    if bench.spec.mode != "upsert":
        return _placeless(_shaped(bench, content, content.columns, []))
    if MARKED not in content.frame.columns:
        raise ReconcileError("lines of text have no keys: compare JSON lines, or rows")
    path = json_path(bench.spec.key.partition(":")[2] or bench.spec.key)
    found = sql.get_json_object(sql.col(MARKED), path) if at is None else content.columns[at]
    return _placeless(_shaped(bench, content, content.columns, [_as_key(bench, found)]))


def _from_columns(bench: Bench, frame: DataFrame, columns: Columns) -> DataFrame:
    content = typed_columns(frame, columns)
    key: list[Column] = []
    if bench.spec.mode == "upsert":
        at = _key_at(bench, columns)
        path = bench.spec.key.partition(":")[2] or bench.spec.key
        found = token(*field_of(frame, path)) if at is None else content.columns[at]
        key = [_as_key(bench, found)]
    return _without_place(_shaped(bench, content, content.columns, key))


def _as_key(bench: Bench, found: Column) -> Column:
    """Return a row's key as records have it: a text, or a token for a member of JSON or Avro."""
    typed = bench.spec.key.startswith(("json:", *TYPED_KEYS))
    return found if typed else without_mark(found)


def _without_place(rows: DataFrame) -> DataFrame:
    """Return rows of named columns with null in the columns of a place and of a value."""
    kept = [name for name in rows.columns if name in {*SHAPED, ROW}]
    return _placeless(rows.select(*kept).withColumn("value", sql.lit(None).cast("binary")))


def _placeless(rows: DataFrame) -> DataFrame:
    named = {"key": ROW} if ROW in rows.columns else {}
    for name, expression in {**NO_PLACE, **named}.items():
        rows = rows.withColumn(name, sql.expr(expression))
    return rows.withColumn("tombstone", sql.lit(False))


def _shaped(bench: Bench, content: Content, compared: list[Column], key: list[Column]) -> DataFrame:
    columns = dict(zip(HASHES, hashes(compared), strict=True))
    columns["unparsable"] = content.unparsable
    columns["unheld"] = content.unheld
    columns["copies"] = sql.lit(1).cast("bigint")
    if "tail" not in content.frame.columns:
        columns["tail"] = sql.lit(False)
    columns["keyless"] = columns["tied"] = sql.lit(False)
    if bench.spec.mode != "upsert":
        return content.frame.withColumns(columns)
    texts = [each.cast("binary") for each in key]
    columns["keyless"] = sql.coalesce(*texts).isNull()
    rows = content.frame.withColumns(columns)
    # Rows without a key are different ones: as versions of one key only the last would count.
    return rows.withColumns(
        {
            name: sql.when(sql.col("keyless"), sql.col(own)).otherwise(of_key)
            for name, own, of_key in zip(KEY_HASHES, HASHES, hashes(texts), strict=True)
        }
    )
