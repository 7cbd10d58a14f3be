"""The targets of a report's findings, the decisions about rows, and the place of an undo."""

import io
import os
from pathlib import Path
from typing import Any, TextIO

import pytest

from pyconnect_cli.errors import OutputLost
from pyconnect_cli.reconcile.run import write_private
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.spec import Cluster, Spec, read_spec
from pyconnect_repair import tables
from pyconnect_repair.plan import (
    Image,
    RowChange,
    RowState,
    Wanted,
    decided,
    difference,
    findings_of,
)
from pyconnect_repair.records import VERSION, Job, ReadRecords

RECORD = {"topic": "orders", "partition": 1, "offset": 5}
ROW = {"table": "orders", "key": '{"id":"7"}'}
ONE: Image = {"id": "1", "note": None}
TWO: Image = {"id": "2", "note": "b"}


def finding(kind: str, *copies: dict[str, Any], **members: Any) -> dict[str, Any]:
    severity = {"severity": "error", "message": "m", "count": 1}
    return {"kind": kind, **severity, "copies": list(copies), **members}


def report(*findings: dict[str, Any], **members: Any) -> dict[str, Any]:
    totals = {each["kind"]: each["count"] for each in findings}
    about = {"job": "topic-sink", "target": "out", "verdict": "differ", "totals": totals}
    return {**about, **members}


def test_each_finding_becomes_a_target() -> None:
    """Missing, different and repeated rows become targets with a record, extra ones with a key."""
    lines = [
        finding("missing", RECORD, count=2, of="copies", first=3, last=1),
        finding("different", RECORD, ROW),
        finding("extra", ROW),
        finding("repeated", RECORD, ROW, count=4, of="copies", first=1, last=5),
        finding("under-way", severity="note"),
    ]
    found = findings_of(report(*lines), lines)
    place = ("orders", 1, 5)
    assert found.refused == ()
    assert found.targets == (
        Wanted(kind="missing", place=place, expected=3, there=1),
        Wanted(kind="different", place=place, expected=1, there=0),
        Wanted(kind="extra", key={"id": "7"}, expected=0, there=1),
        Wanted(kind="repeated", place=place, expected=1, there=5),
    )


def test_a_finding_without_a_safe_repair_is_refused_with_the_reason() -> None:
    """A row without a name, different rows of one key, and a value without a column are refused."""
    lines = [
        finding("extra", {"table": "orders", "key": "sha256:0"}),
        finding("extra"),
        finding("repeated"),
        finding("not-representable", RECORD),
    ]
    found = findings_of(report(), lines)
    assert found.targets == ()
    assert [reason.partition(":")[0] for reason in found.refused] == [
        "extra",
        "repeated",
        "not-representable",
    ]


@pytest.mark.parametrize(
    ("document", "lines", "reason"),
    [
        (report(job="duplicates"), [], "only rows of tables of SqlSink and LakeSink"),
        (report(target=""), [], "only rows of tables of SqlSink and LakeSink"),
        (report(verdict="agree"), [], "nothing to repair"),
        (report(verdict="unknown"), [], "verdict of the report is unknown"),
        (report(), [finding("expired", severity="unknown")], "could not decide"),
        (
            report(totals={"missing": 5}),
            [finding("missing", RECORD, count=3)],
            "names 3 of 5 rows that are missing",
        ),
    ],
)
def test_a_report_that_is_no_basis_is_refused(
    document: dict[str, Any], lines: list[dict[str, Any]], reason: str
) -> None:
    """A report of another job, without a difference, undecided or incomplete is refused."""
    with pytest.raises(ReconcileError, match=reason):
        findings_of(document, lines)


