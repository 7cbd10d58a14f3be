"""`pyconnect offsets undo import copy`, and connectors created with offsets."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from pyconnect_cli.rest.model import ConnectCluster
from tests.cli.conftest import Run
from tests.cli.offsets_world import backups, changes, sink_entry, stop, stored
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector, serve

pytestmark = pytest.mark.wire

__all__ = ["stored"]


def test_undo_can_itself_be_undone(run: Run, connect: FakeConnect, environ: dict[str, str]) -> None:
    """An undo without an id takes back the newest change, which may be an undo."""
    before = connect.connectors["broken"].offsets
    assert run("offsets", "alter", "broken", "--set", "t:0=5", "--set", "t:1=6", "--yes").code == 0
    assert run("offsets", "undo", "--yes").code == 0
    assert connect.connectors["broken"].offsets == before
    assert run("offsets", "undo", "--yes").code == 0
    assert connect.connectors["broken"].offsets == [sink_entry("t", 0, 5), sink_entry("t", 1, 6)]
    assert run("offsets", "undo", backups(environ)[0].stem, "--yes").code == 0
    assert connect.connectors["broken"].offsets == before


def test_undo_skips_failed_changes(run: Run, connect: FakeConnect, environ: dict[str, str]) -> None:
    """An undo skips a change that failed without an effect."""
    sink = connect.connectors["broken"]
    before = sink.offsets
    assert run("offsets", "alter", "broken", "--set", "t:0=5", "--yes").code == 0
    connect.failures["PATCH /connectors/broken/offsets"] = [(500, "not these")]
    assert run("offsets", "alter", "broken", "--set", "t:0=6", "--yes").code == 10
    assert [kept["failed"] for kept in _history(run)] == [True, False]
    outcome = run("offsets", "undo", "--yes", code=0)
    assert f"{backups(environ)[1].stem} is skipped: its change failed" in outcome.err
    assert sorted(sink.offsets, key=str) == before


def test_undo_takes_back_a_failed_change_that_did_something(run: Run, connect: FakeConnect) -> None:
    """An undo takes back a failed change that has changed the stored offsets."""
    sink = connect.connectors["broken"]
    before = sink.offsets
    connect.failures["PATCH /connectors/broken/offsets"] = [(500, "Request timed out")]
    assert run("offsets", "alter", "broken", "--set", "t:0=6", "--yes").code == 10
    sink.offsets = [sink_entry("t", 0, 6), sink_entry("t", 1, 200)]
    assert run("offsets", "undo", "--yes").code == 0
    assert sorted(sink.offsets, key=str) == before


def _history(run: Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("offsets", "history", "-o", "json").out)
    return found


@cases("partition", {}, None)
def test_a_source_may_have_one_nameless_partition(
    run: Run,
    connect: FakeConnect,
    stored: FakeConnector,
    tmp_path: Path,
    partition: dict[str, Any] | None,
) -> None:
    """The empty and the null partition of a source can be reset, undone and altered."""
    stop(connect)
    stored.offsets = [{"partition": partition, "offset": {"position": 5}}]
    before = stored.offsets
    file = tmp_path / "offsets.json"
    file.write_text(run("offsets", "get", "orders", "-o", "json").out)
    assert run("offsets", "reset", "orders", "--yes").code == 0
    run("offsets", "undo", "--yes", code=0)
    assert stored.offsets == before
    assert (
        run("offsets", "reset", "orders", "--partition", json.dumps(partition), "--yes").code == 0
    )
    run("offsets", "alter", "orders", "-f", str(file), "--yes", code=0)
    assert stored.offsets == before


def test_undo_without_a_question_keeps_later_changes(run: Run, connect: FakeConnect) -> None:
    """An undo with --yes refuses to overwrite later changes, unless --force is given."""
    sink = connect.connectors["broken"]
    assert run("offsets", "alter", "broken", "--set", "t:0=5", "--yes").code == 0
    sink.offsets = [sink_entry("t", 0, 9), sink_entry("t", 1, 200), sink_entry("t", 2, 4)]
    asked = changes(connect)
    outcome = run("offsets", "undo", "--yes", code=9)
    assert "a user has changed 2 partitions: t:0 was left at 5 and is at 9" in outcome.err
    assert "--force" in outcome.err
    assert changes(connect) == asked
    outcome = run("offsets", "undo", "--yes", "--force", code=0)
    assert sorted(sink.offsets, key=str) == [sink_entry("t", 0, 100), sink_entry("t", 1, 200)]


@cases(
    "change, after, later",
    # The snapshot is restored as it was, not merged.
    (("alter", "broken", "--set", "u:0=1", "--force"), 3, None),
    # The old offset is there already, so the undo loses no later change.
    (("reset", "broken"), 0, [sink_entry("t", 0, 100)]),
)
def test_undo_restores_exactly_what_was_there(
    run: Run,
    connect: FakeConnect,
    change: tuple[str, ...],
    after: int,
    later: list[dict[str, Any]] | None,
) -> None:
    """An undo deletes offsets of partitions that are not in the backup."""
    sink = connect.connectors["broken"]
    before = list(sink.offsets)
    assert run("offsets", *change, "--yes").code == 0
    assert len(sink.offsets) == after
    sink.offsets = later or sink.offsets
    assert run("offsets", "undo", "--yes").code == 0
    assert sink.offsets == before


def test_the_plan_of_an_undo_shows_what_it_overwrites(run: Run, connect: FakeConnect) -> None:
    """The plan of an undo warns of later changes and shows each of their partitions."""
    assert run("offsets", "alter", "broken", "--set", "t:0=5", "--yes").code == 0
    connect.connectors["broken"].offsets = [sink_entry("t", 0, 9), sink_entry("t", 1, 200)]
    for options in (("--dry-run",), ("--dry-run", "--yes")):
        outcome = run("offsets", "undo", *options, code=0)
        assert "warning: the connector or a user has changed 1 " in outcome.out
        assert "t:0  9 -> 100  (was left at 5)" in outcome.out
    (plan,) = json.loads(run("offsets", "undo", "--dry-run", "-o", "json").out)
    (since,) = plan["since"]
    assert (since["before"], since["after"]) == ({"kafka_offset": 5}, {"kafka_offset": 9})


def test_a_backup_of_an_earlier_version_is_undone_as_ever(
    run: Run, connect: FakeConnect, environ: dict[str, str]
) -> None:
    """An undo of an earlier version's backup says that later changes are not known."""
    before = list(connect.connectors["broken"].offsets)
    assert run("offsets", "reset", "broken", "--yes").code == 0
    (file,) = backups(environ)
    document = json.loads(file.read_text())
    assert document.pop("left") == []
    file.write_text(json.dumps(document))
    connect.connectors["broken"].offsets = [sink_entry("t", 0, 9)]
    outcome = run("offsets", "undo", "--yes", code=0)
    assert "later changes are not known: the backup is not the newest one" in outcome.err
    assert connect.connectors["broken"].offsets == before


