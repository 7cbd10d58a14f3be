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
    """Return the lines of a summary."""
    verdict = str(report["verdict"])
    lines = [f"{head(report)}: {paint(verdict, VERDICT_STYLES[verdict])} ({duration(report)})"]
    lines += key_value_lines(counts(report), indent="  ")
    if names := not_compared(report):
        lines += ["", f"  {names}"]
    findings: Sequence[Mapping[str, Any]] = report["findings"]
    if findings:
        lines.append("")
        lines += [_line(finding, paint) for finding in of_every_kind(findings)]
        if more := unshown(report):
            lines.append(f"  {more}")
    lines += ["", report_line(directory)]
    return "\n".join(lines)


def of_every_kind(findings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return SHOWN findings in their order: the first of each kind, so that none hides others."""
    turns: Counter[str] = Counter()
    ranked = []
    for index, finding in enumerate(findings):
        ranked.append((turns[finding["kind"]], index))
        turns[finding["kind"]] += 1
    return [findings[index] for index in sorted(index for _, index in sorted(ranked)[:SHOWN])]


def head(report: Mapping[str, Any]) -> str:
    """Return the job and its target."""
    return printable(f"{report['job']} {report['target']}".rstrip())


def duration(report: Mapping[str, Any]) -> str:
    """Return the duration of the run."""
    return f"{int(report['duration_ms']) / 1000:.1f} s"


def counts(report: Mapping[str, Any]) -> dict[str, str]:
    """Return the counts by their names in words."""
    return {name.replace("_", " "): f"{value:,}" for name, value in report["counts"].items()}


def not_compared(report: Mapping[str, Any]) -> str:
    """Return a line about parts that the job did not compare; empty without any."""
    names = "; ".join(map(str, report.get("not_compared", ())))
    return f"not compared: {names}" if names else ""


def unshown(report: Mapping[str, Any]) -> str:
    """Return the place of findings that a summary leaves out; empty if it shows all."""
    more = int(report["findings_kept"]) - SHOWN
    return f"and {more:,} more in findings/findings.ndjson" if more > 0 else ""


def report_line(directory: Path) -> str:
    """Return the line with the path of the report."""
    return f"report: {directory / 'report.html'}"


def what(finding: Mapping[str, Any]) -> str:
    """Return the text of a finding, after its interval of offsets if it has one."""
    return printable(f"{_interval(finding)}{finding['message']}")


def places(finding: Mapping[str, Any]) -> str:
    """Return the places of the first copies; empty for a finding without any."""
    return printable(", ".join(_place(copy) for copy in finding.get("copies", ())[:4]))


def _line(finding: Mapping[str, Any], paint: Paint) -> str:
    label = paint(str(finding["kind"]), SEVERITY_STYLES[str(finding["severity"])])
    at = places(finding)
    return f"  {label} {what(finding)}" + (f" at {at}" if at else "")


def _interval(finding: Mapping[str, Any]) -> str:
    if finding.get("of") != "offsets":
        return ""
    partition = f"{finding['topic']}:{finding['partition']}"
    return f"{partition} {finding['first']}..{finding['last']}: "


def _place(copy: Mapping[str, Any]) -> str:
    if "file" in copy:
        return f"{copy['file']}:{copy['row']}"
    return f"{copy['topic']}:{copy['partition']}@{copy['offset']}"
