"""The wheel as a user gets it: built, installed into a bare environment, run from anywhere."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.wire, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (found,) = directory.glob("*.whl")
    return found


def test_the_wheel_holds_all_packages_and_nothing_else(wheel: Path) -> None:
    """Four import packages with their type markers and the licence; no tests, no scripts."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    packages = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert packages == {"pyconnect_agent", "pyconnect_api", "pyconnect_cli", "pyconnect_reconcile"}
    assert {f"{package}/py.typed" for package in packages} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_both_commands_run_from_any_directory(wheel: Path, tmp_path: Path) -> None:
    """A bare virtual environment, the locked requirements, the wheel: nothing of the checkout."""
    home = tmp_path / "environment"
    venv.create(home, with_pip=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "-q"]
    requirements = ROOT / "requirements" / "runtime.txt"
    subprocess.run([*pip, "--require-hashes", "-r", str(requirements)], check=True)
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for command in (
        ["pyconnect", "--help"],
        ["pyconnect", "version"],
        ["pyconnect", "connectors", "--help"],
        ["pyconnect-agent", "--version"],
        ["pyconnect-agent", "--help"],
    ):
        done = subprocess.run(
            [str(home / "bin" / command[0]), *command[1:]],
            cwd=elsewhere,
            env={"HOME": str(elsewhere), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
