"""`pyconnect offsets reset alter`: the plan, the backup, the change, the read-back."""

import json
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.offsets_world import A, B, backups, changes, entry, sink_entry, stop, stored
from tests.support.fakes.connect_server import FakeConnect, FakeConnector

pytestmark = pytest.mark.wire

__all__ = ["stored"]


def test_alter_accepts_the_output_of_get(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """The output of `get` as input of `alter` changes nothing."""
    stop(connect)
    file = tmp_path / "offsets.json"
    file.write_text(run("offsets", "get", "orders", "-o", "json").out)
    outcome = run("offsets", "alter", "orders", "-f", str(file), "--yes", code=0)
    assert outcome.out == "orders: unchanged\n"
    assert changes(connect) == []


def test_reset_stops_nothing_and_changes_nothing_unasked(run: Run, connect: FakeConnect) -> None:
    """A reset without --stop or confirmation is exit 9 with the full command and no change."""
    outcome = run("offsets", "reset", "orders", "--yes", code=9)
    assert "orders is RUNNING" in outcome.err
    assert "pyconnect offsets reset orders --yes --stop" in outcome.err
    assert changes(connect) == []
    outcome = run("offsets", "reset", "orders", "--stop", "--resume", code=9)
    assert "RUNNING -> STOPPED -> RUNNING" in outcome.err
    assert '{"filename":"a.txt"}  {"position":30} -> forgotten' in outcome.err
    assert "pyconnect offsets reset orders --stop --resume --yes" in outcome.err
    assert changes(connect) == []


def test_reset_stops_backs_up_forgets_and_resumes(
    run: Run, connect: FakeConnect, stored: FakeConnector, environ: dict[str, str]
) -> None:
    """A reset stops the connector, deletes its offsets, resumes it and prints an undo command."""
    outcome = run("offsets", "reset", "orders", "--stop", "--resume", "--wait", "--yes", code=0)
    assert stored.offsets == []
    assert stored.state == "RUNNING"
    assert changes(connect) == [
        "PUT /connectors/orders/stop",
        "DELETE /connectors/orders/offsets",
        "PUT /connectors/orders/resume",
    ]
    (backup,) = backups(environ)
    assert f"undo: pyconnect offsets undo {backup.stem}" in outcome.err
    assert outcome.out == f"orders: reset (2 partitions, backup {backup.stem})\n"


def test_a_backup_says_where_it_comes_from_and_is_its_owners(
    run: Run, stored: FakeConnector, environ: dict[str, str]
) -> None:
    """A backup has its origin and the offsets, but no configuration, and mode 0600."""
    before = stored.offsets
    assert run("offsets", "reset", "orders", "--stop", "--yes").code == 0
    (path,) = backups(environ)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    document = json.loads(path.read_text())
    assert document["cluster_id"] == "k"
    assert document["connector"] == "orders"
    assert document["class"] == "org.example.FileSource"
    assert document["version"] == "4.3.1"
    assert document["action"] == "reset"
    assert document["time"].endswith("Z")
    assert document["offsets"] == before
    assert "hunter2" not in path.read_text()


def test_a_backup_holds_commits_made_during_the_stop(
    run: Run, stored: FakeConnector, environ: dict[str, str]
) -> None:
    """The plan is made again after the stop, because tasks commit offsets while they stop."""
    stored.committed_while_stopping = [entry(A, 31), entry(B, 8)]
    assert run("offsets", "reset", "orders", "--stop", "--yes").code == 0
    (path,) = backups(environ)
    assert json.loads(path.read_text())["offsets"] == [entry(A, 31), entry(B, 8)]


def test_reset_of_one_partition_leaves_the_others(run: Run, connect: FakeConnect) -> None:
    """A reset of one partition keeps the others; a sink's partition is TOPIC:NUMBER."""
    run("offsets", "reset", "broken", "--partition", "t:0", "--yes", code=0)
    assert connect.connectors["broken"].offsets == [sink_entry("t", 1, 200)]


def test_reset_may_run_twice(run: Run, connect: FakeConnect, environ: dict[str, str]) -> None:
    """A second reset succeeds and makes no backup."""
    for _ in range(2):
        run("offsets", "reset", "orders", "--stop", "--yes", code=0)
    assert len(backups(environ)) == 1


def test_reset_goes_on_when_one_of_a_selection_is_refused(run: Run, connect: FakeConnect) -> None:
    """A selected connector that is not STOPPED is refused and the others are changed: exit 8."""
    assert "orders is RUNNING" in run("offsets", "reset", "--all", "--yes", code=8).err
    assert connect.connectors["broken"].offsets == []
    assert changes(connect) == ["DELETE /connectors/broken/offsets"]


def test_a_dry_run_only_prints(run: Run, connect: FakeConnect, environ: dict[str, str]) -> None:
    """A dry run changes nothing and makes no backup; with --exit-code a change is exit 1."""
    outcome = run("offsets", "reset", "orders", "--stop", "--dry-run", "--exit-code", code=1)
    assert '{"filename":"b.txt"}  {"position":7} -> forgotten' in outcome.out
    assert changes(connect) == []
    assert backups(environ) == []
    (plan,) = json.loads(run("offsets", "reset", "orders", "--stop", "--dry-run", "-o", "json").out)
    assert plan["states"] == ["RUNNING", "STOPPED"]
    assert plan["changes"][0] == {"partition": A, "before": {"position": 30}, "after": None}


def test_a_change_that_is_not_read_back_is_a_server_error(run: Run, connect: FakeConnect) -> None:
    """If the worker accepts a change and still returns the old offsets, the error is exit 10."""
    connect.connectors["broken"].forgets_changes = True
    outcome = run("offsets", "reset", "broken", "--yes", "--timeout", "4s", code=10)
    assert "differs from the sent offset" in outcome.err


def test_consumers_that_linger_are_waited_out(run: Run, connect: FakeConnect) -> None:
    """A reset that the worker refuses because tasks have not stopped yet is sent again."""
    text = (
        "Failed to reset consumer group offsets for connector broken either because its tasks"
        " haven't stopped completely yet or the connector was resumed before the request to reset"
        " its offsets could be successfully completed. If the connector is in a stopped state,"
        " this operation can be safely retried."
    )
    connect.failures["DELETE /connectors/broken/offsets"] = [(500, text), (500, text)]
    run("offsets", "reset", "broken", "--yes", code=0)
    assert connect.connectors["broken"].offsets == []


def test_no_backup_of_a_refusal(run: Run, connect: FakeConnect, environ: dict[str, str]) -> None:
    """A refused change leaves no backup, because there is nothing to undo."""
    stop(connect)
    connect.failures["DELETE /connectors/orders/offsets"] = [(400, "not stopped")]
    assert run("offsets", "reset", "orders", "--yes").code == 2
    assert backups(environ) == []


def test_externally_managed_offsets_are_reported(run: Run, connect: FakeConnect) -> None:
    """A connector that does not handle offset changes itself is reported."""
    connect.connectors["broken"].takes_part = False
    outcome = run("offsets", "reset", "broken", "--yes", code=0)
    assert "offsets that the connector manages itself are not changed" in outcome.out


def test_alter_sets_many_partitions_in_one_request(run: Run, connect: FakeConnect) -> None:
    """`alter` sets several partitions with one PATCH, and null deletes an offset."""
    run("offsets", "alter", "broken", "--set", "t:0=5", "--set", "t:1=null", "--yes", code=0)
    assert connect.connectors["broken"].offsets == [sink_entry("t", 0, 5)]
    assert changes(connect) == ["PATCH /connectors/broken/offsets"]


def test_a_file_of_a_windows_editor_is_read(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """A file may begin with a byte order mark and have lines that end with CR LF."""
    body = run("offsets", "get", "broken", "-o", "json").out.replace("200", "201")
    file = tmp_path / "offsets.json"
    file.write_bytes(b"\xef\xbb\xbf" + body.replace("\n", "\r\n").encode())
    run("offsets", "alter", "broken", "-f", str(file), "--yes", code=0)
    assert sink_entry("t", 1, 201) in connect.connectors["broken"].offsets


def test_alter_takes_json_twice(run: Run, connect: FakeConnect, stored: FakeConnector) -> None:
    """A source's partition and offset are given as two JSON objects."""
    stop(connect)
    text = '{"filename": "a.txt"} = {"position": 4}'
    run("offsets", "alter", "orders", "--set", text, "--yes", code=0)
    assert stored.offsets == [entry(B, 7), entry(A, 4)]


def test_a_second_run_resumes_a_connector_that_an_interrupted_run_stopped(
    run: Run, connect: FakeConnect, stored: FakeConnector
) -> None:
    """--resume resumes a connector that an interrupted run left STOPPED, even without a change."""
    stop(connect)
    text = '{"filename":"a.txt"}={"position":30}'
    outcome = run("offsets", "alter", "orders", "--set", text, "--stop", "--resume", "--yes")
    assert outcome.code == 0, outcome.err
    assert outcome.out == "orders: unchanged (resumed)\n"
    assert stored.state == "RUNNING"


def test_a_run_of_cron_is_one_line_of_json(run: Run) -> None:
    """The summary of a run has the id of the backup."""
    outcome = run("offsets", "reset", "broken", "--yes", "--summary-json")
    summary = json.loads(outcome.out)
    assert outcome.err == ""
    assert summary["succeeded"] == 1
    assert "backup " in summary["results"][0]["detail"]


def test_a_source_starts_over(run: Run, connect: FakeConnect, stored: FakeConnector) -> None:
    """`seek --to-start` of a source deletes all offsets after a backup."""
    stop(connect)
    run("offsets", "seek", "orders", "--to-start", "--yes", code=0)
    assert stored.offsets == []
    assert run("offsets", "undo", "--yes").code == 0
    assert len(stored.offsets) == 2


def test_a_sinks_reset_names_where_it_begins(run: Run, connect: FakeConnect) -> None:
    """`seek --to-start` of a sink is refused with a hint at --to-earliest."""
    assert "--to-earliest" in run("offsets", "seek", "broken", "--to-start", "--yes", code=9).err
    assert changes(connect) == []
