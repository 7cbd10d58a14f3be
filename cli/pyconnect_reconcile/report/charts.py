"""Charts of report.html as SVG texts. Pure.

Each takes members of report.json and returns nothing where there is nothing to draw. Colours come
from the page's style by class, so that they follow its light and dark themes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

WIDTH, LABEL, BAR, ROW = 900, 220, 600, 24
MOST_ROWS, MOST_COLUMNS = 60, 300
LEAST_WIDTH = 1.5
LONGEST_NAME = 32
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
    """Draw each source's numbers with what is missing in them."""
    if not groups:
        return ""
    drawn = []
    # The sources with holes first: those are what one looks for.
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
    """Draw the rows of each tier by time, one line of columns each; with many, several as one."""
    buckets, tiers = series.get("buckets") or [], series.get("tiers") or []
    if not buckets:
        return ""
    together = -(-len(buckets) // MOST_COLUMNS)
    columns = [buckets[first : first + together] for first in range(0, len(buckets), together)]
    sums = [[sum(each["rows"][i] for each in part) for i in range(len(tiers))] for part in columns]
    differ = [any(len(set(each["rows"])) > 1 for each in part) for part in columns]
    highest = max(map(max, sums)) or 1
    step = BAR / len(columns)
    height = 70
    parts = []
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