def test_missing_and_expired_backups_are_reported(run: Run, connect: FakeConnect) -> None:
    """A missing or expired backup is exit 3, and a text that is not an id is exit 2."""
    outcome = run("offsets", "undo", "--yes")
    assert (outcome.code, "nothing to undo" in outcome.err) == (3, True)
    outcome = run("offsets", "undo", "20200101T000000000000Z-abcdef", "--yes")
    assert (outcome.code, "has expired" in outcome.err) == (3, True)
    outcome = run("offsets", "undo", "29990101T000000000000Z-abcdef", "--yes")
    assert (outcome.code, "contains no backup" in outcome.err) == (3, True)
    assert run("offsets", "undo", "yesterday", "--yes").code == 2
    assert changes(connect) == []


def test_undo_keeps_to_its_cluster(run: Run, connect: FakeConnect, environ: dict[str, str]) -> None:
    """A backup of another Kafka cluster is not restored, because names may be the same there."""
    assert run("offsets", "reset", "broken", "--yes").code == 0
    connect.cluster_id = "other"
    outcome = run("offsets", "undo", backups(environ)[0].stem, "--yes", code=9)
    assert "Kafka cluster k" in outcome.err
    assert run("offsets", "undo", "--yes").code == 3
    assert changes(connect) == ["DELETE /connectors/broken/offsets"]


