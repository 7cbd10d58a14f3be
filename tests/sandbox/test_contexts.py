"""Contexts of sandboxes: their names, and the hint when a sandbox does not run."""

from pathlib import Path

from pyconnect_sandbox.state import SandboxDirectory, SandboxState, context_name, start_hint
from tests.support.cases import cases


def record(name: str, ports: dict[str, int], root: Path) -> None:
    directory = SandboxDirectory(name, root)
    with directory.locked():
        directory.save(
            SandboxState(
                name=name,
                data_directory="",
                libs="",
                acl=False,
                sasl_users=(),
                ports=ports,
                servers=(),
            )
        )


@cases(
    "sandbox, ports, command",
    ("default", {"plaintext": 1, "agent": 2}, "up --agent --use"),
    ("default", {"plaintext": 1, "java-worker": 2}, "up --java-worker --use"),
    ("trial", {"plaintext": 1, "agent": 2}, "up --name trial --agent --use"),
)
def test_the_hint_starts_the_sandbox_of_the_context(
    tmp_path: Path, sandbox: str, ports: dict[str, int], command: str
) -> None:
    """With the worker that it had."""
    record(sandbox, ports, tmp_path)
    hint = start_hint(context_name(sandbox), tmp_path)
    assert hint == f"start the sandbox: pyconnect sandbox {command}"


def test_a_removed_sandbox_can_be_started_again(tmp_path: Path) -> None:
    """The context may have outlived it."""
    hint = start_hint("sandbox", tmp_path)
    assert hint == "start the sandbox: pyconnect sandbox up --agent --use"


@cases("context", "prod", "sandboxes", "sandbox-", "sandbox-of-others")
def test_a_context_of_another_kind_has_no_hint(tmp_path: Path, context: str) -> None:
    """Only a recorded sandbox counts beside the default one."""
    assert start_hint(context, tmp_path) is None
