"""report.html: one self-contained page that a person reads in a minute. Pure.

The page is made from report.json alone, loads nothing and runs no script. Charts are SVG; their
colours come from the page's style by class, so that they follow its light and dark themes.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, NamedTuple

WIDTH, LABEL, BAR, ROW, LEAST_WIDTH = 900, 220, 600, 24, 1.5
MOST_ROWS, MOST_COLUMNS, LONGEST_NAME = 60, 300, 32
Json = Mapping[str, Any]


def partition_ranges(snapshots: Mapping[str, Json]) -> str:
    """Draw each partition: expired, read, not read, open transactions."""
    rows = [
        (f" ({cluster})" if len(snapshots) > 1 else "", part)
        for cluster, snapshot in snapshots.items()
        for topic in snapshot["topics"]
        for part in topic["partitions"]
    ]
    longest = max((part["high_watermark"] for _, part in rows), default=0)
    if longest == 0:
        return ""
    drawn = []
    for cluster, part in rows:
        spans = [
            ("expired", 0, part["earliest"]),
            ("unread", part["earliest"], part["start"]),
            ("read", part["start"], part["end"]),
            ("unread", part["end"], part["last_stable"]),
            ("open", part["last_stable"], part["high_watermark"]),
        ]
        text = f"{part['end'] - part['start']:,}"
        drawn.append((f"{part['topic']}:{part['partition']}{cluster}", spans, text))
    return _bars(drawn, longest)


def aborted_share(partitions: Sequence[Json]) -> str:
    """Draw each partition's committed records, aborted records and markers."""
    rows = [part for part in partitions if part.get("rows_uncommitted") is not None]
    totals = [part["rows_uncommitted"] + max(part["markers"], 0) for part in rows]
    if not rows or not any(totals):
        return ""
    drawn = []
    for part, total in zip(rows, totals, strict=True):
        committed, every = part["rows_committed"], part["rows_uncommitted"]
        spans = [("read", 0, committed), ("aborted", committed, every), ("marker", every, total)]
        share = part["aborted"] / every if every else 0.0
        name = f"{part['topic']}:{part['partition']}"
        drawn.append((name, spans, f"{share:.1%} aborted"))
    return _bars(drawn, max(totals))


def missing_intervals(groups: Sequence[Json], findings: Sequence[Json]) -> str:
    """Draw each source's numbers with the missing ones."""
    if not groups:
        return ""
    drawn = []
    # Sources with missing numbers come first.
    for group in sorted(groups, key=lambda group: -group["missing"]):
        low, span = group["lowest"], group["highest"] - group["lowest"] + 1
        spans = [("read", 0.0, 1.0)]
        spans += [
            ("missing", (each["first"] - low) / span, (each["last"] + 1 - low) / span)
            for each in findings
            if each["kind"] == "missing" and each.get("group", "") == group["group"]
        ]
        text = f"{group['missing']:,} missing of {span:,}"
        drawn.append((group["group"] or "all records", spans, text))
    return _bars(drawn, 1.0)


