"""`pyconnect plugins test`: the self-check's answer as a command's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.wire

# `run` of conftest.py: arguments to (exit code, stdout, stderr)
Run = Any


def config_file(directory: Path, **config: str) -> str:
    path = directory / "config.json"
    path.write_text(json.dumps({"name": "check", **config}))
    return str(path)


def test_a_plugin_that_works_exits_with_zero(run: Run, tmp_path: Path) -> None:
    """No worker is asked; every step is listed."""
    file = config_file(
        tmp_path, **{"connector.class": "FileStreamSink", "file": str(tmp_path / "out")}
    )
    code, out, _ = run("plugins", "test", "FileStreamSink", "-f", file, address=None)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[:3]] == ["STEP", "find", "load"]


def test_a_failed_step_exits_with_one_and_says_so(run: Run, tmp_path: Path) -> None:
    """The answer is negative: exit code 1; JSON holds the steps all the same."""
    file = config_file(tmp_path, **{"connector.class": "Datagen", "topic": "t"})
    code, out, err = run("plugins", "test", "Datagen", "-f", file, "-o", "json", address=None)
    assert code == 1
    steps = json.loads(out)
    assert steps[-1]["step"] == "validate"
    assert steps[-1]["result"] == "failed"
    assert "exactly one of" in err


def test_a_plugin_that_hangs_is_given_up(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait has an end: exit code 124."""
    import subprocess

    def hang(*_: object, **options: Any) -> None:
        raise subprocess.TimeoutExpired("self-check", options["timeout"])

    monkeypatch.setattr(subprocess, "run", hang)
    code, _, err = run("plugins", "test", "FileStreamSink", address=None)
    assert code == 124
    assert "did not finish within 80 s" in err
