"""A repair is undone where it was done, and records are read as the sink reads them."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TextIO

import pytest

from pyconnect_cli.errors import OutputLost
from pyconnect_cli.reconcile.run import write_private
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.spec import Cluster, Spec, read_spec
from pyconnect_repair import tables
from pyconnect_repair.records import VERSION, Job, ReadRecords

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
    """Without its rows another table looks as if the undo were done, and would get them."""
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
    """The worker's converter is not known: rows would get other keys than the sink's."""
    config = {"value.converter": "JsonConverter", "pk.mode": "record_key"}
    with pytest.raises(ReconcileError, match=r"names no key\.converter"):
        ReadRecords(config, Cluster(bootstrap="b:9092"))


def test_a_full_disk_is_not_output_that_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was done: neither the plan nor the spec of its process could be written."""
    job = Job(audit=audit(), config={}, rows=tmp_path / "plan.rows", report=tmp_path)

    def full(descriptor: int, mode: str, encoding: str) -> TextIO:
        os.close(descriptor)
        return Path("/dev/full").open(mode, encoding=encoding)  # type: ignore[return-value]

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(ReconcileError, match="plan of the repair cannot be written: No space"):
        job.write([{"version": VERSION}])
    with pytest.raises(OutputLost, match="spec: cannot be written: No space"):
        write_private(tmp_path / "spec", "{}")
