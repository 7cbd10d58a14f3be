"""Second looks: the cluster's state after a change that was sent and not answered."""

from __future__ import annotations

from pyconnect_cli.acting.batch import Seen
from pyconnect_cli.acting.wait import describe, has_state
from pyconnect_cli.errors import NotFound
from pyconnect_cli.rest.client import Config, ConnectClient
from pyconnect_cli.rest.model import TaskId


def state_shows(name: str, state: str, client: ConnectClient) -> Seen:
    """Return whether the connector has this state; its tasks may follow later."""
    try:
        status = client.connector_status(name)
    except NotFound:
        return Seen("it does not exist", done=False)
    reached = status.connector.state == state or has_state(status, state)
    return Seen(f"it is {describe(status)}", done=reached)


def restart_shows(name: str, client: ConnectClient) -> Seen:
    """Return the state only: a restart ends in the state in which it began."""
    try:
        return Seen(f"it is {describe(client.connector_status(name))}", done=False)
    except NotFound:
        return Seen("it has no status", done=False)


def task_shows(task: TaskId, client: ConnectClient) -> Seen:
    """Show a task's state; see `restart_shows`."""
    try:
        state = client.task_status(task.connector, task.task)
    except NotFound:
        return Seen("it has no status", done=False)
    return Seen(f"it is {state.state}", done=False)


def deletion_shows(name: str, client: ConnectClient) -> Seen:
    """Return whether a connector is gone."""
    gone = not client.exists(name)
    return Seen("it is gone" if gone else "it is still there", done=gone)


def config_shows(name: str, config: Config, client: ConnectClient, *, whole: bool = True) -> Seen:
    """Return whether a connector has this configuration or, without `whole`, these keys of it.

    A key with None has to be absent.
    """
    try:
        stored = client.connector_config(name)
    except NotFound:
        return Seen("it does not exist", done=False)
    wanted = {**config, "name": name}
    same = all(stored.get(key) == value for key, value in wanted.items())
    if same and not (whole and set(stored) - set(wanted)):
        return Seen("its configuration is the new one", done=True)
    return Seen("its configuration is not the new one", done=False)
