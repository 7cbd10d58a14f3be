"""Requests that `pyconnect offsets` refuses before it sends them, without a change."""

from pathlib import Path

import pytest

from pyconnect_cli.errors import OutputLost
from tests.cli.conftest import Run
from tests.cli.offsets_world import changes, stop, stored
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector

pytestmark = pytest.mark.wire

__all__ = ["stored"]


def test_reset_of_an_unknown_partition_changes_nothing(run: Run, connect: FakeConnect) -> None:
    """A reset of a partition without an offset is exit 3."""
    outcome = run("offsets", "reset", "broken", "-p", "t:0", "-p", "t:9", "--yes", code=3)
    assert "no offset of partition t:9" in outcome.err
    assert changes(connect) == []


def test_a_state_directory_that_is_a_file_stops_the_change_before_anything(
    run: Run, connect: FakeConnect, environ: dict[str, str]
) -> None:
    """Without a directory for backups a change is exit 9, unless --no-backup is given."""
    Path(environ["XDG_STATE_HOME"]).write_text("")
    outcome = run("offsets", "reset", "orders", "--stop", "--yes", code=9)
    assert "a backup cannot be written" in outcome.err
    assert changes(connect) == []
    outcome = run("offsets", "reset", "orders", "--stop", "--yes", "--no-backup", code=0)
    assert "undo" not in outcome.err


def test_a_state_directory_that_is_another_one_elsewhere_stops_the_change(
    run: Run, connect: FakeConnect, environ: dict[str, str]
) -> None:
    """A state directory whose path is not absolute is refused, because backups could be lost."""
    environ["XDG_STATE_HOME"] = "~/state"
    outcome = run("offsets", "reset", "orders", "--stop", "--yes", code=9)
    assert "not an absolute path" in outcome.err
    assert "XDG_STATE_HOME" in outcome.err
    assert changes(connect) == []
    assert run("upgrade", "status").code == 9
    outcome = run("offsets", "reset", "orders", "--stop", "--yes", "--no-backup", code=0)


def test_an_older_worker_is_refused_with_the_needed_version(run: Run, connect: FakeConnect) -> None:
    """A worker without the endpoint is exit 9 with the Kafka version that introduced it."""
    connect.failures["GET /connectors/orders/offsets"] = [(404, "HTTP 404 Not Found")]
    assert "3.5 (KIP-875)" in run("offsets", "get", "orders", code=9).err
    connect.failures["PATCH /connectors/broken/offsets"] = [(405, "HTTP 405 Method Not Allowed")]
    outcome = run("offsets", "alter", "broken", "--set", "t:0=1", "--yes", code=9)
    assert "3.6 (KIP-875)" in outcome.err


def test_files_of_other_connectors_and_unfit_values_are_refused(
    run: Run, connect: FakeConnect, tmp_path: Path
) -> None:
    """A file of another connector or with values that are not primitive is refused."""
    stop(connect)
    file = tmp_path / "exported.json"
    assert run("offsets", "export", "orders", "-f", str(file)).code == 0
    connect.connectors["later"] = FakeConnector(config=dict(connect.connectors["orders"].config))
    outcome = run("offsets", "alter", "later", "-f", str(file), "--yes", "--stop", code=2)
    assert "contains the offsets of orders, not of later" in outcome.err
    assert changes(connect) == []
    stop(connect)
    file = tmp_path / "offsets.yaml"
    for text, reason in (
        ("offsets: [{partition: {1: a}, offset: null}]", "key 1 is not a text"),
        ("offsets: [{partition: {a: [1]}, offset: null}]", "`a` is a list"),
    ):
        file.write_text(text)
        assert reason in run("offsets", "alter", "orders", "-f", str(file), "--yes", code=2).err
    assert changes(connect) == []


BAD_SINK_BODIES = {
    "is not JSON": "{offsets}",
    "an object with `offsets` was expected": "[]",
    "at least one entry": '{"offsets": []}',
    "must be a list": '{"offsets": {}}',
    "must be an object": '{"offsets": [7]}',
    "`offset` is missing": '{"offsets": [{"partition": {"kafka_topic": "t", "kafka_partition":'
    " 0}}]}",
    "`partition` is missing": '{"offsets": [{"offset": null}]}',
    "exactly `kafka_topic`": '{"offsets": [{"partition": {"kafka_topic": "t"}, "offset": null}]}',
    "is not a whole number": '{"offsets": [{"partition": {"kafka_topic": "t", "kafka_partition":'
    ' 0}, "offset": {"kafka_offset": 1.5}}]}',
    "-1 is negative": '{"offsets": [{"partition": {"kafka_topic": "t", "kafka_partition": 0},'
    ' "offset": {"kafka_offset": -1}}]}',
    "partition t:0 occurs twice": '{"offsets": [{"partition": {"kafka_topic": "t",'
    ' "kafka_partition": 0}, "offset": null}, {"partition": {"kafka_partition": "0",'
    ' "kafka_topic": "t"}, "offset": {"kafka_offset": 1}}]}',
    "partition t:9 has no stored offset": '{"offsets": [{"partition": {"kafka_topic": "t",'
    ' "kafka_partition": 9}, "offset": {"kafka_offset": 1}}]}',
    "occurs twice in one object": '{"offsets": [], "offsets": []}',
    "unknown member other": '{"offsets": [], "other": 1}',
}


