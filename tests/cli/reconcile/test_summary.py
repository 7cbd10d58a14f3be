"""The summary of a reconciliation on the terminal."""

from pathlib import Path

from pyconnect_cli.reconcile.run import SHOWN, summary


def finding(number: int) -> dict[str, object]:
    copies = [{"topic": "t", "partition": 1, "offset": number}, {"file": "/in", "row": 4}]
    return {
        "kind": "repeated", "severity": "error", "message": "twice \x1b[2J", "count": 2,
        "copies": copies,
    }  # fmt: skip


def text_of(findings: int, *more: dict[str, object]) -> str:
    report = {
        "job": "duplicates",
        "target": "t",
        "verdict": "differ",
        "duration_ms": 1500,
        "counts": {"rows_uncommitted": 1234567},
        "findings": [*(finding(number) for number in range(findings)), *more],
        "findings_kept": findings + len(more),
    }
    return summary(report, Path("/report"), lambda text, style: text)


def test_the_summary_has_verdict_counts_places_and_report() -> None:
    """Names cannot move the cursor."""
    text = text_of(1)
    assert text.startswith("duplicates t: differ (1.5 s)\n")
    assert "rows uncommitted  1,234,567" in text
    assert "t:1@0, /in:4" in text
    assert text.endswith("report: /report/report.html")
    assert "\x1b" not in text
    assert "twice" in text_of(0, {**finding(1), "key": "order-7"})
    assert "(key order-7) at t:1@1" in text_of(0, {**finding(1), "key": "order-7"})


def test_many_findings_are_cut_and_hide_no_kind() -> None:
    """Of many the first of each kind are shown; the rest is in the report."""
    text = text_of(SHOWN + 3)
    assert text.count("repeated") == SHOWN
    assert "and 3 more in findings/findings.ndjson" in text
    text = text_of(SHOWN + 3, {"kind": "rare", "severity": "note", "message": "seen", "count": 1})
    assert text.count("repeated") == SHOWN - 1
    assert "  rare seen\n" in text
