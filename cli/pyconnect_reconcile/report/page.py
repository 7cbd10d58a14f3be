"""report.html: one self-contained page that a person reads in a minute. Pure.

It is made from report.json alone, loads nothing and runs no script.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from pyconnect_reconcile.report import charts

Json = Mapping[str, Any]
VERDICTS = {
    "agree": "Every requested check ran and found no fault.",
    "differ": "The checks found faults.",
    "unknown": "The checks could not decide whether there are faults; the findings give the"
    " reasons.",
}
STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --soft: #5b6b7b; --line: #d8dfe6;
  --paper: #ffffff; --read: #4a90c2; --bad: #c8372d; --warn: #d99a1c; --good: #2b8a4b;
  --grey: #b6c2cd; --bad-ink: #b02a21; --warn-ink: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4eaf0; --soft: #9aa9b8; --line: #33404d;
  --paper: #141a20; --grey: #4a5866; --bad-ink: #ff8a80; --warn-ink: #e5b04a; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
.verdict { border-left: 6px solid; padding: .6rem 1rem; margin: 1rem 0; }
.verdict strong { font-size: 1.3rem; text-transform: uppercase; letter-spacing: .04em; }
.agree { border-color: var(--good); } .differ { border-color: var(--bad); }
.unknown { border-color: var(--warn); }
.soft { color: var(--soft); } .counts { display: flex; flex-wrap: wrap; gap: .8rem 2rem; }
.counts b { display: block; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td + td { overflow-wrap: anywhere; min-width: 3rem; }
th:first-child, td:first-child { white-space: nowrap; }
.severity-error { color: var(--bad-ink); font-weight: 600; }
.severity-unknown { color: var(--warn-ink); }
svg { width: 100%; height: auto; } svg text { font-size: 12px; fill: var(--ink); }
rect.read { fill: var(--read); } rect.expired { fill: var(--line); }
rect.unread { fill: var(--grey); }
rect.open, rect.aborted { fill: var(--warn); } rect.marker { fill: var(--grey); }
rect.missing { fill: var(--bad); }
.key span { display: inline-block; margin-right: 1.2rem; }
.key i { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; }
"""
KEYS = {
    "ranges": (
        ("var(--read)", "read"),
        ("var(--grey)", "not requested"),
        ("var(--line)", "expired"),
        ("var(--warn)", "open transaction"),
    ),
    "aborted": (
        ("var(--read)", "committed"),
        ("var(--warn)", "aborted"),
        ("var(--grey)", "markers"),
    ),
    "missing": (("var(--read)", "there"), ("var(--bad)", "missing")),
    "buckets": (("var(--read)", "tiers agree"), ("var(--bad)", "tiers differ")),
}


def page(report: Json) -> str:
    series: Json = report["series"]
    findings: Sequence[Json] = report["findings"]
    sections = [
        _section("Partitions", charts.partition_ranges(report["snapshots"]), "ranges"),
        _section("Aborted records", charts.aborted_share(report["partitions"]), "aborted"),
        _section(
            "Sequence numbers",
            charts.missing_intervals(series.get("groups") or [], findings),
            "missing",
        ),
        _section("Rows by event time", charts.event_time_buckets(series), "buckets"),
    ]
    title = f"{report['job']} {report['target']}".rstrip()
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}: {report["verdict"]}</title><style>{STYLE}</style></head><body>
<h1>{escape(title)}</h1>
<p class="soft">{_when(report)}</p>
<div class="verdict {report["verdict"]}"><strong>{report["verdict"]}</strong><br>
{VERDICTS[report["verdict"]]} {escape(_reason(report))}</div>
<div class="counts">{"".join(_counts(report["counts"]))}</div>
<h2>Findings</h2>{_findings(report)}
{"".join(sections)}
<h2>Notes</h2><ul>{"".join(f"<li>{escape(note)}</li>" for note in _notes(report))}</ul>
</body></html>
"""


def _notes(report: Json) -> list[str]:
    notes = [str(note) for note in report["notes"]]
    if report["not_compared"]:
        notes.append(f"Not compared: {'; '.join(map(str, report['not_compared']))}.")
    return notes


def _when(report: Json) -> str:
    started = datetime.fromtimestamp(report["started_ms"] / 1000, UTC)
    clusters = ", ".join(map(str, report["asked"]["clusters"].values()))
    seconds = report["duration_ms"] / 1000
    spark = f", Spark {report['spark_version']}" if report["spark_version"] else ""
    return escape(f"{started:%Y-%m-%d %H:%M:%S} UTC, took {seconds:.1f} s, {clusters}{spark}")


def _reason(report: Json) -> str:
    totals: Mapping[str, int] = report["totals"]
    said = [f"{kind.replace('-', ' ')} {count:,}" for kind, count in totals.items()]
    return ("Found: " + ", ".join(said) + ".") if said else ""


def _counts(counts: Mapping[str, int]) -> Iterable[str]:
    for name, value in counts.items():
        label = escape(name.replace("_", " "))
        yield f'<div><b>{value:,}</b><span class="soft">{label}</span></div>'


def _findings(report: Json) -> str:
    findings: Sequence[Json] = report["findings"]
    if not findings:
        return "<p>None.</p>"
    rows = "".join(_row(finding) for finding in findings)
    more = report["findings_kept"] - len(findings)
    rest = f"<p>and {more:,} more in findings/findings.ndjson</p>" if more > 0 else ""
    head = "<tr><th>kind</th><th>what</th><th>count</th><th>where</th></tr>"
    return f"<table>{head}{rows}</table>{rest}"


def _row(finding: Json) -> str:
    where = [_place(copy) for copy in finding.get("copies", ())]
    if finding.get("of") == "offsets":
        interval = f"{finding['first']} to {finding['last']}"
        where.insert(0, f"{finding['topic']}:{finding['partition']} offsets {interval}")
    return (
        f'<tr><td class="severity-{finding["severity"]}">{escape(finding["kind"])}</td>'
        f"<td>{escape(finding['message'])}</td><td>{finding['count']:,}</td>"
        f"<td>{'<br>'.join(map(escape, where))}</td></tr>"
    )


def _place(copy: Json) -> str:
    if "file" in copy:
        return f"{copy['file']} line {copy['row']}"
    key = f" key {copy['key']}" if "key" in copy else ""
    shown = "" if copy.get("visible", True) else " (aborted)"
    return f"{copy['topic']}:{copy['partition']} offset {copy['offset']}{key}{shown}"


def _section(title: str, chart: str, key: str) -> str:
    if not chart:
        return ""
    marks = "".join(
        f'<span><i style="background:{colour}"></i>{text}</span>' for colour, text in KEYS[key]
    )
    return f'<h2>{title}</h2><p class="key soft">{marks}</p>{chart}'
