"""The last pass of a check: the places and keys of the few records and rows of its findings.

Places are offsets of topics, lines of files and keys of tables. A broadcast join keeps the wanted
records while the topic is read again. Only the kept places of a record pass through an exchange,
however often the record is repeated.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as sql
from pyspark.sql.types import StructField, StructType

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.compares.sides import KEY_HASHES, LANE_BITS, Rows, line_of
from pyconnect_reconcile.data_sides import FileSide
from pyconnect_reconcile.files import local_files, rows_of_lines
from pyconnect_reconcile.findings import Finding, Place, Severity, count_of, error
from pyconnect_reconcile.spec import Side, TopicSide
from pyconnect_reconcile.values.canonical import HASHES

# The number of copies that a finding names; all are counted. Spark keeps that many rows of each
# group before it exchanges them (`WindowGroupLimit`).
COPIES_KEPT = 10
AT = ("topic", "partition", "offset")
PLACE_COLUMNS = ("topic", "partition", "offset", "timestamp_ms", "CAST(key AS STRING) AS key")
SAMPLES = 10
MOST_LINES = 1000
UNHELD, MOST_FIELDS = "not-representable", 50
Identity = tuple[object, ...]
Places = Mapping[Identity, Sequence[Place]]
"""The keys are the values by which records are looked up."""


def places(
    records: DataFrame, wanted: Collection[Identity], on: Sequence[str], *, last: bool = False
) -> dict[Identity, list[Place]]:
    """Return the places of the records whose columns `on` have wanted values.

    Each value has its first COPIES_KEPT places, or with `last` the one of the highest offset.
    """
    if not wanted:
        return {}
    order = [sql.desc("offset"), sql.desc("partition")] if last else list(map(sql.col, AT))
    place = sql.row_number().over(Window.partitionBy(*on).orderBy(*order))
    others = [f"`{name}`" for name in on if name not in AT]
    rows = (
        _chosen(records, wanted, on)
        .selectExpr(*others, *PLACE_COLUMNS)
        .withColumn("place", place)
        .where(sql.col("place") <= (1 if last else COPIES_KEPT))
        .collect()
    )
    found: dict[Identity, list[Place]] = {}
    for row in sorted(rows, key=lambda row: int(row.place)):
        found.setdefault(identity_of(row, on), []).append(_place_of(row))
    return found


def _chosen(rows: DataFrame, wanted: Collection[Identity], on: Sequence[str]) -> DataFrame:
    kinds = StructType([StructField(name, rows.schema[name].dataType) for name in on])
    few = rows.sparkSession.createDataFrame(list({*wanted}), kinds)
    return rows.join(sql.broadcast(few), list(on), "left_semi")


def _place_of(row: Row) -> Place:
    return Place(
        topic=row.topic,
        partition=row.partition,
        offset=row.offset,
        timestamp_ms=row.timestamp_ms,
        key=row.key,
    )


def identity_of(row: Row, names: Sequence[str]) -> Identity:
    return tuple(row[name] for name in names)


def copies_of(bench: Bench, rows: Rows, found: list[Row], name: str) -> Places:
    """Return the first places of rows that differ, by their HASHES."""
    several = ("committed", "uncommitted") if name == "left" else ("there", "unsettled")
    wanted = [identity_of(row, HASHES) for row in found]
    if isinstance(rows.side, TopicSide) and all(
        sum(row[each] for each in several) == 1 and row[f"{name}_lane"] is not None for row in found
    ):
        at = places_in_topic(bench, rows.side, found, name)
        return {identity: [place] for identity, place in zip(wanted, at, strict=True)}
    return places_of(rows, wanted, HASHES)


def places_in_topic(bench: Bench, side: Side, rows: Sequence[Row], name: str) -> list[Place]:
    """Return the places in the columns NAME_lane and NAME_offset, with keys and times.

    The read covers only the offsets from the first to the last place of each partition.
    """
    assert isinstance(side, TopicSide)
    wanted = [
        (
            side.topics[row[f"{name}_lane"] >> LANE_BITS],
            row[f"{name}_lane"] & (1 << LANE_BITS) - 1,
            row[f"{name}_offset"],
        )
        for row in rows
    ]
    if not wanted:
        return []
    offsets: dict[tuple[str, int], list[int]] = {}
    for topic, partition, offset in wanted:
        offsets.setdefault((topic, partition), []).append(offset)
    ranges = [
        replace(part, start=min(among), end=max(among) + 1)
        for part in bench.snapshot(side.topics, side.cluster).partitions
        if (among := offsets.get((part.topic, part.partition)))
    ]
    records = bench.records(ranges, isolation=side.isolation, cluster=side.cluster)
    found = places(records, wanted, AT)
    return [found[at][0] for at in wanted]


def places_of(rows: Rows, wanted: Collection[Identity], on: Sequence[str]) -> Places:
    """Return the places of a side's rows: the last one for KEY_HASHES; none for files with columns.

    Lines are found again in local files; their text stays here.
    """
    match rows.side:
        case TopicSide():
            return places(rows.rows, wanted, on, last=on is KEY_HASHES)
        case FileSide(format="text" | "json") as side:
            line = line_of(side).alias("line")
            lines = _chosen(rows.rows, wanted, on).select(*on, line).distinct()
            found = lines.limit(max(MOST_LINES, len(wanted))).collect() if wanted else []
            at = _places_of_lines(rows, side, {bytes(row.line) for row in found})
            return {identity_of(row, on): at[bytes(row.line)] for row in found}
        case FileSide():
            return {}
    named = rows.rows.where("NOT tail AND key IS NOT NULL")
    return {
        row: [replace(place, table=rows.name) for place in where]
        for row, where in places(named, wanted, on, last=on is KEY_HASHES).items()
    }


def places_of_strange(rows: Rows, strange: DataFrame) -> list[Place]:
    """Return the places of rows that do not parse."""
    match rows.side:
        case TopicSide():
            return places_of_records(strange)
        case FileSide(format="text" | "json") as side:
            lines = strange.select(line_of(side).alias("line")).distinct().collect()
            found = _places_of_lines(rows, side, {bytes(row.line) for row in lines})
            return [place for places in found.values() for place in places][:SAMPLES]
    return []


def _places_of_lines(rows: Rows, side: FileSide, lines: set[bytes]) -> Mapping[bytes, list[Place]]:
    """Find lines in the files, up to the end of a committed part."""
    copies = {str(copy): name for copy, name in rows.files.copies.items()}
    files = list(rows.files.copies) or local_files(rows.files.listed or side.paths)
    return {
        line: [Place(file=copies.get(file, file), row=row) for file, row in where]
        for line, where in rows_of_lines(files, lines).items()
    }


def places_of_records(records: DataFrame) -> list[Place]:
    """Return the places of records in topics."""
    return list(map(_place_of, records.selectExpr(*PLACE_COLUMNS).collect()))


def unparsable_finding(
    records: DataFrame,
    wrong: Column,
    *,
    count: int,
    rows: int,
    what: str,
    fatal: bool,
    of: str = "record",
    fate: str = "left out",
    places: Callable[[DataFrame], Sequence[Place]] = places_of_records,
) -> list[Finding]:
    """Return one finding with samples of the `count` records for which `wrong` holds.

    `rows` is the number of all records (or of `of`): when none is usable the finding is UNKNOWN.
    `places` finds the samples.
    """
    if count == 0:
        return []
    severity = Severity.NOTE
    if fatal:
        severity = Severity.ERROR
    elif count >= rows:
        severity = Severity.UNKNOWN
    return [
        Finding(
            kind="unparsable",
            severity=severity,
            message=f"{count:,} of {count_of(rows, of)} {'has' if count == 1 else 'have'} no"
            f" {what}; {fate}",
            count=count,
            copies=tuple(places(records.where(wrong).limit(SAMPLES))),
        )
    ]


def unheld_findings(lost: DataFrame, sink: str) -> list[Finding]:
    """Return one finding for each field whose value in `lost` rows the sink's columns cannot hold.

    `lost` are rows of a topic (`compares.sides`) that are not in the sink.
    """
    each = lost.withColumn("field", sql.explode("unheld"))
    counted = each.groupBy("field").count().orderBy(sql.desc("count"), "field")
    rows = counted.limit(MOST_FIELDS).collect()
    found = places(each, [(field,) for field, _ in rows], ("field",))
    return [
        error(
            kind=UNHELD,
            message=f"{count_of(count, f'value of `{field}` has')}"
            f" no place in {sink}: its columns cannot hold such values",
            of="field",
            group=field,
            count=count,
            copies=tuple(found[field,]),
        )
        for field, count in rows
    ]
