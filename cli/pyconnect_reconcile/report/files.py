"""Writes a report's directory: report.json, findings as NDJSON and Parquet, report.html."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import Finding
from pyconnect_reconcile.report.contents import Report
from pyconnect_reconcile.report.page import page

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FINDINGS_SCHEMA = (
    "kind string, severity string, message string, topic string, partition int, `group` string,"
    " key string, of string, first bigint, last bigint, count bigint,"
    " copies array<struct<topic: string, partition: int, offset: bigint, timestamp_ms: bigint,"
    " key: string, visible: boolean, file: string, row: bigint>>"
)


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


def write_report(report: Report, directory: Path, spark: SparkSession | None) -> None:
    """Write everything; Parquet only with a session, whose executors write it but with Connect."""
    document = report.to_json()
    findings = report.findings
    (directory / "findings").mkdir(exist_ok=True)
    _write(directory / "findings" / "findings.ndjson", _lines(findings))
    if spark is not None:
        rows = spark.createDataFrame([_row(each) for each in findings], FINDINGS_SCHEMA)
        _write_parquet(rows, directory / "findings" / "findings.parquet")
    _write(directory / "report.html", page(document))
    # Written last, so that its existence shows a complete report.
    _write(directory / "report.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def _write_parquet(rows: DataFrame, target: Path) -> None:
    from pyspark.sql.utils import is_remote

    if is_remote():
        # A path of this machine is none of the server's; its client brings Arrow.
        from pyarrow import parquet

        target.mkdir()
        parquet.write_table(rows.toArrow(), target / "part-00000.parquet")
    else:
        rows.coalesce(1).write.mode("overwrite").parquet(target.as_uri())


def _lines(findings: Iterable[Finding]) -> str:
    return "".join(json.dumps(finding.to_json(), ensure_ascii=False) + "\n" for finding in findings)


def _row(finding: Finding) -> tuple[object, ...]:
    copies = [astuple(place) for place in finding.copies]
    return (
        finding.kind,
        finding.severity.value,
        finding.message,
        finding.topic,
        finding.partition,
        finding.group,
        finding.key,
        finding.of,
        finding.first,
        finding.last,
        finding.count,
        copies,
    )


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