def test_undo_leaves_the_backups_of_another_connect_cluster_alone(
    run: Run, connect: FakeConnect, environ: dict[str, str]
) -> None:
    """An undo without an id does not take a backup of another Connect cluster."""
    assert run("offsets", "reset", "broken", "--yes").code == 0
    (file,) = backups(environ)
    document = json.loads(file.read_text())
    assert (document["connect_group"], "worker-1:8083" in document["workers"]) == ("", True)
    file.write_text(json.dumps(document | {"workers": ["elsewhere:8083"]}))
    outcome = run("offsets", "undo", "--yes", code=9)
    assert "was made through other workers (elsewhere:8083)" in outcome.err
    assert changes(connect) == ["DELETE /connectors/broken/offsets"]
    assert run("offsets", "undo", file.stem, "--yes").code == 0


@cases(
    "one, other, same",
    (ConnectCluster(group_id="a"), ConnectCluster(group_id="b"), False),
    (
        ConnectCluster(group_id="a", workers=frozenset({"w"})),
        ConnectCluster(group_id="b", workers=frozenset({"w"})),
        False,
    ),
    (ConnectCluster(group_id="a"), ConnectCluster(group_id="a"), True),
    (
        ConnectCluster(workers=frozenset({"w", "v"})),
        ConnectCluster(group_id="b", workers=frozenset({"w"})),
        True,
    ),
    (ConnectCluster(workers=frozenset({"v"})), ConnectCluster(workers=frozenset({"w"})), None),
    (ConnectCluster(), ConnectCluster(group_id="b", workers=frozenset({"w"})), True),
)
def test_connect_clusters_are_distinguished_by_group_else_by_workers(
    one: ConnectCluster, other: ConnectCluster, same: bool | None
) -> None:
    """Connect clusters differ by their group, or without a known group by their workers."""
    assert one.is_same(other) is same


