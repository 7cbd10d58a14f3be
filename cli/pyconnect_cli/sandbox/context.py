"""A sandbox as a context of the user: written by `up --use` and `demo`, removed with its data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyconnect_cli.settings.contexts import ConfigChange, Setting, update_user_file
from pyconnect_sandbox.contexts import context_name

if TYPE_CHECKING:
    from pyconnect_cli.session import Session
    from pyconnect_sandbox.lifecycle import SandboxStatus


def use(session: Session, sandbox: SandboxStatus) -> None:
    """Make a sandbox the current context."""
    name = define(session, sandbox, current=True)
    session.output.message(f"current context: {name}")


def define(session: Session, sandbox: SandboxStatus, *, current: bool = False) -> str:
    """Write a sandbox's context and return its name. Its agent's group is not its Java worker's."""
    rest = {server.kind: server.addresses.get("rest", "") for server in sandbox.servers}
    name = context_name(sandbox.name)
    settings: dict[str, Setting] = {
        "url": (rest.get("agent") or rest["java-worker"],),
        "kafka_bootstrap": str(sandbox.bootstrap_servers),
    }
    change = ConfigChange(contexts={name: settings}, current=name if current else None)
    update_user_file(session.settings.files.user_path, change)
    return name


def forget(session: Session, sandboxes: Iterable[str]) -> None:
    """Remove the contexts of removed sandboxes from the user's file."""
    files = session.settings.files
    users = {name for file in files.files if file.path == files.user_path for name in file.contexts}
    gone = tuple(name for name in map(context_name, sandboxes) if name in users)
    if gone:
        update_user_file(files.user_path, ConfigChange(remove=gone))
        session.output.message(f"context removed: {', '.join(gone)}")
