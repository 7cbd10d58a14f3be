"""The admin interface's view of the herder and the children."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyconnect_agent.children.ports import ChildDetails
from pyconnect_agent.core.errors import (
    AgentError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InternalError,
    NotAssignedError,
    NotFoundError,
)
from pyconnect_agent.core.herder.state import (
    ConnectorWork,
    HerderSettings,
    HerderState,
    MembershipPhase,
)
from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.internal_topics import config_records
from pyconnect_agent.core.internal_topics.configlog import ConfigLog
from pyconnect_agent.core.reporting import Status
from pyconnect_agent.process.config_file import read_properties_file
from pyconnect_agent.process.worker_process import Restart
from pyconnect_agent.worker.acls import WorkerAcls
from pyconnect_agent.worker.admin import AgentAdmin, PhaseChange, worker_state
from pyconnect_clients.acls.needs import ConnectorFacts
from tests.support.agents.worker_properties import distributed
from tests.support.cases import cases

HERE = ConnectorTaskId("c", 0)
OTHER = ConnectorTaskId("c", 1)
WORKER_ID = "here:8083"


def snapshot_of_two_tasks() -> ConfigLog:
    log = ConfigLog()
    records = [
        config_records.connector_config("c", {"name": "c"}),
        config_records.task_config(HERE, {}),
        config_records.task_config(OTHER, {}),
        config_records.tasks_commit("c", 2),
    ]
    for offset, record in enumerate(records):
        log.apply(offset, record.key, record.value)
    return log


class Herder:
    """A stand-in for `herder.service.HerderService`."""

    def __init__(self) -> None:
        self.state = HerderState(
            settings=HerderSettings(worker_id=WORKER_ID, connector_type=lambda _: "source"),
            snapshot=snapshot_of_two_tasks().snapshot(),
            phase=MembershipPhase.RESOLVED,
        )
        self.statuses: dict[int, Status] = {}
        self.drains: list[bool] = []

    def task_status(self, connector: str, task: int) -> Status | None:
        return self.statuses.get(task) if connector == "c" else None

    def active_topics(self, connector: str) -> tuple[str, ...]:
        return (f"{connector}-topic",)

    def request_drain(self, *, undrain: bool) -> None:
        self.drains.append(undrain)


class Acls(WorkerAcls):
    """Checks of rights that return their questions."""

    def report(self, phase: str | None, connectors: Sequence[ConnectorFacts]) -> dict[str, Any]:
        if phase == "never":
            raise ValueError(phase)
        return {"phase": phase, "connectors": list(connectors)}


class Children:
    """A stand-in for `children.children.ChildProcesses`."""

    def __init__(self) -> None:
        self.here = {HERE}
        self.kills: list[tuple[ConnectorTaskId, bool, str]] = []

    @property
    def tasks(self) -> Children:
        return self

    def running(self) -> frozenset[ConnectorTaskId]:
        return frozenset(self.here)

    async def child_details(self) -> tuple[ChildDetails, ...]:
        child = ChildDetails(connector="c", task=0, pid=1, state=State.RUNNING, since_ms=5)
        return (replace(child, transaction_began_ms=400),)

    def kill_task(self, task_id: ConnectorTaskId, *, force: bool, reason: str) -> None:
        self.kills.append((task_id, force, reason))

    async def task_stacks(self, task_id: ConnectorTaskId) -> str:
        raise AgentError(f"no stacks of {task_id}")


class World:
    def __init__(self, file: Path) -> None:
        self.herder, self.children = Herder(), Children()
        config = distributed()
        self.admin, self.standalone_admin = (
            AgentAdmin(
                config,
                read_properties_file(file),
                "https://here:8083/",
                self.herder,  # type: ignore[arg-type]
                self.children,  # type: ignore[arg-type]
                acls=acls,
                plugin_problems=(),
                stop_and_run_again=lambda: None,
                now_ms=lambda: 90_000,
            )
            for acls in (Acls(config), None)
        )

    def status(self, task: int, state: State, worker_id: str) -> None:
        self.herder.statuses[task] = Status(state=state, worker_id=worker_id, generation=1)


@pytest.fixture
def world(tmp_path: Path) -> World:
    file = tmp_path / "worker.properties"
    file.write_bytes(b"as read")
    return World(file)


def test_a_task_here_is_killed_with_a_reason_for_its_trace(world: World) -> None:
    """The trace gets the way of the kill and that the task is not restarted."""
    world.admin.kill(HERE, force=True)
    ((task_id, force, reason),) = world.children.kills
    assert (task_id, force) == (HERE, True)
    assert "killed through the admin interface (at once)" in reason


def test_kills_are_for_tasks_of_this_worker(world: World) -> None:
    """An unknown task is not found, and for another worker's task the URL is returned."""
    for task_id in (ConnectorTaskId("none", 0), ConnectorTaskId("c", 2)):
        with pytest.raises(NotFoundError):
            world.admin.kill(task_id, force=False)
    world.status(1, State.RUNNING, "there:8083")
    with pytest.raises(NotAssignedError) as failure:
        world.admin.kill(OTHER, force=False)
    assert failure.value.target_url == "https://there:8083/"


