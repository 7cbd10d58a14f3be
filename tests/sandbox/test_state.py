"""The stored state of a sandbox is read or refused; its context has the hint to start it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pyconnect_sandbox.errors import InvalidSandboxRequest, SandboxError
from pyconnect_sandbox.state import (
    SandboxDirectory,
    SandboxState,
    ServerRecord,
    context_name,
    sandbox_names,
    start_hint,
)
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
    """A record does not prove a live process; a file of another version is refused."""
    assert STATE.server("broker") is not None
    assert STATE.running("broker") is None
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "state.json").write_text(json.dumps({"version": 99}))
    with pytest.raises(SandboxError, match="format 99, not 1"):
        SandboxDirectory("mine", tmp_path).load()


@cases("text", "", "{", "[]", '{"version": 1}')
def test_a_damaged_state_is_named(tmp_path: Path, text: str) -> None:
    """The error names the damaged file."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "state.json").write_text(text)
    with pytest.raises(SandboxError, match=r"mine/state\.json is damaged"):
        SandboxDirectory("mine", tmp_path).load()


@cases("name", "", "..", "a/b", "../up", ".hidden", "x" * 65)
def test_a_name_that_is_not_a_plain_file_name_is_refused(tmp_path: Path, name: str) -> None:
    """A name cannot lead out of the directory of sandboxes."""
    with pytest.raises(InvalidSandboxRequest, match="is not a valid name of a sandbox"):
        SandboxDirectory(name, tmp_path)


@cases(
    "sandbox, ports, command",
    ("default", {"plaintext": 1, "agent": 2}, "up --agent --use"),
    ("default", {"plaintext": 1, "java-worker": 2}, "up --java-worker --use"),
    ("trial", {"plaintext": 1, "agent": 2}, "up --name trial --agent --use"),
)
def test_the_hint_starts_the_sandbox_of_the_context(
    tmp_path: Path, sandbox: str, ports: dict[str, int], command: str
) -> None:
    """The command has the worker that the sandbox had."""
    directory = SandboxDirectory(sandbox, tmp_path)
    with directory.locked():
        directory.save(replace(STATE, name=sandbox, ports=ports))
    hint = start_hint(context_name(sandbox), tmp_path)
    assert hint == f"start the sandbox: pyconnect sandbox {command}"


def test_a_removed_sandbox_can_be_started_again(tmp_path: Path) -> None:
    """A context may exist longer than its sandbox."""
    hint = start_hint("sandbox", tmp_path)
    assert hint == "start the sandbox: pyconnect sandbox up --agent --use"


@cases("context", "prod", "sandboxes", "sandbox-", "sandbox-of-others")
def test_a_context_of_another_kind_has_no_hint(tmp_path: Path, context: str) -> None:
    """A context's name must be that of the default sandbox or of a recorded one."""
    assert start_hint(context, tmp_path) is None
