"""Writes a report's directory: report.json, findings as NDJSON and Parquet, report.html.

All of it is written by this process, so that executors need not see the directory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import Finding
from pyconnect_reconcile.report.contents import Report
from pyconnect_reconcile.report.page import page


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
    """Write everything; Parquet when asked for and if pyarrow is installed."""
    document = report.to_json()
    findings = report.findings
    (directory / "findings").mkdir(exist_ok=True)
    lines = [json.dumps(each.to_json(), ensure_ascii=False) + "\n" for each in findings]
    _write(directory / "findings" / "findings.ndjson", "".join(lines))
    if parquet:
        _write_parquet(findings, directory / "findings" / "findings.parquet")
    _write(directory / "report.html", page(document))
    # Written last, so that its existence shows a complete report.
    _write(directory / "report.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def _write_parquet(findings: Iterable[Finding], target: Path) -> None:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        # A driver of spark-submit may have Spark and this package alone.
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


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
