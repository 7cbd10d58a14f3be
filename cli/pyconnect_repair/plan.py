"""Findings as changes of rows: written, deleted and refused rows, with reasons. Pure.

A row is an *image*: the text of each column, as the database writes it. A change moves the rows of
one identity from the images `before` to the images `after`. It can therefore be carried out,
carried out again after a kill, and undone in the other direction.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any, Generic, TypeAlias, TypeVar

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import COPIES, Severity

Image: TypeAlias = Mapping[str, Any]
"""Texts by column, null as None; SQLite's numbers and texts as they are stored."""
Place: TypeAlias = tuple[str, int, int]
"""Topic, partition, offset."""
REPAIRED_JOBS = frozenset({"topic-sink", "topic-topic", "source-topic"})
_Target = TypeVar("_Target")
_REPAIRED = frozenset({"missing", "different", "extra", "repeated"})


class Refused(Exception):
    """A target without a safe change; the text is the reason."""


class RowState(Enum):
    """The state of the rows of a change, compared with its images."""

    TO_DO = "as before the change"
    DONE = "as after the change"
    CHANGED = "neither"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A finding: the record or the key of its row, with the expected and the present copies."""

    kind: str
    place: Place | None = None
    key: Mapping[str, str] | None = None
    expected: int
    there: int

    @property
    def name(self) -> str:
        """The name of the row in plans and refusals."""
        if self.place is not None:
            return f"the row of {self.place[0]}:{self.place[1]}@{self.place[2]}"
        return f"the row {json.dumps(self.key, ensure_ascii=False)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """The rows of `identity` (columns with their texts) before and after; `name` is for people."""

    kind: str
    name: str
    identity: Image
    before: Sequence[Image]
    after: Sequence[Image]

    def state_of(self, found: Iterable[Image]) -> RowState:
        rows = _multiset(found)
        if rows == _multiset(self.before):
            return RowState.TO_DO
        return RowState.DONE if rows == _multiset(self.after) else RowState.CHANGED

    @property
    def rows(self) -> int:
        """The number of rows that are written or deleted."""
        after, before = difference(self.after, self.before), difference(self.before, self.after)
        return max(len(after), len(before))

    @property
    def undone(self) -> RowChange:
        """The change in the other direction."""
        return replace(self, before=self.after, after=self.before)

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings(Generic[_Target]):
    """The targets of a report, and the reasons for findings that cannot be repaired."""

    targets: tuple[_Target, ...]
    refused: tuple[str, ...]


def difference(rows: Iterable[Image], others: Iterable[Image]) -> list[Image]:
    """Return the rows that are not among the others; repeated rows count one by one."""
    left = _multiset(others)
    found = []
    for row in rows:
        text = _text(row)
        if left[text] > 0:
            left[text] -= 1
        else:
            found.append(row)
    return found


def findings_of(report: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> Findings[Wanted]:
    """Return the targets of a report's findings; ReconcileError if no plan can follow from it."""
    findings = list(lines)
    require_complete(report, findings)
    return targets_of(findings, _target)


def targets_of(
    findings: Iterable[Mapping[str, Any]], target: Callable[[Mapping[str, Any]], _Target | str]
) -> Findings[_Target]:
    """Return the targets of findings that are errors; a text from `target` refuses one."""
    targets, refused = [], []
    for finding in findings:
        if finding["severity"] != Severity.ERROR.value:
            continue
        found = target(finding)
        if isinstance(found, str):
            refused.append(f"{finding['kind']}: {found}")
        else:
            targets.append(found)
    return Findings(targets=tuple(targets), refused=tuple(dict.fromkeys(refused)))


def decided(target: Wanted, before: Sequence[Image], image: Image | None) -> Sequence[Image] | None:
    """Return the rows after the change; None when the rows differ from those of the report.

    `image` is the row of the target's record.
    """
    match target.kind:
        case "missing":
            assert image is not None
            more = target.expected - target.there
            return [*before, *[image] * more] if len(before) == target.there else None
        case "different":
            assert image is not None
            return [image] if len(before) == 1 and before[0] != image else None
    return before[: target.expected] if len(before) == target.there else None


def require_complete(report: Mapping[str, Any], findings: Sequence[Mapping[str, Any]]) -> None:
    """Raise ReconcileError for an undecided report, and for one that does not name all rows."""
    if report["job"] not in REPAIRED_JOBS or not report["target"]:
        raise ReconcileError(
            f"a report of {report['job']} {report['target']}".rstrip() + " cannot be repaired:"
            " only rows of tables of SqlSink and LakeSink are, and topics that were compared with"
            " another or with their source",
            hint="audit a connector by its name, pyconnect reconcile topic-sink or source-topic"
            " CONNECTOR, or two topics",
        )
    if report["verdict"] != "differ":
        raise ReconcileError(f"the verdict of the report is {report['verdict']}: nothing to repair")
    named: Counter[str] = Counter()
    for finding in findings:
        if finding["severity"] == Severity.UNKNOWN.value:
            raise ReconcileError(
                f"the audit could not decide: {finding['message']}",
                hint="audit again when nothing is unknown any more",
            )
        named[finding["kind"]] += finding["count"]
    for kind in sorted(_REPAIRED):
        total = report["totals"].get(kind, 0)
        if named[kind] < total:
            raise ReconcileError(
                f"the report names {named[kind]:,} of {total:,} rows that are {kind}: a repair"
                " needs all of them",
                hint=f"audit again with --findings {total}",
            )


def _target(finding: Mapping[str, Any]) -> Wanted | str:
    kind, copies = finding["kind"], finding.get("copies", ())
    place = next(
        ((copy["topic"], copy["partition"], copy["offset"]) for copy in copies if "offset" in copy),
        None,
    )
    key = next((key_of(copy["key"]) for copy in copies if "table" in copy and "key" in copy), None)
    expected, there = finding["count"], 0
    if finding.get("of") == COPIES:
        expected, there = finding["first"], finding["last"]
    match kind:
        case "missing" | "different" if place is not None:
            return Wanted(kind=kind, place=place, expected=expected, there=there)
        case "extra" if key is not None:
            return Wanted(kind=kind, key=key, expected=0, there=finding["count"])
        case "extra":
            return "the report does not name the row: its table has no key, or keys are hidden"
        case "repeated" if place is not None:
            return Wanted(kind=kind, place=place, expected=expected, there=there)
        case "repeated":
            return "rows of one key differ, and no rule says which of them is the right one"
    return f"{finding['message']}: this kind of finding has no repair"


def key_of(text: str) -> Mapping[str, str] | None:
    """Return the columns of a row's key with their texts; None if they are hidden."""
    try:
        found = json.loads(text)
    except ValueError:
        # The text is a hash of --hide-keys.
        return None
    return found if isinstance(found, dict) else None


def _multiset(rows: Iterable[Image]) -> Counter[str]:
    return Counter(map(_text, rows))


def _text(row: Image) -> str:
    return json.dumps(row, sort_keys=True)