def test_export_and_import_move_offsets(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """`import` restores the offsets that `export` wrote to a file with mode 0600."""
    file = tmp_path / "offsets.json"
    assert run("offsets", "export", "broken", "-f", str(file)).code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = connect.connectors["broken"].offsets
    assert run("offsets", "reset", "broken", "--yes").code == 0
    run("offsets", "import", "broken", "-f", str(file), "--yes", code=0)
    assert connect.connectors["broken"].offsets == before


def test_another_class_needs_force(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """Another class or Kafka cluster needs --force; offsets of the other type are refused."""
    file = tmp_path / "offsets.json"
    assert run("offsets", "export", "broken", "-f", str(file)).code == 0
    config = connect.connectors["broken"].config
    connect.connectors["broken"].config = {**config, "connector.class": "org.example.Other"}
    connect.connectors["broken"].offsets = []
    outcome = run("offsets", "import", "broken", "-f", str(file), "--yes", code=9)
    assert "org.example.Other" in outcome.err
    connect.connectors["broken"].config = config
    connect.cluster_id = "other"
    assert run("offsets", "import", "broken", "-f", str(file), "--yes").code == 9
    assert run("offsets", "import", "orders", "-f", str(file), "--yes", "--force").code == 9
    assert changes(connect) == []
    assert run("offsets", "import", "broken", "-f", str(file), "--yes", "--force").code == 0
    assert len(connect.connectors["broken"].offsets) == 2


def test_copy_gives_the_offsets_of_one_connector_to_another(run: Run, connect: FakeConnect) -> None:
    """`copy` sets offsets of another connector of the same class, whose tasks may run."""
    stored = connect.connectors["orders"]
    copied = FakeConnector(config=dict(stored.config), state="STOPPED", tasks=[])
    connect.connectors["orders-2"] = copied
    run("offsets", "copy", "orders", "orders-2", "--yes", code=0)
    assert copied.offsets == stored.offsets
    assert run("offsets", "copy", "orders", "broken", "--yes").code == 9


def test_connectors_start_with_offsets(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """A connector with offsets is created STOPPED, gets its offsets and is resumed."""
    file = tmp_path / "offsets.json"
    assert run("offsets", "export", "orders", "-f", str(file)).code == 0
    config = ("--set", "connector.class=org.example.FileSource", "--offsets-from", str(file))
    run("connectors", "create", "later", *config, "--wait", "RUNNING", code=0)
    assert connect.connectors["later"].offsets == connect.connectors["orders"].offsets
    assert changes(connect) == [
        "POST /connectors",
        "PATCH /connectors/later/offsets",
        "PUT /connectors/later/resume",
    ]
    other = ("--set", "connector.class=org.example.Other", "--offsets-from", str(file))
    assert run("connectors", "create", "wrong", *other).code == 9
    assert "wrong" not in connect.connectors


def test_a_connector_whose_offsets_are_not_taken_stays_stopped(
    run: Run, connect: FakeConnect, tmp_path: Path
) -> None:
    """If the offsets of a new connector fail, it stays STOPPED and the error names the way on."""
    file = tmp_path / "offsets.json"
    assert run("offsets", "export", "orders", "-f", str(file)).code == 0
    connect.failures["PATCH /connectors/later/offsets"] = [(500, "no luck")]
    config = ("--set", "connector.class=org.example.FileSource", "--offsets-from", str(file))
    outcome = run("connectors", "create", "later", *config, code=10)
    assert "pyconnect connectors delete later" in outcome.err
    assert connect.connectors["later"].state == "STOPPED"


def test_copy_reaches_another_cluster_with_its_own_credentials(
    run: Run, connect: FakeConnect, environ: dict[str, str]
) -> None:
    """`copy` to another cluster does not send it the credentials of the first cluster."""
    stored = connect.connectors["orders"]
    copied = FakeConnector(config=dict(stored.config), state="STOPPED", tasks=[])
    elsewhere = FakeConnect(connectors={"orders": copied}, cluster_id="other")
    environ |= {"PYCONNECT_TOKEN": "secret", "PYCONNECT_KAFKA_BOOTSTRAP": "127.0.0.1:1"}
    with serve(elsewhere) as address:
        assert run("context", "set", "there", "--url", address).code == 0
        copy = ("offsets", "copy", "orders", "orders", "--to-context", "there", "--yes", "-v")
        outcome = run(*copy)
    assert outcome.code == 0, outcome.err
    assert copied.offsets == stored.offsets
    assert "pyconnect --context there offsets undo" in outcome.err
    assert changes(connect) == []
    assert set(connect.authorizations) == {"Bearer secret"}
    assert set(elsewhere.authorizations) == {None}


def test_a_damaged_backup_hides_no_other_and_is_not_passed_over(
    run: Run, connect: FakeConnect, environ: dict[str, str]
) -> None:
    """A damaged backup does not hide others, and an undo without an id does not skip it."""
    for offset in ("5", "6"):
        assert run("offsets", "alter", "broken", "--set", f"t:0={offset}", "--yes").code == 0
    older, newer = backups(environ)
    newer.write_text('{"format": "pyconnect-offsets/1"')
    outcome = run("offsets", "history", "-o", "name")
    assert outcome.out.split() == [older.stem]
    assert "is not JSON" in outcome.err
    assert run("offsets", "undo", newer.stem, "--yes").code == 2
    newer.write_text("")
    asked = changes(connect)
    outcome = run("offsets", "undo", "--yes", "--force", code=9)
    assert f"the newest backup, {newer.stem}, cannot be used" in outcome.err
    assert f"pyconnect offsets undo {older.stem}" in outcome.err
    assert changes(connect) == asked
