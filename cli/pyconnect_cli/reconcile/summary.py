"""The result of a reconciliation as plain lines: verdict, counts, the first findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyconnect_cli.render.output import key_value_lines
from pyconnect_cli.render.styles import printable

SHOWN = 12
VERDICT_STYLES = {"agree": "good", "differ": "bad", "unknown": "warning"}
SEVERITY_STYLES = {"error": "bad", "unknown": "warning", "note": None}
Paint = Callable[[str, str | None], str]


def summary(report: Mapping[str, Any], directory: Path, paint: Paint) -> str:
    verdict = str(report["verdict"])
    head = printable(f"{report['job']} {report['target']}".rstrip())
    took = f"{int(report['duration_ms']) / 1000:.1f} s"
    lines = [f"{head}: {paint(verdict, VERDICT_STYLES[verdict])} ({took})"]
    counts = {name.replace("_", " "): f"{value:,}" for name, value in report["counts"].items()}
    lines += key_value_lines(counts, indent="  ")
    if names := "; ".join(map(str, report.get("not_compared", ()))):
        lines += ["", f"  not compared: {names}"]
    findings: Sequence[Mapping[str, Any]] = report["findings"]
    if findings:
        lines.append("")
        lines += [_line(finding, paint) for finding in _of_every_kind(findings)]
        if (more := int(report["findings_kept"]) - SHOWN) > 0:
            lines.append(f"  and {more:,} more in findings/findings.ndjson")
    lines += ["", f"report: {directory / 'report.html'}"]
    return "\n".join(lines)


def _of_every_kind(findings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return SHOWN findings in their order: the first of each kind, so that none hides others."""
    turns: Counter[str] = Counter()
    ranked = []
    for index, finding in enumerate(findings):
        ranked.append((turns[finding["kind"]], index))
        turns[finding["kind"]] += 1
    return [findings[index] for index in sorted(index for _, index in sorted(ranked)[:SHOWN])]


def _line(finding: Mapping[str, Any], paint: Paint) -> str:
    label = paint(str(finding["kind"]), SEVERITY_STYLES[str(finding["severity"])])
    key = f" (key {finding['key']})" if finding.get("key") else ""
    text = printable(f"{_interval(finding)}{finding['message']}{key}")
    places = printable(", ".join(_place(copy) for copy in finding.get("copies", ())[:4]))
    return f"  {label} {text}" + (f" at {places}" if places else "")


def _interval(finding: Mapping[str, Any]) -> str:
    if finding.get("of") != "offsets":
        return ""
    partition = f"{finding['topic']}:{finding['partition']}"
    return f"{partition} {finding['first']}..{finding['last']}: "


def _place(copy: Mapping[str, Any]) -> str:
    if "file" in copy:
        return f"{copy['file']}:{copy['row']}"
    if "table" in copy:
        return f"{copy['table']}:{copy['key']}"
    return f"{copy['topic']}:{copy['partition']}@{copy['offset']}"
