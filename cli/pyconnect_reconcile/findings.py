"""The findings of a check, the intervals that they name, and their verdict. Pure."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import partial
from itertools import pairwise
from typing import NamedTuple

COPIES = "copies"
"""A finding's `of`: `first` is the expected number of copies, `last` the present number."""


class Severity(Enum):
    """The effect of a finding on the verdict."""

    ERROR = "error"
    """The sides differ, or records are lost or repeated."""
    UNKNOWN = "unknown"
    """It could not be determined whether there is a fault."""
    NOTE = "note"
    """An explanation that does not change the verdict."""


class Verdict(Enum):
    """The answer of a run; the value is its exit code."""

    AGREE = 0
    DIFFER = 1
    UNKNOWN = 11

    @property
    def word(self) -> str:
        """`agree`, `differ` or `unknown`."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a record, or of a row of a file (`file`, and `row` from 1 if it is known).

    `key` is a text; None for no key, or one that was not looked up. A row of a `table` is found by
    its key: a JSON object of the key columns' texts.
    """

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    key: str | None = None
    visible: bool | None = None
    """Whether read_committed shows it; None when that makes no difference."""
    file: str | None = None
    row: int | None = None
    table: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding of a check.

    `first` and `last` are an interval of `of`, offsets or sequence numbers; with COPIES they are
    two numbers of copies. `group` is the source id, `key` the identity of a repeated record.
    `copies` are the places of the first copies.
    """

    kind: str
    severity: Severity
    message: str
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    key: str | None = None
    of: str | None = None
    first: int | None = None
    last: int | None = None
    count: int = 1
    copies: tuple[Place, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the member of a report or the line of NDJSON, without members that are None."""
        shown = _known(self)
        shown["severity"] = self.severity.value
        del shown["copies"]
        if self.copies:
            shown["copies"] = list(map(_known, self.copies))
        return shown


error = partial(Finding, severity=Severity.ERROR)
unknown = partial(Finding, severity=Severity.UNKNOWN)
note = partial(Finding, severity=Severity.NOTE)


def _known(value: Finding | Place) -> dict[str, object]:
    members = {one.name: getattr(value, one.name) for one in fields(value)}
    return {name: member for name, member in members.items() if member is not None}


_SEVERAL = {"is": "are", "has": "have", "was": "were"}


def count_of(number: int, one: str) -> str:
    """Return `1 row of t has` and `2,000 rows of t have` for `row of t has`."""
    if number == 1:
        return f"1 {one}"
    noun, *rest = one.split(" ")
    return " ".join([f"{number:,} {noun}s", *rest[:-1], *(_SEVERAL.get(w, w) for w in rest[-1:])])


def hidden(key: str) -> str:
    """Return a hash for a key, so that equal keys stay equal."""
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def with_hidden_keys(finding: Finding) -> Finding:
    """Return the finding with hashes of keys in place of the keys."""

    def hide(place: Place) -> Place:
        return place if place.key is None else replace(place, key=hidden(place.key))

    return replace(
        finding,
        key=None if finding.key is None else hidden(finding.key),
        copies=tuple(map(hide, finding.copies)),
    )


def undecided(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings on left-out records with NOTE raised to UNKNOWN: the check cannot agree."""
    return tuple(
        replace(finding, severity=Severity.UNKNOWN)
        if finding.severity is Severity.NOTE
        else finding
        for finding in findings
    )


def most_severe(findings: Iterable[Finding], limit: int) -> list[Finding]:
    """Return up to `limit` findings, the most severe first."""
    order = [*Severity]
    return sorted(findings, key=lambda finding: order.index(finding.severity))[:limit]


def of_every_kind(kinds: Sequence[str], limit: int) -> list[int]:
    """Return the indexes of up to `limit` findings, the first ones of each kind."""
    turns: Counter[str] = Counter()
    ranked = []
    for index, kind in enumerate(kinds):
        ranked.append((turns[kind], index))
        turns[kind] += 1
    return sorted(index for _, index in sorted(ranked)[:limit])


def grouped(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings with equal ones merged; `count` is the sum of theirs."""
    counts: dict[Finding, int] = {}
    for finding in findings:
        alone = replace(finding, count=0)
        counts[alone] = counts.get(alone, 0) + finding.count
    return [replace(finding, count=count) for finding, count in counts.items()]


MASK_BITS = 64
"""A mask stands for the 64 numbers of a bucket, from `bucket * 64` on; bit i is set when number i
is there. Spark's longs are signed: bit 63 is the sign."""


class Interval(NamedTuple):
    """The numbers from `first` to `last`, both included."""

    first: int
    last: int

    @property
    def length(self) -> int:
        """The count of the interval's numbers."""
        return self.last - self.first + 1


def numbers_of(bucket: int, mask: int) -> Iterator[int]:
    """Yield the numbers that a mask holds, ascending."""
    base = bucket * MASK_BITS
    return (base + bit for bit in range(MASK_BITS) if mask >> bit & 1)


def holes_within(bucket: int, mask: int) -> list[Interval]:
    """Return the intervals of numbers that a mask lacks between those that it holds."""
    return [
        Interval(before + 1, after - 1)
        for before, after in pairwise(numbers_of(bucket, mask))
        if after > before + 1
    ]


def runs_of(numbers: Iterable[int]) -> list[Interval]:
    """Return the intervals that ascending numbers fill."""
    runs: list[Interval] = []
    for number in numbers:
        if runs and number == runs[-1].last + 1:
            runs[-1] = Interval(runs[-1].first, number)
        else:
            runs.append(Interval(number, number))
    return runs


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCounts:
    """The counts of one partition; None: not counted by the job."""

    topic: str
    partition: int
    rows_committed: int | None = None
    rows_uncommitted: int | None = None
    markers: int | None = None
    aborted: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutcome:
    """The result of a job.

    `totals` counts findings by kind, also those that were not kept; `series` has the data of the
    report's charts, by name. `not_compared` names what the job does not compare.
    """

    findings: tuple[Finding, ...] = ()
    totals: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    partitions: tuple[PartitionCounts, ...] = ()
    series: Mapping[str, object] = field(default_factory=dict)
    not_compared: tuple[str, ...] = ()


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """Return the verdict on findings: a difference outweighs an undecided check."""
    severities = {finding.severity for finding in findings}
    if Severity.ERROR in severities:
        return Verdict.DIFFER
    return Verdict.UNKNOWN if Severity.UNKNOWN in severities else Verdict.AGREE
