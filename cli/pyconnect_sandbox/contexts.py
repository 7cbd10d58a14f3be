"""Contexts that `pyconnect sandbox` makes: each is named after its sandbox."""

from __future__ import annotations

from pathlib import Path

from pyconnect_sandbox.state import SandboxDirectory

_PREFIX = "sandbox"
_DEFAULT = "default"


def context_name(sandbox: str) -> str:
    return _PREFIX if sandbox == _DEFAULT else f"{_PREFIX}-{sandbox}"


def start_hint(context: str, root: Path | None = None) -> str | None:
    """Return how to start the sandbox of a context; None for a context of another kind."""
    prefix, dash, rest = context.partition("-")
    if prefix != _PREFIX or bool(dash) != bool(rest):
        return None
    sandbox = rest or _DEFAULT
    state = SandboxDirectory(sandbox, root).load()
    if state is None and rest:
        return None
    ports = {} if state is None else state.ports
    worker = "--java-worker" if "java-worker" in ports and "agent" not in ports else "--agent"
    name = f" --name {rest}" if rest else ""
    return f"start the sandbox: pyconnect sandbox up{name} {worker} --use"
