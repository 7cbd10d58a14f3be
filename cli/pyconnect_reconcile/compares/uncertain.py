"""Uncertain differences of a comparison, with the reasons.

Removed records may have been what the other side has. A sink may have written rows after its topic
was looked at, where its rows could not be copied first: to a table, or in files that are no lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.capture import ends_moved, is_bounded
from pyconnect_reconcile.compares import stages
from pyconnect_reconcile.compares.sides import Rows
from pyconnect_reconcile.findings import Finding, Severity, count_of
from pyconnect_reconcile.spec import Spec, TopicSide

SURPLUS = frozenset({"extra", "repeated"})


def doubted(bench: Bench, left: Rows, right: Rows, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with those that prove nothing as unknown, and the reasons."""
    found = {finding.kind for finding in findings if finding.severity is Severity.ERROR}
    doubts: list[tuple[frozenset[str], Finding]] = []
    for rows, kinds in ((left, SURPLUS), (right, frozenset({"missing"}))):
        if not isinstance(rows.side, TopicSide):
            continue
        parts = bench.snapshot(rows.side.topics, rows.side.cluster).partitions
        if removed := sum(len(part.removed) for part in parts):
            reason = Finding(
                kind="expired",
                severity=Severity.UNKNOWN,
                message=f"{count_of(removed, f'offset at the beginning of {rows.name} has')} been"
                f" removed: records that are {' or '.join(sorted(kinds))} may have been among them",
                count=removed,
            )
            doubts.append((kinds, reason))
    kinds = SURPLUS | ({"different", "missing"} if bench.spec.mode == "upsert" else frozenset())
    if (
        kinds & found
        and isinstance(left.side, TopicSide)
        and not right.files.copies
        and is_bounded(bench.spec, left.side)
        and ends_moved(bench.spec, left.side, bench.snapshot(left.side.topics, left.side.cluster))
    ):
        reason = Finding(
            kind="written-meanwhile",
            severity=Severity.UNKNOWN,
            message=f"{left.name} received records while {right.name} was read: records that"
            f" are {' or '.join(sorted(kinds))} may come from them",
        )
        doubts.append((kinds, reason))
    doubts = [each for each in doubts if each[0] & found]
    proving_nothing = frozenset[str]().union(*(kinds for kinds, _ in doubts))
    return [
        *(
            replace(finding, severity=Severity.UNKNOWN)
            if finding.kind in proving_nothing and finding.severity is Severity.ERROR
            else finding
            for finding in findings
        ),
        *(reason for _, reason in doubts),
    ]


def under_way(
    spec: Spec, left: Rows, right: Rows, sums: stages.Checksums, *, ahead: int
) -> Iterator[Finding]:
    """Explain the rows of the left's tail: without them the counts of both sides do not add up.

    So many of them are `ahead`, on the right already. In a chain of reports the right's place in
    the next one is behind them, the left's before them.
    """
    if not sums.tail_left:
        return
    chained = ahead > 0 and spec.since_last and spec.job == "topic-topic"
    later = "; the next run reads these again" if chained else ""
    yield Finding(
        kind="under-way",
        severity=Severity.UNKNOWN if chained else Severity.NOTE,
        message=f"{count_of(sums.tail_left, f'row of {left.name} is')} beyond the compared"
        f" offsets; already in {right.name}: {ahead:,}{later}",
        count=sums.tail_left,
    )


def unfinished(
    right: Rows, sums: stages.Checksums, compared: tuple[DataFrame, DataFrame], *, missing: int
) -> Iterator[Finding]:
    """Yield the rows of the right's tail, and how many of the left are there with them only.

    `missing` rows of the `compared` sides are not even among them.
    An open transaction may still be aborted, and a line without an end may be half of one.
    """
    every = replace(sums, bad=tuple(range(sums.buckets)))
    certain = stages.differing_rows(compared[0], compared[1].where("NOT tail"), every)
    [row] = certain.selectExpr("coalesce(sum(missing), 0) AS missing").collect()
    needed = int(row.missing) - missing
    said = f"; {needed:,} of them are expected" if needed > 0 else ""
    yield Finding(
        kind="unfinished",
        severity=Severity.UNKNOWN if needed > 0 else Severity.NOTE,
        message=f"{count_of(sums.tail_right, f'row of {right.name} is')}"
        f" not finished (a last line without an end, or an open transaction), not extra{said}",
        count=sums.tail_right,
    )


def keyless_tombstones(spec: Spec, rows: Rows, side: TopicSide) -> Iterator[Finding]:
    """Yield tombstones where keys are in the values: what they have removed is not known."""
    if spec.mode != "upsert" or side.row is not None:
        return
    if spec.key.partition(":")[0] in {"key", "key.json", "header", "timestamp"}:
        return
    if count := rows.rows.where("tombstone AND NOT tail").count():
        yield Finding(
            kind="keyless",
            severity=Severity.UNKNOWN,
            message=f"{count_of(count, f'tombstone in {rows.name} has')}"
            f" no key (`{spec.key}`): whether what is removed is gone was not compared; name a key"
            " of the record (`key.json:PATH`)",
            count=count,
        )
