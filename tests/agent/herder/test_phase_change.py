"""A worker's own change of its phase: who may, what is written, restarts."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

from pyconnect_agent.core.errors import (
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InternalError,
)
from pyconnect_agent.herder.worker_admin import PhaseChange, PhaseSettings
from pyconnect_agent.process.config_file import PhaseFile
from tests.agent.herder.fake_restart import FakeRestart

TEXT = "# ours\ngroup.id=g\nexactly.once.source.support=disabled\n"


class Worker:
    """A worker that was started with the file as it is."""

    def __init__(self, file: Path, *, allowed: bool = True, phase: str | None = "disabled") -> None:
        self.file = file
        self.restart = FakeRestart()
        settings = PhaseSettings(allowed=allowed, phase=phase, sha256=self.sha256)
        self.change_of_phase = PhaseChange(settings, PhaseFile(path=file), self.restart)

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
    """One key, the same mode, a backup and the run beside it."""
    worker = Worker(file)
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
    assert worker.restart.begun == 1
    assert worker.last_run_id() == "r1"
    backup = file.with_name("worker.properties.before-r1")
    assert backup.read_text() == TEXT
    assert backup.stat().st_mode & 0o777 == 0o640
    assert Worker(file, phase="preparing").last_run_id() == "r1"


def test_a_phase_in_force_needs_no_restart(file: Path) -> None:
    """The file stays as it is; another run may come at once."""
    worker = Worker(file)
    assert worker.change("disabled")["restart"] == "not needed"
    assert worker.restart.begun == 0
    assert file.read_text() == TEXT
    assert worker.change("preparing", "r2")["restart"] == "self"


def test_a_repeated_request_is_answered_again(file: Path) -> None:
    """Its answer was lost: the digest it expects is that of the file before."""
    worker = Worker(file)
    before = worker.sha256
    first = worker.change("preparing", sha256=before)
    assert worker.change("preparing", sha256=before) == first
    assert worker.restart.begun == 2


def test_another_file_is_refused(file: Path) -> None:
    """Somebody has edited it; nothing is written."""
    worker = Worker(file)
    before = worker.sha256
    file.write_text(TEXT + "x=1\n")
    with pytest.raises(ConflictError, match="not the file that was expected"):
        worker.change("preparing", sha256=before)
    assert file.read_text() == TEXT + "x=1\n"


def test_another_run_waits_for_the_restart(file: Path) -> None:
    """A phase that is in the file but not in force belongs to the run that wrote it."""
    worker = Worker(file)
    worker.change("preparing")
    with pytest.raises(ConflictError, match="Run r1"):
        worker.change("disabled", "r2")
    assert Worker(file, phase="preparing").change("disabled", "r2")["restart"] == "self"


def test_forbidden_changes_and_wrong_phases_are_refused(file: Path) -> None:
    """403 names the key to set; 400 for what cannot be meant; 409 standalone."""
    with pytest.raises(ForbiddenError, match=r"agent\.allow\.phase\.change=true"):
        Worker(file, allowed=False).change("preparing")
    with pytest.raises(BadRequestError, match="is not a phase"):
        Worker(file).change("ready")
    with pytest.raises(BadRequestError, match="cannot be a run's id"):
        Worker(file).change("preparing", "../r")
    with pytest.raises(ConflictError, match="standalone"):
        Worker(file, phase=None).change("preparing")
    assert file.read_text() == TEXT


def test_an_unreadable_file_is_reported(file: Path) -> None:
    """With what to do."""
    worker = Worker(file)
    sha256 = worker.sha256
    file.unlink()
    with pytest.raises(InternalError, match="cannot be changed"):
        worker.change("preparing", sha256=sha256)


def test_a_damaged_record_names_no_run(file: Path) -> None:
    """The content of a damaged record does not matter."""
    file.with_name("worker.properties.last-upgrade").write_text("[]")
    assert Worker(file).last_run_id() is None