@cases(
    "state, worker_id",
    (None, ""),
    (State.FAILED, WORKER_ID),
    (State.RUNNING, WORKER_ID),
    (State.FAILED, "there:8083"),
    (State.UNASSIGNED, "there:8083"),
)
def test_no_process_is_a_conflict(world: World, state: State | None, worker_id: str) -> None:
    """A task without a process can neither be killed nor forwarded, in any state."""
    if state is not None:
        world.status(1, state, worker_id)
    with pytest.raises(ConflictError, match="has no process"):
        world.admin.kill(OTHER, force=False)
    assert world.children.kills == []


def test_unavailable_stacks_are_reported_with_the_reason(world: World) -> None:
    """A process without stacks gives an InternalError with the reason."""
    with pytest.raises(InternalError, match="no stacks of c-0"):
        asyncio.run(world.admin.stacks(HERE))


def test_own_failed_tasks_have_no_process(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only failed tasks of this worker are listed, without a pid; a transaction has its age."""
    monkeypatch.setattr("time.time", lambda: 1.0)
    world.herder.state = replace(
        world.herder.state, work={"c": ConnectorWork(tasks_assigned=frozenset({0, 1}))}
    )
    world.status(1, State.FAILED, "there:8083")
    assert len(asyncio.run(world.admin.children())) == 1
    world.status(1, State.FAILED, WORKER_ID)
    running, failed = asyncio.run(world.admin.children())
    assert (running["task"], running["open_transaction_age_ms"]) == (0, 600)
    assert (failed["task"], failed["state"], failed["pid"]) == (1, "FAILED", None)


def test_a_changed_configuration_file_is_noticed(world: World, tmp_path: Path) -> None:
    """A changed file is reported, and a missing one has no digest."""
    assert asyncio.run(world.admin.about())["config_outdated"] is False
    file = tmp_path / "worker.properties"
    file.write_bytes(b"changed")
    assert asyncio.run(world.admin.about())["config_outdated"] is True
    file.unlink()
    assert asyncio.run(world.admin.about())["config_sha256"] is None


@pytest.mark.parametrize("phase", MembershipPhase)
@cases("drain_wanted", False, True)
def test_every_phase_has_a_word(phase: MembershipPhase, *, drain_wanted: bool) -> None:
    """A requested drain is shown at once, except during start and stop."""
    settings = HerderSettings(worker_id=WORKER_ID, connector_type=lambda _: "source")
    word = worker_state(HerderState(settings=settings, phase=phase, drain_wanted=drain_wanted))
    fixed = {
        MembershipPhase.STARTING: "starting",
        MembershipPhase.STOPPED: "stopping",
        MembershipPhase.DRAINING: "draining",
        MembershipPhase.LEAVING: "draining",
        MembershipPhase.DRAINED: "drained",
    }
    member = "active" if phase is MembershipPhase.RESOLVED else "rebalancing"
    assert word == fixed.get(phase, "draining" if drain_wanted else member)


def test_the_check_of_grants_gets_phase_and_facts(world: World) -> None:
    """The check gets each connector's type, tasks and topics; a wrong phase is an error."""
    document = asyncio.run(world.admin.acls("enabled"))
    assert document["phase"] == "enabled"
    (facts,) = [one for one in document["connectors"] if one.name == "c"]
    assert (facts.type, facts.tasks, facts.topics) == ("source", 2, ("c-topic",))
    with pytest.raises(BadRequestError, match="must be disabled, preparing or enabled"):
        asyncio.run(world.admin.acls("never"))
    with pytest.raises(BadRequestError, match="standalone"):
        asyncio.run(world.standalone_admin.acls(None))


TEXT = "# ours\ngroup.id=g\nexactly.once.source.support=disabled\n"


class StartedWorker:
    """A worker that was started with the present content of the file."""

    def __init__(self, file: Path, *, allowed: bool = True, phase: str | None = "disabled") -> None:
        self.file = file
        self.restarts = 0
        restart = Restart(command=(), stop_and_run_again=self.stop_and_run_again)
        self.change_of_phase = PhaseChange(
            read_properties_file(file), restart, allowed=allowed, phase=phase
        )

    def stop_and_run_again(self) -> None:
        self.restarts += 1

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.file.read_bytes()).hexdigest()

    def change(self, phase: str, run_id: str = "r1", sha256: str | None = None) -> dict[str, Any]:
        answer = asyncio.run(self.change_of_phase.change(phase, run_id, sha256 or self.sha256))
        self.change_of_phase.restart()
        return answer

    def last_run_id(self) -> str | None:
        return asyncio.run(self.change_of_phase.last_run_id())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "worker.properties"
    path.write_text(TEXT)
    path.chmod(0o640)
    return path