def event_time_buckets(series: Json) -> str:
    """Draw the rows of each tier as columns over time; many buckets are merged."""
    buckets, tiers = series.get("buckets") or [], series.get("tiers") or []
    if not buckets:
        return ""
    together = -(-len(buckets) // MOST_COLUMNS)
    columns = [buckets[first : first + together] for first in range(0, len(buckets), together)]
    sums = [[sum(each["rows"][i] for each in part) for i in range(len(tiers))] for part in columns]
    differ = [any(len(set(each["rows"])) > 1 for each in part) for part in columns]
    highest = max(map(max, sums)) or 1
    step, height, parts = BAR / len(columns), 70, list[str]()
    for index, tier in enumerate(tiers):
        top = index * (height + 24)
        parts.append(_text(0, top + height, _shortened(tier)))
        for number, part in enumerate(columns):
            rows = sums[number][index]
            tall = rows / highest * height
            left, wide = LABEL + number * step, max(step - 1, LEAST_WIDTH)
            title = f"{part[0]['time']} {tier}: {rows:,}"
            kind = "missing" if differ[number] else "read"
            parts.append(_rect((left, top + height - tall, wide, tall), kind, title))
    below = len(tiers) * (height + 24)
    times = _text(LABEL, below, buckets[0]["time"])
    if len(buckets) > 1:
        times += _text(LABEL + BAR, below, buckets[-1]["time"], anchor="end")
    return _svg([*parts, times], below + 8)


def _bars(
    rows: Sequence[tuple[str, Sequence[tuple[str, float, float]], str]], longest: float
) -> str:
    """Draw the first MOST_ROWS as bars and say how many are left out."""
    parts = []
    shown = rows[:MOST_ROWS]
    for index, (name, spans, text) in enumerate(shown):
        top = index * ROW
        parts.append(_text(0, top + 15, _shortened(name)))
        for kind, first, last in spans:
            if last > first:
                width = max((last - first) / longest * BAR, LEAST_WIDTH)
                title = f"{name} {kind}: {_number(first)} to {_number(last)}"
                parts.append(
                    _rect((LABEL + first / longest * BAR, top + 4, width, ROW - 8), kind, title)
                )
        parts.append(_text(LABEL + BAR + 8, top + 15, text))
    lines = len(shown)
    if len(rows) > lines:
        parts.append(_text(0, lines * ROW + 15, f"and {len(rows) - lines:,} more in report.json"))
        lines += 1
    return _svg(parts, lines * ROW)


def _shortened(name: str) -> str:
    """Cut the start of a long name, because the partition is at its end."""
    return name if len(name) <= LONGEST_NAME else f"…{name[1 - LONGEST_NAME :]}"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.2%}"


def _rect(box: tuple[float, float, float, float], kind: str, title: str) -> str:
    x, y, width, height = box
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}"'
        f' height="{height:.1f}"><title>{escape(title)}</title></rect>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(parts: Sequence[str], height: float) -> str:
    return f'<svg viewBox="0 0 {WIDTH + 80} {height:.0f}" role="img">{"".join(parts)}</svg>'


class Meaning(NamedTuple):
    """The meaning of a kind of finding, and the next step.

    `next` is a command, or empty; {topic}, {topics} and {target} stand for names of the run.
    """

    sentence: str
    next: str = ""


READ = "pyconnect topics read {topic} --max 100"
HANGING = "pyconnect transactions find-hanging --topic {topic}"
OPEN = "pyconnect transactions list --open"
SINCE = "pyconnect reconcile {job} {target} --since TIME"
OFFSETS = "pyconnect offsets get {target}"
TASKS = "pyconnect tasks list"
UNPARSED = "pyconnect reconcile {job} {target} --fail-unparsable"