@pytest.mark.parametrize("reason", BAD_SINK_BODIES)
def test_offsets_that_a_worker_would_misread_are_refused_before_sending(
    run: Run, connect: FakeConnect, tmp_path: Path, reason: str
) -> None:
    """Offsets that the worker could read in another way are exit 2 before the first request."""
    file = tmp_path / "offsets.json"
    file.write_text(BAD_SINK_BODIES[reason])
    assert reason in run("offsets", "alter", "broken", "-f", str(file), "--yes", code=2).err
    assert changes(connect) == []


BAD_SOURCE_BODIES = {
    "`position` is a text, the stored one is a number": '[{"partition": {"filename": "a.txt"},'
    ' "offset": {"position": "5"}}]',
    "`position` is negative: -1": '[{"partition": {"filename": "a.txt"}, "offset": {"position":'
    " -1}}]",
    "has no stored offset": '[{"partition": {"filename": "c.txt"}, "offset": {"position": 5}}]',
    "has none of place": '[{"partition": {"filename": "a.txt"}, "offset": {"place": 5}}]',
}


@pytest.mark.parametrize("reason", BAD_SOURCE_BODIES)
def test_offsets_unlike_the_stored_ones_need_force(
    run: Run, connect: FakeConnect, tmp_path: Path, reason: str
) -> None:
    """Offsets unlike the stored ones need --force, because only the source knows its form."""
    stop(connect)
    file = tmp_path / "offsets.json"
    file.write_text(f'{{"offsets": {BAD_SOURCE_BODIES[reason]}}}')
    assert reason in run("offsets", "alter", "orders", "-f", str(file), "--yes", code=2).err
    assert changes(connect) == []
    assert run("offsets", "alter", "orders", "-f", str(file), "--yes", "--force").code == 0
    assert changes(connect) == ["PATCH /connectors/orders/offsets"]


REFUSED = "The connector does not support altering of offsets"


@cases("before", "RUNNING", "PAUSED")
@cases(
    "method, command",
    ("PATCH", ("alter", "orders", "--set", '{"filename":"a.txt"}={"position":1}', "--stop")),
    ("DELETE", ("reset", "orders", "--stop", "--resume")),
)
def test_a_refused_change_leaves_the_connector_in_its_state(
    run: Run, connect: FakeConnect, before: str, method: str, command: tuple[str, ...]
) -> None:
    """If the worker refuses the change, the connector returns to its state before the stop."""
    connect.connectors["orders"].enter(before)
    connect.failures[f"{method} /connectors/orders/offsets"] = [(400, REFUSED)]
    ended = run("offsets", *command, "--yes", code=2)
    assert connect.connectors["orders"].state == before
    verb = "resumed" if before == "RUNNING" else "paused"
    assert f"hint: no offset was changed, and orders was {verb} again" in ended.err


def test_a_backup_that_cannot_be_written_leaves_the_connector_in_its_state(
    run: Run, connect: FakeConnect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the backup cannot be written, the connector returns to its state before the stop."""

    def full(*_: object, **__: object) -> None:
        raise OutputLost("backups: cannot be written: No space left on device")

    monkeypatch.setattr("pyconnect_cli.offsets.files.Backups.store", full)
    run("offsets", "reset", "orders", "--stop", "--yes", code=74)
    assert connect.connectors["orders"].state == "RUNNING"
    assert not [r for r in changes(connect) if r.startswith(("PATCH", "DELETE"))]


def test_an_unknown_outcome_leaves_the_connector_stopped(run: Run, connect: FakeConnect) -> None:
    """After an unknown outcome the connector stays STOPPED, also with --resume."""
    connect.failures["DELETE /connectors/orders/offsets"] = [(500, "broke in the middle")]
    ended = run("offsets", "reset", "orders", "--stop", "--resume", "--yes", code=10)
    assert connect.connectors["orders"].state == "STOPPED"
    assert "broke in the middle" in ended.err
    assert "was stopped and stays STOPPED" in ended.err
    assert "pyconnect connectors resume orders" in ended.err


@cases("dry_run", (), ("--dry-run",))
def test_a_worker_that_changes_no_offsets_stops_no_connector(
    run: Run, connect: FakeConnect, dry_run: tuple[str, ...]
) -> None:
    """No connector is stopped on a worker before Kafka 3.6, which cannot change offsets."""
    connect.version = "3.5.2"
    ended = run("offsets", "reset", "orders", "--stop", "--resume", "--yes", *dry_run, code=9)
    assert "runs version 3.5.2" in ended.err
    assert changes(connect) == []
