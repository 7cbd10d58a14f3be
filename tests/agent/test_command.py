"""Errors of `pyconnect-agent` about its files."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pyconnect_agent.__main__ import LIBRARIES, main
from tests.support.agents.worker_properties import PROPERTIES
from tests.support.cases import cases

ROOT = Path(__file__).resolve().parents[2]


def test_only_the_worker_file_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    """The command needs the worker file, while connector files are for a standalone worker."""
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "the following arguments are required: worker.properties\n" in said


def test_without_its_libraries_the_agent_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command exits with 3 before it reads the file."""
    monkeypatch.setattr("pyconnect_agent.__main__.LIBRARIES", ("h11", "no_such_library"))
    assert main(["worker.properties"]) == 3
    said = capsys.readouterr().err
    assert "not installed: no_such_library\n" in said
    assert "install the extra [agent]: " in said


def test_the_libraries_are_those_of_the_extra() -> None:
    """The agent's list of libraries is that of the extra, by import names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = {each.partition(">=")[0] for each in project["optional-dependencies"]["agent"]}
    # The command, not the agent, uses the library for downloads of jars.
    named.remove("pyconnect-worker[jars]")
    assert {library.replace("_", "-") for library in LIBRARIES} == named


@cases(
    "changes, reason",
    ({"group.id": ""}, "Invalid value  for configuration group.id"),
    (None, "there is no such file"),
    ids=["wrong value", "no file"],
)
def test_the_reason_names_the_properties_file_once(
    tmp_path: Path, changes: dict[str, str] | None, reason: str
) -> None:
    """The reason names the file once, for an error about the file and for one in its content."""
    file = tmp_path / "worker.properties"
    if changes is not None:
        entries = PROPERTIES | changes
        file.write_text("".join(f"{key}={value}\n" for key, value in entries.items()))
    ended = subprocess.run(
        [sys.executable, "-m", "pyconnect_agent", str(file)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert ended.returncode == 2
    assert f'reason="{file}: {reason}' in ended.stdout + ended.stderr