MEANINGS = {
    "missing": Meaning("It should be there, and no committed record or row has it.", READ),
    "perhaps-missing": Meaning(
        "Numbers that are not in the range that was read, but may be among records that were"
        " removed or not asked for.",
        SINCE,
    ),
    "repeated": Meaning("Readers of committed records see it more often than once.", READ),
    "duplicate": Meaning("Readers of committed records see the record more than once.", READ),
    "benign-duplicate": Meaning(
        "The record was written again after an abort: readers of committed records see it once.",
        "pyconnect reconcile transactions {topics}",
    ),
    "disorder": Meaning("A record comes after one that should follow it.", READ),
    "unordered-keys": Meaning(
        "Records of one key are in several partitions, which have no order between them.", READ
    ),
    "keyless": Meaning("Records without a key have no order and no last version to check.", READ),
    "extra": Meaning("It is on the right side, and the left side does not have it.", READ),
    "different": Meaning("The last version of the key differs between the sides.", READ),
    "not-representable": Meaning(
        "The type of the sink cannot hold the value, so the sink has another value or none.", READ
    ),
    "not-compared": Meaning(
        "Columns that no record has hold values: name the columns that are to be compared."
    ),
    "aborted": Meaning(
        "Offsets of aborted transactions: readers of committed records never see them."
    ),
    "open-transaction": Meaning(
        "A transaction has not ended, and the records behind its first offset were not audited.",
        OPEN,
    ),
    "hanging-transaction": Meaning(
        "A transaction is open for longer than brokers allow and blocks committed readers.", HANGING
    ),
    "retention-loss": Meaning(
        "Retention removed offsets since the saved run.", "pyconnect reconcile ranges {topics}"
    ),
    "expired": Meaning(
        "Retention removed the beginning of a partition, so nothing is known about it.", SINCE
    ),
    "cut-range": Meaning(
        "The range that was asked for reaches beyond the records that are there.",
        "pyconnect reconcile ranges {topics}",
    ),
    "recreated-topic": Meaning(
        "The topic was deleted and created again: its earlier records are gone.", OFFSETS
    ),
    "truncated": Meaning("The partition ends before the end of the saved run: records were lost."),
    "regression": Meaning(
        "A source offset went back, so records were read again.",
        "pyconnect reconcile duplicates TOPIC",
    ),
    "two-writers": Meaning("Two positions of one source partition take turns.", TASKS),
    "double-run": Meaning("Two workers held one task at the same time.", TASKS),
    "split-offset": Meaning("A source partition's offset is kept in two places.", OFFSETS),
    "topics-disagree": Meaning(
        "The connector's offsets topic and that of the workers have different offsets.", OFFSETS
    ),
    "overlapping-tasks": Meaning("Several tasks are configured with one source partition.", TASKS),
    "altered": Meaning(
        "The offset was written while the connector was stopped.", "pyconnect offsets history"
    ),
    "reset": Meaning("The offset was deleted.", "pyconnect offsets history"),
    "orphan": Meaning(
        "Offsets are left of a connector that does not exist.", "pyconnect offsets orphans list"
    ),
    "difference": Meaning(
        "A span of event time has another number of rows than in the first tier.",
        "pyconnect reconcile topic-topic LEFT RIGHT",
    ),
    "under-way": Meaning("Rows beyond the compared offsets may still arrive."),
    "unfinished": Meaning("Rows whose end is not written yet count only where they are expected."),
    "written-meanwhile": Meaning(
        "Rows were written while they were compared, so differences prove nothing.",
        "pyconnect reconcile {job} {target}",
    ),
    "too-many-spans": Meaning("Only the first spans of event time were compared."),
    "unparsable": Meaning(
        "The value that the check needs is not in the record, so the record was left out.", UNPARSED
    ),
    "unknown-schema": Meaning("The schema of a value is not known, so it was left out."),
    "empty-range": Meaning("There was nothing to read.", "pyconnect reconcile ranges {topics}"),
    "file-changed": Meaning(
        "A file changed while it was compared.", "pyconnect reconcile {job} {target}"
    ),
    "removed-while-read": Meaning("Retention removed records before they were read.", SINCE),
    "unknown-policy": Meaning(
        "It is not known whether the topic is compacted: its configuration is not readable.",
        "pyconnect acls check",
    ),
    "compacted": Meaning(
        "Compaction removes records, and leaves offsets that look like markers of transactions.",
        "pyconnect reconcile ranges {topics}",
    ),
    "failed": Meaning(
        "The run ended before it had an answer: the message says why.",
        "pyconnect reconcile {job} {target}",
    ),
    "not-audited": Meaning("The job cannot answer its question for this data."),
}