def test_the_file_is_rewritten_and_the_worker_restarts(file: Path) -> None:
    """One key is changed, with the file's mode; a backup and the run are in the same directory."""
    worker = StartedWorker(file)
    assert worker.last_run_id() is None
    answer = worker.change("preparing")
    assert file.read_text() == TEXT.replace("disabled", "preparing")
    assert file.stat().st_mode & 0o777 == 0o640
    assert answer == {
        "phase": "preparing",
        "run_id": "r1",
        "config_sha256": worker.sha256,
        "restart": "self",
    }
    assert worker.restarts == 1
    assert worker.last_run_id() == "r1"
    backup = file.with_name("worker.properties.before-r1")
    assert backup.read_text() == TEXT
    assert backup.stat().st_mode & 0o777 == 0o640
    assert StartedWorker(file, phase="preparing").last_run_id() == "r1"


def test_a_phase_in_force_needs_no_restart(file: Path) -> None:
    """Without a change the file stays, and another run may follow at once."""
    worker = StartedWorker(file)
    assert worker.change("disabled")["restart"] == "not needed"
    assert worker.restarts == 0
    assert file.read_text() == TEXT
    assert worker.change("preparing", "r2")["restart"] == "self"


def test_a_repeated_request_is_answered_again(file: Path) -> None:
    """A request whose answer was lost has the old digest and gets the same answer."""
    worker = StartedWorker(file)
    before = worker.sha256
    first = worker.change("preparing", sha256=before)
    assert worker.change("preparing", sha256=before) == first
    assert worker.restarts == 2


def test_another_file_is_refused(file: Path) -> None:
    """A file that was edited meanwhile is not changed."""
    worker = StartedWorker(file)
    before = worker.sha256
    file.write_text(TEXT + "x=1\n")
    with pytest.raises(ConflictError, match="not the file that was expected"):
        worker.change("preparing", sha256=before)
    assert file.read_text() == TEXT + "x=1\n"


def test_another_run_waits_for_the_restart(file: Path) -> None:
    """Until a run's phase is in force, other runs are refused."""
    worker = StartedWorker(file)
    worker.change("preparing")
    with pytest.raises(ConflictError, match="Run r1"):
        worker.change("disabled", "r2")
    assert StartedWorker(file, phase="preparing").change("disabled", "r2")["restart"] == "self"


def test_forbidden_changes_and_wrong_phases_are_refused(file: Path) -> None:
    """The error names the key that allows changes, or the fault."""
    with pytest.raises(ForbiddenError, match=r"agent\.allow\.phase\.change=true"):
        StartedWorker(file, allowed=False).change("preparing")
    with pytest.raises(BadRequestError, match="is not a phase"):
        StartedWorker(file).change("ready")
    with pytest.raises(BadRequestError, match="cannot be a run's id"):
        StartedWorker(file).change("preparing", "../r")
    with pytest.raises(ConflictError, match="standalone"):
        StartedWorker(file, phase=None).change("preparing")
    assert file.read_text() == TEXT


def test_an_unreadable_file_is_reported(file: Path) -> None:
    """A file that cannot be read gives an InternalError."""
    worker = StartedWorker(file)
    sha256 = worker.sha256
    file.unlink()
    with pytest.raises(InternalError, match="cannot be changed"):
        worker.change("preparing", sha256=sha256)


def test_a_damaged_record_names_no_run(file: Path) -> None:
    """With a damaged record, no last run is known."""
    file.with_name("worker.properties.last-upgrade").write_text("[]")
    assert StartedWorker(file).last_run_id() is None