@pytest.mark.parametrize(
    ("target", "before", "image", "after"),
    [
        (Wanted(kind="missing", expected=1, there=0), [], ONE, [ONE]),
        (Wanted(kind="missing", expected=3, there=1), [ONE], ONE, [ONE, ONE, ONE]),
        (Wanted(kind="missing", expected=1, there=0), [TWO], ONE, None),
        (Wanted(kind="different", expected=1, there=0), [TWO], ONE, [ONE]),
        (Wanted(kind="different", expected=1, there=0), [ONE], ONE, None),
        (Wanted(kind="different", expected=1, there=0), [], ONE, None),
        (Wanted(kind="extra", expected=0, there=1), [ONE], None, []),
        (Wanted(kind="extra", expected=0, there=1), [ONE, TWO], None, None),
        (Wanted(kind="repeated", expected=1, there=3), [ONE, ONE, ONE], ONE, [ONE]),
        (Wanted(kind="repeated", expected=1, there=3), [ONE, ONE], ONE, None),
    ],
)
def test_rows_that_are_not_those_of_the_report_are_left(
    target: Wanted, before: list[Image], image: Image | None, after: list[Image] | None
) -> None:
    """No row is changed if the number of rows, or the row itself, differs from the report."""
    assert decided(target, before, image) == after


def test_a_change_knows_what_was_done_and_undoes_it() -> None:
    """The rows of a change, in any order, show whether it is to do, done or overtaken."""
    change = RowChange(kind="missing", name="x", identity={}, before=[ONE], after=[ONE, TWO])
    assert change.state_of([ONE]) is RowState.TO_DO
    assert change.state_of([TWO, ONE]) is RowState.DONE
    assert change.state_of([TWO]) is RowState.CHANGED
    assert change.undone.state_of([TWO, ONE]) is RowState.TO_DO
    assert RowChange(**change.to_json()) == change
    copies = RowChange(kind="missing", name="x", identity={}, before=[], after=[ONE, ONE, ONE])
    assert (change.rows, copies.rows, copies.undone.rows) == (1, 3, 3)
    assert difference([ONE, ONE, TWO], [ONE]) == [ONE, TWO]


QUIET = Events(machine=True, stream=io.StringIO())
URL = "jdbc:postgresql://h:5432/shop"


def audit(**right: object) -> Spec:
    table = {"kind": "table", "url": URL, "table": '"orders"', **right}
    topic = {"kind": "topic", "topics": ["orders"]}
    clusters = {"main": {"bootstrap": "b:9092"}}
    return read_spec({"job": "topic-sink", "clusters": clusters, "left": topic, "right": table})


@pytest.mark.parametrize(
    ("right", "same"),
    [
        ({}, True),
        ({"zone": "Europe/Berlin", "properties": "/tmp/now.properties"}, True),
        ({"url": "jdbc:postgresql://h:5432/other"}, False),
        ({"table": '"orders2"'}, False),
        ({"options": {"options": "-csearch_path=b"}}, False),
    ],
)
def test_a_repair_is_undone_in_its_own_table_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, right: dict[str, object], same: bool
) -> None:
    """An undo in another table is refused: it would look done there, or add rows."""
    rows = tmp_path / "plan.rows"
    head = {"version": VERSION, "table": "orders", "place": tables._place(audit())}
    Job(audit=audit(), config={}, rows=rows, report=tmp_path).write([head])

    class ReachedTheTable(Exception):
        pass

    def reached(*_: object) -> None:
        raise ReachedTheTable

    monkeypatch.setattr(tables, "read_records", reached)
    job = Job(audit=audit(**right), config={}, rows=rows, report=tmp_path)
    if same:
        with pytest.raises(ReachedTheTable):
            tables.carry_out(job, QUIET, undo=True)
    else:
        with pytest.raises(ReconcileError, match="writes to another place than orders"):
            tables.carry_out(job, QUIET, undo=True)


def test_keys_are_not_read_with_a_guessed_converter() -> None:
    """A missing key converter is an error, because the worker's converter is not known."""
    config = {"value.converter": "JsonConverter", "pk.mode": "record_key"}
    with pytest.raises(ReconcileError, match=r"names no key\.converter"):
        ReadRecords(config, Cluster(bootstrap="b:9092"))


def test_a_full_disk_is_not_output_that_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan or spec that cannot be written is an error before anything changes."""
    job = Job(audit=audit(), config={}, rows=tmp_path / "plan.rows", report=tmp_path)

    def full(descriptor: int, mode: str, encoding: str) -> TextIO:
        os.close(descriptor)
        return Path("/dev/full").open(mode, encoding=encoding)  # type: ignore[return-value]

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(ReconcileError, match="plan of the repair cannot be written: No space"):
        job.write([{"version": VERSION}])
    with pytest.raises(OutputLost, match="spec: cannot be written: No space"):
        write_private(tmp_path / "spec", "{}")
