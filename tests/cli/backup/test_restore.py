"""`pyconnect restore`: STOPPED, configuration, offsets, then the state; refused if in doubt."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.offsets_world import A, changes, entry, stored
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector

__all__ = ["stored"]

pytestmark = pytest.mark.wire


@pytest.fixture
def saved(run: Run, connect: FakeConnect) -> Path:
    """Return a backup, with secrets, of a running source and a stopped sink."""
    assert run("backup", "b", "--show-secrets").code == 0
    connect.requests.clear()
    return next(Path("b").iterdir())


def configs(connect: FakeConnect) -> dict[str, Any]:
    return {
        name: (each.config, each.state, each.offsets) for name, each in connect.connectors.items()
    }


def test_a_lost_cluster_comes_back(run: Run, connect: FakeConnect, saved: Path) -> None:
    """A connector that was lost is created STOPPED, gets its offsets, and then its state."""
    before = configs(connect)
    connect.connectors.clear()
    connect.loggers = {"root": "INFO", "org.example": "DEBUG"}
    outcome = run("restore", "b", "--yes", code=0)
    assert configs(connect) == before
    assert connect.loggers["org.example"] == "INFO"
    orders = [request for request in changes(connect) if "/broken/" not in request]
    assert orders == [
        "POST /connectors",
        "POST /connectors",
        "PATCH /connectors/orders/offsets",
        "PUT /connectors/orders/resume",
        *[request for request in orders if "/admin/" in request],
    ]
    assert "hunter2" not in outcome.out + outcome.err


def test_a_second_restore_changes_nothing(run: Run, connect: FakeConnect, saved: Path) -> None:
    """A restore sends no change for a connector that is as the backup holds it."""
    assert "nothing to restore" in run("restore", str(saved), "--yes", code=0).err
    assert changes(connect) == []


def test_a_changed_connector_is_stopped_first(run: Run, connect: FakeConnect, saved: Path) -> None:
    """A changed connector is stopped, gets configuration and offsets, and is resumed."""
    orders = connect.connectors["orders"]
    before = configs(connect)
    orders.config = {**orders.config, "team": "z"}
    orders.offsets = [entry(A, 99)]
    run("restore", "b", "orders", "--yes", code=0)
    assert configs(connect) == before
    assert changes(connect)[0] == "PUT /connectors/orders/stop"
    assert changes(connect)[1] == "PUT /connectors/orders/config"
    assert changes(connect)[-1] == "PUT /connectors/orders/resume"


def test_a_state_alone_needs_no_stop(run: Run, connect: FakeConnect, saved: Path) -> None:
    """If only the state differs, the connector is resumed without a stop."""
    connect.connectors["orders"].enter("PAUSED")
    assert run("restore", "b", "--yes").code == 0
    assert changes(connect) == ["PUT /connectors/orders/resume"]


def test_the_plan_is_shown_and_asked_for(run: Run, connect: FakeConnect, saved: Path) -> None:
    """A dry run prints the plan without secrets; without a terminal the command needs --yes."""
    orders = connect.connectors["orders"]
    orders.config = {**orders.config, "db.password": "other", "team": "z"}
    orders.offsets = [entry(A, 99)]
    shown = run("restore", "b", "--dry-run", "--exit-code", code=1)
    assert "would restore orders" in shown.out
    assert "team: z -> a" in shown.out
    assert "RUNNING -> STOPPED -> RUNNING" in shown.out
    assert "hunter2" not in shown.out
    assert run("restore", "b").code == 9
    assert changes(connect) == []


def test_connectors_that_were_not_saved_stay(run: Run, connect: FakeConnect, saved: Path) -> None:
    """A restore deletes no connector that it has not created."""
    connect.connectors["new"] = FakeConnector(config={"name": "new"})
    del connect.connectors["orders"]
    assert run("restore", "b", "--yes").code == 0
    assert set(connect.connectors) == {"new", "orders", "broken"}


def test_a_selection_restores_these_only(run: Run, connect: FakeConnect, saved: Path) -> None:
    """A selection is made among the saved connectors, and leaves the loggers as they are."""
    connect.connectors.clear()
    connect.loggers = {"root": "DEBUG"}
    assert run("restore", "b", "--type", "sink", "--yes").code == 0
    assert set(connect.connectors) == {"broken"}
    assert connect.loggers == {"root": "DEBUG"}
    unknown = run("restore", "b", "ordres", "--yes")
    assert (unknown.code, "did you mean" in unknown.err) == (3, True)


def test_a_restore_can_be_undone(run: Run, connect: FakeConnect, saved: Path) -> None:
    """The printed undo command restores changed connectors and deletes the created ones."""
    orders = connect.connectors["orders"]
    orders.config = {**orders.config, "team": "z"}
    orders.offsets = [entry(A, 99)]
    del connect.connectors["broken"]
    before = configs(connect)
    outcome = run("restore", "b", "--yes", code=0)
    undo = next(line for line in outcome.err.splitlines() if line.startswith("undo: pyconnect "))
    words = undo.removeprefix("undo: pyconnect ").split()
    assert run(*words, "orders", "--yes").code == 0
    assert "broken" in connect.connectors
    assert run(*words, "--yes").code == 0
    assert configs(connect) == before
    kept = Path(undo.split()[-1])
    assert "hunter2" not in "".join(file.read_text() for file in kept.rglob("*.json"))


def test_a_masked_secret_stays_the_connectors_own(run: Run, connect: FakeConnect) -> None:
    """A masked secret keeps its present value; a connector without one needs --set."""
    assert run("backup", "b").code == 0
    orders = connect.connectors["orders"]
    orders.config = {**orders.config, "team": "z"}
    assert run("restore", "b", "--yes").code == 0
    assert connect.connectors["orders"].config["db.password"] == "hunter2"
    connect.connectors.clear()
    assert "the mask of a secret" in run("restore", "b", "--yes", code=8).err
    assert set(connect.connectors) == {"broken"}
    reference = "${file:/run/db:password}"
    assert run("restore", "b", "orders", "--set", f"db.password={reference}", "--yes").code == 0
    assert connect.connectors["orders"].config["db.password"] == reference


@cases("damage", "offsets/orders.json", "connectors/broken.json", "loggers.json")
def test_a_corrupt_backup_is_refused_by_name(
    run: Run, connect: FakeConnect, saved: Path, damage: str
) -> None:
    """One changed byte in any file of a backup is exit 2 before the first change."""
    file = saved / damage
    file.write_text(file.read_text() + " ")
    connect.connectors.clear()
    assert f"{file}: is corrupt" in run("restore", "b", "--yes", code=2).err
    assert changes(connect) == []


def test_a_backup_of_another_form_is_refused(run: Run, saved: Path) -> None:
    """A backup with a missing file or of a newer format is refused."""
    (saved / "offsets" / "orders.json").unlink()
    outcome = run("restore", str(saved), "--yes")
    assert (outcome.code, "orders.json: is missing" in outcome.err) == (2, True)
    manifest = saved / "manifest.json"
    manifest.write_text(manifest.read_text().replace("backup/1", "backup/2"))
    assert "manifest.json: has format 2" in run("restore", str(saved), "--yes", code=2).err


def test_a_half_written_backup_is_refused_by_name(run: Run, saved: Path) -> None:
    """A backup without a manifest is refused by its name, and skipped in a directory."""
    assert run("backup", "b").code == 0
    newest = max(Path("b").iterdir())
    (newest / "manifest.json").unlink()
    outcome = run("restore", str(newest), "--yes")
    assert (outcome.code, "is half-written" in outcome.err) == (2, True)
    passed = run("restore", "b", "--yes", code=0)
    assert f"{newest} is half-written and is not used" in passed.err
    assert f"backup {saved}" in passed.err


@cases("text", "", "{", "[]", '{"format": "pyconnect-backup/1"}', "\x00")
def test_a_damaged_manifest_is_refused(run: Run, saved: Path, text: str) -> None:
    """A manifest with any damage is exit 2 and not an internal error."""
    (saved / "manifest.json").write_text(text)
    outcome = run("restore", str(saved), "--yes")
    assert (outcome.code, "manifest.json" in outcome.err) == (2, True)
    assert "internal error" not in outcome.err


def test_another_cluster_needs_force(run: Run, connect: FakeConnect, saved: Path) -> None:
    """A backup of another cluster needs --force, and the refusal names both clusters."""
    connect.connectors.clear()
    connect.cluster_id = "elsewhere"
    assert run("restore", "b", "--yes").code == 3
    refused = run("restore", str(saved), "--yes", code=9)
    assert "is a backup of k, this cluster is elsewhere" in refused.err
    assert run("restore", str(saved), "--yes", "--force").code == 0
    assert set(connect.connectors) == {"orders", "broken"}


def test_offsets_may_stay(run: Run, connect: FakeConnect, saved: Path) -> None:
    """With --no-offsets a restore sets configurations and states only."""
    connect.connectors["orders"].offsets = [entry(A, 99)]
    connect.connectors["orders"].config["team"] = "z"
    assert run("restore", "b", "--no-offsets", "--yes").code == 0
    assert connect.connectors["orders"].offsets == [entry(A, 99)]
    assert connect.connectors["orders"].config["team"] == "a"


def test_one_failure_does_not_stop_the_others(run: Run, connect: FakeConnect, saved: Path) -> None:
    """After a failure the same command restores the rest and does not set offsets a second time."""
    connect.connectors.clear()
    connect.failures["PATCH /connectors/orders/offsets"] = [(500, "no luck")]
    assert json.loads(run("restore", "b", "--yes", "--summary-json", code=8).out)["failed"] == 1
    assert connect.connectors["orders"].state == "STOPPED"
    assert connect.connectors["broken"].state == "STOPPED"
    connect.connectors["broken"].offsets = []
    assert "did not finish and goes on" in run("restore", "b", "--yes", code=0).err
    assert connect.connectors["orders"].state == "RUNNING"
    assert connect.connectors["broken"].offsets == []


class KillingConnect(FakeConnect):
    """A server that kills its client after the client's change number `kill_at`.

    A source that is resumed moves on from its offsets at once.
    """

    kill_at = 0
    count = 0
    set_back = False
    client: subprocess.Popen[bytes] | None = None

    def answer(
        self, method: str, target: str, body: Any, authorization: str | None = None
    ) -> tuple[int, Any]:
        name = target.split("/")[2] if target.count("/") > 1 else ""
        moved = name in self.connectors and self.connectors[name].offsets == [entry(A, 1_000)]
        self.set_back |= moved and method == "PATCH"
        found = super().answer(method, target, body, authorization)
        if method != "GET":
            if target.endswith("/resume") and self.kill_at:
                self.connectors[name].offsets = [entry(A, 1_000)]
            self.count += 1
            if self.count == self.kill_at and self.client:
                os.kill(self.client.pid, signal.SIGKILL)
                self.client.wait()
        return found


@pytest.fixture
def connect(request: pytest.FixtureRequest, connect: FakeConnect) -> FakeConnect:
    """Return the usual connectors on a server that may kill its client."""
    return KillingConnect(connectors=connect.connectors)


def test_a_restore_that_is_killed_is_finished_by_the_same_command(
    run: Run, connect: FakeConnect, url: str, environ: dict[str, str], saved: Path
) -> None:
    """The same command finishes a killed restore and sets no connector's offsets twice."""
    assert isinstance(connect, KillingConnect)
    expected = configs(connect)
    expected["orders"] = (*expected["orders"][:2], [entry(A, 1_000)])
    kills = 0
    while True:
        kills += 1
        connect.connectors.clear()
        connect.count, connect.kill_at = 0, kills
        line = ["restore", "b", "--yes", "--parallel", "2"]
        connect.client = subprocess.Popen(
            [sys.executable, "-m", "pyconnect_cli", *line],
            env={**environ, "PYCONNECT_URL": url, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        code = connect.client.wait(60)
        connect.client = None
        if code == 0:
            break
        assert code == -signal.SIGKILL
        run(*line, code=0)
        assert configs(connect) == expected
        assert not connect.set_back
    assert kills > 4
