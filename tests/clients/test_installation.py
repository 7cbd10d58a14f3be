"""The advised command adds an extra to this installation, whatever installed it."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pyconnect_clients import installation
from pyconnect_clients.installation import install_command, requirement
from tests.support.cases import cases


@cases(
    "direct_url, expected",
    (None, "'WHEEL_OR_CHECKOUT[avro]'"),
    ({"url": "file:///src/pyconnect", "dir_info": {"editable": True}}, "-e '/src/pyconnect[avro]'"),
    ({"url": "file:///src/my%20copy", "dir_info": {}}, "'/src/my copy[avro]'"),
    (
        {"url": "file:///dist/pyconnect_worker-1-py3-none-any.whl", "archive_info": {}},
        "'/dist/pyconnect_worker-1-py3-none-any.whl[avro]'",
    ),
    (
        {
            "url": "https://example.test/pyconnect.git",
            "vcs_info": {"vcs": "git", "commit_id": "abc", "requested_revision": "main"},
        },
        "'pyconnect-worker[avro] @ git+https://example.test/pyconnect.git@abc'",
    ),
    (
        {"url": "https://example.test/p.whl", "archive_info": {}},
        "'pyconnect-worker[avro] @ https://example.test/p.whl'",
    ),
    ids=["unknown", "editable", "directory", "wheel", "repository", "address"],
)
def test_the_requirement_repeats_where_this_installation_came_from(
    direct_url: dict[str, object] | None, expected: str
) -> None:
    """Without a recorded origin the user has to name the wheel or the checkout."""
    assert requirement("avro", direct_url and json.dumps(direct_url)) == expected


def test_the_command_of_this_installation_is_understood_by_its_installer(tmp_path: Path) -> None:
    """A dry run of the advised command finds the project, without a download."""
    command = shlex.split(install_command("reconcile"))
    if command[0] == "pip":
        command[:1] = [sys.executable, "-m", "pip"]
    command[4:4] = ["--dry-run", "--no-deps", "--no-index", "--no-build-isolation"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "pyconnect-worker" in done.stdout


def test_environments_off_the_path_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`pip` alone would install into another environment."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert install_command("avro").startswith(f"{sys.executable} -m pip install ")


def test_a_tree_without_metadata_has_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command names the tree's directory, because the project is on no index."""
    monkeypatch.setattr(installation, "DISTRIBUTION", "no-such-distribution")
    root = Path(__file__).parents[2]
    assert install_command("avro").endswith(f" install {shlex.quote(f'{root}[avro]')}")