# One row names that many findings with the same words.
SHOWN = 10
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
td { overflow-wrap: anywhere; } td + td { min-width: 3rem; }
section.kind { border-top: 1px solid var(--line); margin: 1.2rem 0; }
section.kind h3 { font-size: 1rem; margin: .6rem 0 .2rem; }
section.kind p { margin: .2rem 0; } code { font-size: .85rem; overflow-wrap: anywhere; }
section.kind table { table-layout: fixed; }
section.kind th:nth-child(1) { width: 42%; } section.kind th:nth-child(2) { width: 7rem; }
section.kind th:nth-child(2), td.count { text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
td ul { margin: 0; padding: 0; list-style: none; } td li + li { margin-top: .2rem; }
.severity-error { color: var(--bad-ink); font-weight: 600; }
.severity-unknown { color: var(--warn-ink); }
.chart { overflow-x: auto; } svg { width: 100%; min-width: 860px; height: auto; }
svg text { font-size: 12px; fill: var(--ink); }
rect.read { fill: var(--read); } rect.expired { fill: var(--line); }
rect.unread { fill: var(--grey); }
rect.open, rect.aborted { fill: var(--warn); } rect.marker { fill: var(--grey); }
rect.missing { fill: var(--bad); }
.key span { display: inline-block; margin-right: 1.2rem; }
@media (max-width: 600px) {
  body { margin: 1rem auto; }
  section.kind table, section.kind tbody, section.kind tr, section.kind td { display: block; }
  section.kind tr { border-bottom: 1px solid var(--line); padding: .4rem 0; }
  section.kind tr.head { display: none; }
  section.kind td { border: 0; padding: .1rem 0; text-align: left; }
  td.count::before { content: "count "; color: var(--soft); }
}
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
        _section("Partitions", partition_ranges(report["snapshots"]), "ranges"),
        _section("Aborted records", aborted_share(report["partitions"]), "aborted"),
        _section(
            "Sequence numbers", missing_intervals(series.get("groups") or [], findings), "missing"
        ),
        _section("Rows by event time", event_time_buckets(series), "buckets"),
    ]
    notes = [str(note) for note in report["notes"]]
    if report["not_compared"]:
        notes.append(f"Not compared: {'; '.join(map(str, report['not_compared']))}.")
    counts = [
        f'<div><b>{value:,}</b><span class="soft">{escape(name.replace("_", " "))}</span></div>'
        for name, value in report["counts"].items()
    ]
    by_kind: dict[str, list[Json]] = {}
    for finding in findings:
        by_kind.setdefault(finding["kind"], []).append(finding)
    found = "".join(_kind(report, kind, each) for kind, each in by_kind.items()) or "<p>None.</p>"
    more = report["findings_kept"] - len(findings)
    rest = f"<p>and {more:,} more in findings/findings.ndjson</p>" if more > 0 else ""
    title = f"{report['job']} {report['target']}".rstrip()
    started = datetime.fromtimestamp(report["started_ms"] / 1000, UTC)
    clusters = ", ".join(map(str, report["asked"]["clusters"].values()))
    spark = f", Spark {report['spark_version']}" if report["spark_version"] else ""
    took = f"took {report['duration_ms'] / 1000:.1f} s"
    when = f"{started:%Y-%m-%d %H:%M:%S} UTC, {took}, {clusters}{spark}"
    said = [f"{kind.replace('-', ' ')} {count:,}" for kind, count in report["totals"].items()]
    reason = f"Found: {', '.join(said)}." if said else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}: {report["verdict"]}</title><style>{STYLE}</style></head><body>
