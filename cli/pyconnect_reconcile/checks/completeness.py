"""completeness: rows of two or more tiers by event time, their latency and differences.

The first tier is the reference. A span that had not ended when the run began may still be under
way: it does not affect the verdict. Fewer rows of a topic prove nothing where its range begins
behind other records or ends before them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sql

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.compares.sides import named_rows, rows_of
from pyconnect_reconcile.data_sides import FileSide
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import (
    CheckOutcome,
    Finding,
    Severity,
    count_of,
    most_severe,
    unknown,
)
from pyconnect_reconcile.spec import Tier, TopicSide
from pyconnect_reconcile.topics.range_findings import of_ranges, refuse_compacted
from pyconnect_reconcile.values.extract import with_text
from pyconnect_reconcile.values.normal import field_of

MOST_BUCKETS = 100_000
MINUTE_MS = 60_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A span begins before its first event: leaving out the year 1 allows spans of up to a year.
EARLIEST_MS, LATEST_MS = (
    (datetime(*day, tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)
    for day in ((2, 1, 1), (9999, 12, 31))
)
TIMESTAMP = "timestamp"
UNTOLD = {
    "empty-range": "no tier has a row with an event time",
    "under-way": "no span had ended when the tiers were read: every difference may be data under"
    " way",
    "too-many-spans": f"only the first {MOST_BUCKETS:,} spans were checked; a larger"
    " bucket_minutes gives fewer spans",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bucket:
    """One span of event time; tiers as in the spec; latencies in ms, None: unknown."""

    time: str
    under_way: bool
    future: bool
    rows: tuple[int, ...]
    latency_ms: tuple[int | None, ...]


def check(bench: Bench) -> CheckOutcome:
    """Count every tier by event time and compare each with the first."""
    spec = bench.spec
    snapshots = [
        bench.snapshot(tier.side.topics, tier.side.cluster)
        for tier in spec.tiers
        if isinstance(tier.side, TopicSide)
    ]
    for snapshot in snapshots:
        refuse_compacted(snapshot, "completeness")
    bench.events.step("counting the tiers by event time")
    names = [tier.name for tier in spec.tiers]
    length_ms = spec.bucket_minutes * MINUTE_MS
    counted = [_counted(bench, tier, index, length_ms) for index, tier in enumerate(spec.tiers)]
    joined = reduce(lambda one, other: one.join(other, "bucket", "full_outer"), counted)
    # Rows without an event time come first.
    rows = joined.orderBy("bucket").limit(MOST_BUCKETS + 2).collect()
    dated = [row for row in rows if row.bucket is not None]
    kept = dated[:MOST_BUCKETS]
    # The snapshot of saved ranges is older than the run.
    taken_ms = min([bench.begun_ms, *(snapshot.taken_ms for snapshot in snapshots)])
    buckets = [_bucket(row, len(names), length_ms, taken_ms) for row in kept]
    # One row for each tier: a join does not match nulls.
    without = [_counts(row, len(names)) for row in rows if row.bucket is None]
    timeless = [sum(counts) for counts in zip(*without, strict=True)] or [0] * len(names)
    elsewhere = _elsewhere(bench, buckets, timeless)
    differing = [
        _difference(names, index, bucket, elsewhere[index])
        for bucket in buckets
        for index in range(1, len(names))
        if bucket.rows[index] != bucket.rows[0]
    ]
    found = {
        "empty-range": not dated,
        "under-way": dated and all(bucket.under_way for bucket in buckets),
        "too-many-spans": len(dated) > len(kept),
    }
    untold = [unknown(kind=kind, message=UNTOLD[kind]) for kind, is_so in found.items() if is_so]
    for snapshot in snapshots:
        untold += of_ranges(snapshot, Severity.UNKNOWN, "their rows are not counted")
    if strange := sum(timeless):
        said = count_of(strange, "row has")
        untold.append(
            Finding(
                kind="unparsable",
                severity=Severity.ERROR if spec.fail_unparsable else Severity.UNKNOWN,
                message=f"{said} no event time at the given place; left out",
                count=strange,
            )
        )
    totals = {
        f"rows_{name}": sum(bucket.rows[index] for bucket in buckets)
        for index, name in enumerate(names)
    }
    return CheckOutcome(
        findings=(*untold, *most_severe(differing, spec.findings)),
        totals={"difference": len(differing), "unparsable": strange},
        counts={"buckets": len(buckets), **totals},
        series={"tiers": names, "buckets": [asdict(bucket) for bucket in buckets]},
        not_compared=("the rows themselves: only their number in each span",),
    )


def _counted(bench: Bench, tier: Tier, index: int, length_ms: int) -> DataFrame:
    """Return one tier's rows and greatest latency by bucket."""
    files = isinstance(tier.side, FileSide)
    if files and tier.event_time == TIMESTAMP:
        raise ReconcileError(
            f"tier {tier.name}: rows of files have no timestamp of their own",
            hint="give the place of the event time, for example json:$.time",
        )
    named = named_rows(bench, tier.side)
    rows = rows_of(bench, tier.side).rows if named is None else named
    if named is not None:
        column = tier.event_time.partition(":")[2] or tier.event_time
        event_ms = _as_ms(field_of(named, column)[0].cast("string"))
    elif tier.event_time == TIMESTAMP:
        event_ms = sql.col("timestamp_ms")
    else:
        rows = with_text(rows, "event_time", tier.event_time)
        event_ms = _as_ms(sql.col("event_time"))
    # Other times have no date; formatting them would end the run.
    dated = event_ms.between(EARLIEST_MS, LATEST_MS)
    rows = rows.withColumn("event_ms", sql.when(dated, event_ms))
    if bench.spec.since_ms is not None:
        # The range of a topic has only a part of a span that begins earlier.
        begun = -(-bench.spec.since_ms // length_ms) * length_ms
        rows = rows.where(sql.col("event_ms").isNull() | (sql.col("event_ms") >= begun))
    latency = sql.max(sql.col("timestamp_ms") - sql.col("event_ms"))
    return rows.groupBy(
        sql.floor(sql.col("event_ms") / length_ms).cast("bigint").alias("bucket")
    ).agg(sql.count("*").alias(f"rows_{index}"), latency.alias(f"latency_{index}"))


def _as_ms(text: Column) -> Column:
    """Read ms since the epoch, or a date and time: Spark would date a time alone as today."""
    dated = sql.when(text.rlike(r"^\s*[+-]?\d{4,}-"), text)
    return sql.coalesce(text.cast("bigint"), sql.unix_millis(dated.cast("timestamp")))


def _counts(row: Row, tiers: int) -> tuple[int, ...]:
    return tuple(row[f"rows_{index}"] or 0 for index in range(tiers))


def _bucket(row: Row, tiers: int, length_ms: int, taken_ms: int) -> _Bucket:
    start = EPOCH + timedelta(milliseconds=row.bucket * length_ms)
    return _Bucket(
        # strftime omits the leading zeros of early years.
        time=start.isoformat(" ", "minutes").removesuffix("+00:00"),
        under_way=(row.bucket + 1) * length_ms > taken_ms,
        future=(row.bucket - 1) * length_ms > taken_ms,
        rows=_counts(row, tiers),
        latency_ms=tuple(row[f"latency_{index}"] for index in range(tiers)),
    )


def _elsewhere(
    bench: Bench, buckets: Sequence[_Bucket], timeless: Sequence[int]
) -> list[Mapping[int, str]]:
    """Return where missing rows may be: per tier, by the index of the tier that has fewer.

    The rows may be outside of a range that is cut; spans before `since_ms` do not count. Otherwise
    they may be rows without an event time, when a tier has enough of those for all spans that have
    ended.
    """
    by_time = bench.spec.since_ms is not None
    cut = [
        isinstance(side, TopicSide)
        and any(
            part.ends_early or (part.removed if by_time else part.begins_late)
            for part in bench.snapshot(side.topics, side.cluster).partitions
        )
        for side in (tier.side for tier in bench.spec.tiers)
    ]
    found: list[Mapping[int, str]] = []
    for index in range(len(cut)):
        places = {}
        for tier, other in ((index, 0), (0, index)):
            over = (bucket.rows for bucket in buckets if not bucket.under_way)
            fewer = sum(max(rows[other] - rows[tier], 0) for rows in over)
            if cut[tier]:
                places[tier] = "outside of the range that was read"
            elif fewer <= timeless[tier]:
                places[tier] = "among its rows without an event time"
        found.append(places)
    return found


def _difference(
    names: Sequence[str], index: int, bucket: _Bucket, elsewhere: Mapping[int, str]
) -> Finding:
    delta = bucket.rows[index] - bucket.rows[0]
    words = count_of(abs(delta), f"row {'more' if delta > 0 else 'fewer'}")
    severity, tail = Severity.ERROR, ""
    if bucket.future:
        severity, tail = Severity.UNKNOWN, "; the span lies in the future"
    elif bucket.under_way:
        severity, tail = Severity.NOTE, "; the span had not ended yet"
    elif where := elsewhere.get(0 if delta > 0 else index):
        severity, tail = Severity.UNKNOWN, f"; the others may be {where}"
    return Finding(
        kind="difference",
        severity=severity,
        message=f"{bucket.time}: {words} in {names[index]} than in {names[0]}{tail}",
        group=names[index],
        count=abs(delta),
    )
