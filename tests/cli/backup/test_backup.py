"""`pyconnect backup` saves each connector whole and without secrets, whatever else fails."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.offsets_world import A, entry, stored
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector

__all__ = ["stored"]

pytestmark = pytest.mark.wire


def backups_in(directory: str = "b") -> list[Path]:
    return sorted(Path(directory).iterdir())


def read(path: Path, *parts: str) -> Any:
    return json.loads(path.joinpath(*parts).read_text())


def test_a_backup_holds_all_of_a_cluster(run: Run, connect: FakeConnect, url: str) -> None:
    """A backup has configurations, states, offsets, logger levels, and a manifest of its files."""
    connect.connectors["orders"].enter("PAUSED")
    outcome = run("backup", "b", code=0)
    (path,) = backups_in()
    assert f"backup of 2 connectors: {path}" in outcome.err
    orders = read(path, "connectors", "orders.json")
    assert (orders["name"], orders["initial_state"]) == ("orders", "PAUSED")
    assert read(path, "connectors", "broken.json")["initial_state"] == "STOPPED"
    assert read(path, "offsets", "orders.json")["offsets"] == connect.connectors["orders"].offsets
    assert read(path, "loggers.json") == {url: {"root": "INFO"}}
    manifest = read(path, "manifest.json")
    assert manifest["format"] == "pyconnect-backup/1"
    assert (manifest["kafka_cluster_id"], manifest["whole"]) == ("k", True)
    assert len(manifest["files"]) == 5
    assert run("connectors", "diff", "-f", str(path / "connectors")).code == 0


def test_plain_secrets_are_masked_unless_they_are_asked_for(run: Run) -> None:
    """A backup masks plain secrets with a warning, or keeps them in files for their owner only."""
    masked = run("backup", "b")
    assert "secrets are masked: orders" in masked.err
    assert "hunter2" not in backups_in()[0].joinpath("connectors", "orders.json").read_text()
    kept = run("backup", "b", "--show-secrets")
    assert "masked" not in kept.err
    file = backups_in()[1] / "connectors" / "orders.json"
    assert "hunter2" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert "hunter2" not in masked.err + kept.err + kept.out


def test_the_rest_is_saved_when_one_connector_fails(run: Run, connect: FakeConnect) -> None:
    """If one connector fails, the others are saved, and the manifest names the missing part."""
    connect.connectors["third"] = FakeConnector(config={"name": "third"})
    connect.failures["GET /connectors/orders/offsets"] = [(500, "no luck")]
    outcome = run("backup", "b", "--summary-json", code=8)
    summary = json.loads(outcome.out)
    assert (summary["succeeded"], summary["failed"]) == (4, 1)
    (path,) = backups_in()
    manifest = read(path, "manifest.json")
    assert list(manifest["missing"]) == ["orders"]
    assert "no luck" in manifest["missing"]["orders"]
    assert not manifest["whole"]
    assert read(path, "connectors", "orders.json")["name"] == "orders"
    assert not (path / "offsets" / "orders.json").exists()


def test_a_connector_is_saved_as_it_was_at_one_moment(run: Run, connect: FakeConnect) -> None:
    """If a configuration changes while the offsets are read, both are read again."""
    orders = connect.connectors["orders"]
    answer = connect.answer
    asked: list[str] = []

    def changing(method: str, target: str, body: Any, authorization: str | None = None) -> Any:
        found = answer(method, target, body, authorization)
        asked.append(target)
        if target == "/connectors/orders/offsets" and asked.count(target) == 1:
            orders.config = {**orders.config, "topic": "other"}
            orders.offsets = [entry(A, 99)]
        return found

    connect.answer = changing  # type: ignore[method-assign]
    assert run("backup", "b").code == 0
    (path,) = backups_in()
    assert read(path, "connectors", "orders.json")["config"]["topic"] == "other"
    assert read(path, "offsets", "orders.json")["offsets"] == [entry(A, 99)]


def test_a_connector_that_never_holds_still_is_a_failure(run: Run, connect: FakeConnect) -> None:
    """A connector that changes during every attempt is a failure, so that no mixture is saved."""
    orders = connect.connectors["orders"]
    answer = connect.answer

    def changing(method: str, target: str, body: Any, authorization: str | None = None) -> Any:
        if target == "/connectors/orders/offsets":
            orders.config = {**orders.config, "n": f"{len(connect.requests)}"}
        return answer(method, target, body, authorization)

    connect.answer = changing  # type: ignore[method-assign]
    assert "changed each time while it was read" in run("backup", "b", code=8).err
    assert not (backups_in()[0] / "connectors" / "orders.json").exists()


def test_a_connector_deleted_meanwhile_is_left_out(run: Run, connect: FakeConnect) -> None:
    """A connector that is deleted during the backup is left out, and the backup succeeds."""
    connect.failures["GET /connectors/orders/offsets"] = [(404, "Connector orders not found")]
    assert "left out: it was deleted meanwhile" in run("backup", "b", code=0).out


@cases(
    "tasks, told, state",
    (["PAUSED", "FAILED"], {}, "PAUSED"),
    (["RUNNING"], {}, "RUNNING"),
    ([], {"orders": "PAUSED"}, "PAUSED"),
)
def test_tasks_or_agents_show_the_target_state_of_a_failed_connector(
    run: Run, connect: FakeConnect, tasks: list[str], told: dict[str, str], state: str
) -> None:
    """FAILED is not a target state: a paused connector that has failed is saved as PAUSED."""
    connect.target_states = told or connect.target_states
    orders = connect.connectors["orders"]
    orders.state, orders.tasks = "FAILED", tasks
    assert run("backup", "b").code == 0
    assert read(backups_in()[0], "connectors", "orders.json")["initial_state"] == state


def test_a_target_state_that_nothing_shows_is_missing(run: Run, connect: FakeConnect) -> None:
    """An unknown target state is left out: exit 8, and the message names the remedy."""
    orders = connect.connectors["orders"]
    orders.state, orders.tasks = "FAILED", []
    outcome = run("backup", "b", code=8)
    assert "target state is not known" in outcome.err
    assert "--worker-config" in outcome.err
    assert "initial_state" not in read(backups_in()[0], "connectors", "orders.json")


def test_keep_removes_earlier_whole_backups_of_the_cluster(run: Run, connect: FakeConnect) -> None:
    """--keep N leaves the newest N whole backups of the cluster, and those of other clusters."""
    connect.cluster_id = "other"
    assert run("backup", "b").code == 0
    connect.cluster_id = "k"
    for _ in range(2):
        assert run("backup", "b").code == 0
    connect.failures["GET /connectors/orders/offsets"] = [(500, "no luck")]
    assert run("backup", "b", "--keep", "1").code == 8
    assert len(backups_in()) == 4
    assert run("backup", "b", "--keep", "2").code == 0
    clusters = [read(path, "manifest.json")["kafka_cluster_id"] for path in backups_in()]
    wholes = [read(path, "manifest.json")["whole"] for path in backups_in()]
    assert (clusters, wholes) == (["other", "k", "k", "k"], [True, True, False, True])
    assert run("backup", "b", "orders", "--keep", "1").code == 2


def test_the_deadline_leaves_a_backup_of_what_was_saved(run: Run, connect: FakeConnect) -> None:
    """A run that reaches --deadline leaves a backup whose manifest names the missing connectors."""
    import threading

    connect.slow["GET /connectors/orders/offsets"] = threading.Event()
    outcome = run("backup", "b", "--deadline", "4s")
    connect.slow["GET /connectors/orders/offsets"].set()
    assert outcome.code == 124
    manifest = read(backups_in()[0], "manifest.json")
    assert "orders" in manifest["missing"]
    assert "connectors/broken.json" in manifest["files"]


def test_a_directory_that_cannot_be_written_is_reported(run: Run) -> None:
    """A file in place of the directory of backups is an error that names the cause."""
    Path("b").write_text("a file")
    outcome = run("backup", "b")
    assert outcome.code in {8, 74}
    assert "cannot be written" in outcome.err
