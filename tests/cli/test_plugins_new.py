"""`plugins new`: a project that passes its tests, its lint and the plugin test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PYCONNECT = str(Path(sys.executable).with_name("pyconnect"))


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(cwd)}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=400, check=False
    )


@pytest.mark.wire
def test_a_new_project_passes_its_tests(tmp_path: Path) -> None:
    """A new project passes its tests, mypy in strict mode, and the self-check."""
    done = run(PYCONNECT, "plugins", "new", "order-events", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cd order-events && pip install -e . && pytest" in done.stdout
    project = tmp_path / "order-events"
    tests = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=project)
    assert tests.returncode == 0, tests.stdout + tests.stderr
    types = run(
        sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, ".", cwd=project
    )
    assert types.returncode == 0, types.stdout
    for connector in ("Source", "Sink"):
        name = f"order_events.OrderEvents{connector}Connector"
        check = run(
            *(PYCONNECT, "plugins", "test", name, "--plugin-path", str(tmp_path)), cwd=project
        )
        assert check.returncode == 0, check.stdout + check.stderr


@pytest.mark.wire
def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """An existing directory or a name that is not valid is refused."""
    (tmp_path / "mine").mkdir()
    refused = {
        "mine": "mine exists",
        "My_Plugin": "lower-case words",
        "json": "such as `json-connector`",
        "class": "Python has this name",
    }
    for name, reason in refused.items():
        done = run(PYCONNECT, "plugins", "new", name, cwd=tmp_path)
        assert done.returncode == 2
        assert reason in done.stderr
    assert [*(tmp_path / "mine").iterdir()] == []
