"""A reconciliation's answer for the terminal: verdict, what was counted, the first findings."""

from __future__ import annotations

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
    """Return the lines of a summary."""
    verdict = str(report["verdict"])
    seconds = int(report["duration_ms"]) / 1000
    head = f"{report['job']} {report['target']}".rstrip()
    lines = [f"{head}: {paint(verdict, VERDICT_STYLES[verdict])} ({seconds:.1f} s)"]
    counts = {name.replace("_", " "): f"{value:,}" for name, value in report["counts"].items()}
    lines += key_value_lines(counts, indent="  ")
    findings: Sequence[Mapping[str, Any]] = report["findings"]
    if findings:
        lines.append("")
        lines += [_line(finding, paint) for finding in findings[:SHOWN]]
        if (more := int(report["findings_kept"]) - SHOWN) > 0:
            lines.append(f"  and {more:,} more in findings/findings.ndjson")
    lines += ["", f"report: {directory / 'report.html'}"]
    return "\n".join(lines)


def _line(finding: Mapping[str, Any], paint: Paint) -> str:
    severity = str(finding["severity"])
    label = paint(str(finding["kind"]), SEVERITY_STYLES[severity])
    places = ", ".join(_place(copy) for copy in finding.get("copies", ())[:4])
    where = _interval(finding)
    message = printable(str(finding["message"]))
    at = " at " + places if places else ""
    return f"  {label} {where}{message}{at}"


def _interval(finding: Mapping[str, Any]) -> str:
    if finding.get("of") != "offsets":
        return ""
    partition = f"{finding['topic']}:{finding['partition']}"
    return f"{partition} {finding['first']}..{finding['last']}: "


def _place(copy: Mapping[str, Any]) -> str:
    if "file" in copy:
        return f"{copy['file']}:{copy['row']}"
    return f"{copy['topic']}:{copy['partition']}@{copy['offset']}"