<h1>{escape(title)}</h1>
<p class="soft">{escape(when)}</p>
<div class="verdict {report["verdict"]}"><strong>{report["verdict"]}</strong><br>
{VERDICTS[report["verdict"]]} {escape(reason)}</div>
<p class="soft">{escape(_scope(report))}</p>
<div class="counts">{"".join(counts)}</div>
<h2>Findings</h2>{found}{rest}
{"".join(sections)}
<h2>Notes</h2><ul>{"".join(f"<li>{escape(note)}</li>" for note in notes)}</ul>
</body></html>
"""


def _scope(report: Json) -> str:
    """Return the limits of the range that was asked for, as sentences."""
    asked: Json = report["asked"]
    said = []
    if asked["topics"]:
        said.append(f"Topics: {', '.join(asked['topics'])} ({asked['isolation']}).")
    if asked["since_ms"] is not None:
        since = datetime.fromtimestamp(asked["since_ms"] / 1000, UTC)
        said.append(f"Only records since {since:%Y-%m-%d %H:%M:%S} UTC.")
    for name, words in (("since", "from"), ("until", "before")):
        bounds = [
            f"{topic}:{partition} {words} {offset:,}"
            for topic, offsets in asked[name].items()
            for partition, offset in offsets.items()
        ]
        if bounds:
            said.append(f"Only offsets of {', '.join(bounds)}.")
    if asked["stable_only"]:
        said.append("Only offsets before the last stable ones: open transactions are out of scope.")
    return " ".join(said)


def _kind(report: Json, kind: str, findings: Sequence[Json]) -> str:
    """Draw the findings of one kind: their meaning, the next step, and their places."""
    meaning = MEANINGS.get(kind, Meaning(""))
    kept = report["findings_by_kind"][kind]
    number = f"{kept:,} finding{'s' if kept > 1 else ''}"
    shown = f", {len(findings):,} of them here" if kept > len(findings) else ""
    by_message: dict[tuple[str, str], list[Json]] = {}
    for finding in findings:
        by_message.setdefault((finding["severity"], finding["message"]), []).append(finding)
    worst = findings[0]["severity"]
    topics = report["asked"]["topics"]
    places = (each for finding in findings for each in (finding, *finding.get("copies", ())))
    named = [each["topic"] for each in places if "topic" in each]
    names = {
        "{job}": report["job"],
        "{target}": " ".join(topics) or report["target"],
        "{topics}": " ".join(topics) or "TOPIC",
        "{topic}": next(iter((*named, *topics)), "TOPIC"),
    }
    command = re.sub(r"\{\w+\}", lambda mark: names[mark[0]], meaning.next)
    command = f"<p>Next: <code>{escape(command)}</code></p>"
    rows = ['<tr class="head"><th>what</th><th>count</th><th>where</th></tr>']
    # Findings with the same words are one row, with the places of the first ones.
    for (_, message), equal in by_message.items():
        places_of = [text for finding in equal[:SHOWN] if (text := _places(finding))]
        if len(equal) > SHOWN:
            places_of.append(f"and {len(equal) - SHOWN:,} more")
        # The non-breaking space keeps the word and its number in one line.
        shown_places = (
            escape(text).replace(" offset ", " offset&nbsp;")
            for text in places_of or ["no place is known"]
        )
        rows.append(
            f'<tr><td class="what">{escape(message)}</td>'
            f'<td class="count">{sum(finding["count"] for finding in equal):,}</td>'
            f"<td><ul>{''.join(f'<li>{text}</li>' for text in shown_places)}</ul></td></tr>"
        )
    return (
        f'<section class="kind"><h3><span class="severity-{worst}">{escape(kind)}</span>'
        f' <span class="soft">{number}{shown}</span></h3>'
        f"<p>{escape(meaning.sentence)}</p>{command if meaning.next else ''}"
        f"<table>{''.join(rows)}</table></section>"
    )


def _places(finding: Json) -> str:
    """Return key and places of a finding as one line; empty when neither is known."""
    places = []
    for copy in finding.get("copies", ()):
        if "file" in copy:
            places.append(f"{copy['file']} line {copy['row']}")
        elif "table" in copy:
            places.append(f"{copy['table']} row {copy['key']}")
        else:
            key = finding.get("key")
            own = f" key {copy['key']}" if copy.get("key", key) != key else ""
            shown = "" if copy.get("visible", True) else " (aborted)"
            at = f"{copy['topic']}:{copy['partition']} offset {copy['offset']}"
            places.append(f"{at}{own}{shown}")
    if finding.get("of") == "offsets":
        interval = f"{finding['first']} to {finding['last']}"
        places.insert(0, f"{finding['topic']}:{finding['partition']} offsets {interval}")
    elif not places and finding.get("topic"):
        number = finding.get("partition")
        places.append(finding["topic"] + (f":{number}" if number is not None else ""))
    elif not places and finding.get("group"):
        places.append(f"source {finding['group']}")
    text = ", ".join(places)
    return f"key {finding['key']}: {text}" if finding.get("key") else text


def _section(title: str, chart: str, key: str) -> str:
    if not chart:
        return ""
    marks = "".join(
        f'<span><i style="background:{colour}"></i>{text}</span>' for colour, text in KEYS[key]
    )
    return f'<h2>{title}</h2><p class="key soft">{marks}</p><div class="chart">{chart}</div>'
