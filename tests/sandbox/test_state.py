"""The stored state of a sandbox is read back as it was written, or refused."""

import json
from pathlib import Path

import pytest

from pyconnect_sandbox.errors import InvalidSandboxRequest, SandboxError
from pyconnect_sandbox.state import SandboxDirectory, SandboxState, ServerRecord, sandbox_names
from tests.support.cases import cases

STATE = SandboxState(
    name="mine",
    data_directory="/data",
    libs="/libs",
    acl=True,
    sasl_users=("alice", "bob"),
    ports={"plaintext": 29092},
    servers=(
        ServerRecord(
            kind="broker",
            pid=2**22 + 1,
            start_mark="earlier",
            addresses={"plaintext": "127.0.0.1:29092"},
            log="/data/broker.log",
            output="/data/broker.out",
        ),
    ),
)


def test_a_state_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    """Writing and reading give an equal state, and its name is listed."""
    directory = SandboxDirectory("mine", tmp_path)
    assert directory.load() is None
    with directory.locked():
        directory.save(STATE)
    assert directory.load() == STATE
    assert sandbox_names(tmp_path) == ("mine",)


def test_states_are_not_guessed(tmp_path: Path) -> None:
    """A record proves no process; another version's file is refused."""
    assert STATE.server("broker") is not None
    assert STATE.running("broker") is None
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "state.json").write_text(json.dumps({"version": 99}))
    with pytest.raises(SandboxError, match="format 99, not 1"):
        SandboxDirectory("mine", tmp_path).load()


@cases("text", "", "{", "[]", '{"version": 1}')
def test_a_damaged_state_is_named(tmp_path: Path, text: str) -> None:
    """The error says which file is damaged."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "state.json").write_text(text)
    with pytest.raises(SandboxError, match=r"mine/state\.json is damaged"):
        SandboxDirectory("mine", tmp_path).load()


@cases("name", "", "..", "a/b", "../up", ".hidden", "x" * 65)
def test_a_name_that_is_not_a_plain_file_name_is_refused(tmp_path: Path, name: str) -> None:
    """No name leads out of the directory of sandboxes."""
    with pytest.raises(InvalidSandboxRequest, match="is not a valid name of a sandbox"):
        SandboxDirectory(name, tmp_path)
