"""The report of a run as one document, and its files: JSON, NDJSON, Parquet and a page.

This process writes all of them, so executors need no access to the directory.

Schema version 1, described in docs/reference/reconciliation.md. Members are added within a
version, never changed. The report has no values of records and no secrets: it shows the spec
without its files.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pyconnect_reconcile.capture import Base
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import (
    COPIES,
    CheckOutcome,
    Finding,
    Place,
    Severity,
    Verdict,
    grouped,
    of_every_kind,
    verdict_of,
    with_hidden_keys,
)
from pyconnect_reconcile.report.page import page
from pyconnect_reconcile.spec import MAIN, Spec, question_of, source_position
from pyconnect_reconcile.topics.snapshot import TopicsSnapshot

SCHEMA_VERSION = 1
# The document keeps that many findings, some of each kind; findings/ has all that were kept.
SAMPLES = 50
_ORDER = (Severity.ERROR, Severity.UNKNOWN, Severity.NOTE)
GAP_NOTE = (
    "An offset without a record is not a lost record: transaction markers take offsets, and"
    " committed reads leave out aborted records."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a run; times in ms since the epoch.

    `iceberg` are the snapshots of Iceberg tables by side: `table_uuid` and `snapshot_id`. `digests`
    are those of a source's committed lines, by side.
    """

    spec: Spec
    snapshots: Mapping[str, TopicsSnapshot]
    outcome: CheckOutcome
    started_ms: int
    duration_ms: int
    spark_version: str
    base: Base | None = None
    iceberg: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.outcome.findings)

    @property
    def findings(self) -> list[Finding]:
        """The findings, with equal ones merged."""
        return grouped(self.outcome.findings)

    def to_json(self) -> dict[str, object]:
        outcome, spec, findings = self.outcome, self.spec, self.findings
        links = self.base.links if self.base else ()
        kinds = [finding.kind for finding in findings]
        return {
            "schema_version": SCHEMA_VERSION,
            "job": spec.job,
            "target": spec.target,
            "verdict": self.verdict.word,
            "exit_code": self.verdict.value,
            "started_ms": self.started_ms,
            "duration_ms": self.duration_ms,
            "spark_version": self.spark_version,
            "question": question_of(spec),
            # Only members of the spec that hold no credentials.
            "asked": {
                "topics": list(spec.topics),
                "clusters": {name: cluster.bootstrap for name, cluster in spec.clusters.items()},
                "isolation": spec.isolation,
                "sequence": spec.sequence,
                "group": spec.group,
                "identity": spec.identity,
                "mode": spec.mode,
                "since": {topic: dict(offsets) for topic, offsets in spec.since.items()},
                "since_ms": spec.since_ms,
                "until": {topic: dict(offsets) for topic, offsets in spec.until.items()},
                "stable_only": spec.stable_only,
                "columns": [column.name for column in spec.columns],
                "duplicates_allowed": spec.duplicates_allowed,
                "position": list(source_position(spec)),
            },
            "counts": dict(outcome.counts),
            "totals": {kind: count for kind, count in outcome.totals.items() if count},
            "findings": [findings[index].to_json() for index in of_every_kind(kinds, SAMPLES)],
            "findings_kept": len(findings),
            "findings_by_kind": dict(Counter(kinds)),
            "partitions": [asdict(counts) for counts in outcome.partitions],
            "series": dict(outcome.series),
            "not_compared": list(outcome.not_compared),
            # The reports that this one continues, if its spec asked for that.
            **({"chain": [asdict(link) for link in links]} if spec.since_last else {}),
            **({"iceberg": self.iceberg} if self.iceberg else {}),
            **({"digests": self.digests} if self.digests else {}),
            "notes": [GAP_NOTE, *spec.notes],
            # The snapshot is the input for `--ranges` of another run.
            "snapshot": main.to_json() if (main := self.snapshots.get(MAIN)) else None,
            "snapshots": {name: each.to_json() for name, each in self.snapshots.items()},
        }


def arranged(outcome: CheckOutcome, *, hide_keys: bool) -> CheckOutcome:
    """Return the outcome with its findings by severity and place; `hide_keys` hides their keys."""

    def rank(finding: Finding) -> tuple[int, str, str, int, int, str]:
        place = next(iter(finding.copies), Place())
        partition, offset = finding.partition, finding.first
        if finding.copies and (offset is None or finding.of == COPIES):
            partition = place.partition
            offset = place.offset if place.offset is not None else place.row or -1
        return (
            _ORDER.index(finding.severity),
            finding.kind,
            finding.topic or place.topic or place.file or "",
            partition if partition is not None else -1,
            offset if offset is not None else -1,
            finding.group or "",
        )

    findings = sorted(outcome.findings, key=rank)
    if hide_keys:
        findings = [with_hidden_keys(finding) for finding in findings]
    return replace(outcome, findings=tuple(findings))


def make_directory(directory: Path) -> None:
    """Make the report's directory before any work is done; it must be empty or new."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if any(directory.iterdir()):
            raise ReconcileError(
                f"{directory} is not empty", hint="name a new directory with --report"
            )
    except OSError as exc:
        raise ReconcileError(f"{directory}: the report cannot be written: {exc.strerror}") from exc


def write_report(report: Report, directory: Path, *, parquet: bool) -> None:
    """Write all files; Parquet only with `parquet`, and if pyarrow is installed."""
    document = report.to_json()
    findings = report.findings
    (directory / "findings").mkdir(exist_ok=True)
    lines = [json.dumps(each.to_json(), ensure_ascii=False) + "\n" for each in findings]
    (directory / "findings" / "findings.ndjson").write_text("".join(lines), "utf-8")
    if parquet:
        _write_parquet(findings, directory / "findings" / "findings.parquet")
    (directory / "report.html").write_text(page(document), "utf-8")
    # The document comes last: its existence shows that the report is complete.
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    (directory / "report.json").write_text(text, "utf-8")


def _write_parquet(findings: Iterable[Finding], target: Path) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        # A driver of spark-submit may have only Spark and this package.
        return
    texts = ("kind", "severity", "message", "topic", "group", "key", "of")
    numbers = ("first", "last", "count")
    place = pa.struct(
        [
            *((name, pa.string()) for name in ("topic", "key", "file", "table")),
            *((name, pa.int64()) for name in ("offset", "timestamp_ms", "row")),
            ("partition", pa.int32()),
            ("visible", pa.bool_()),
        ]
    )
    schema = pa.schema(
        [
            *((name, pa.string()) for name in texts),
            *((name, pa.int64()) for name in numbers),
            ("partition", pa.int32()),
            ("copies", pa.list_(place)),
        ]
    )
    rows = [{**asdict(each), "severity": each.severity.value} for each in findings]
    target.mkdir()
    parquet.write_table(pa.Table.from_pylist(rows, schema=schema), target / "part-00000.parquet")
