"""Transactional ids of source connectors (KIP-618; spec exactly-once.md §4). Layer: core."""

from __future__ import annotations

from collections.abc import Iterable

from pyconnect_agent.core.ids import ConnectorTaskId


def task_transactional_id(group_id: str, task_id: ConnectorTaskId) -> str:
    """Return `<group>-<connector>-<task>`; nothing is escaped."""
    return f"{group_id}-{task_id.connector}-{task_id.task}"


def task_transactional_ids(group_id: str, connector: str, count: int) -> tuple[str, ...]:
    """Return the ids of the first `count` tasks of a connector."""
    numbers: Iterable[int] = range(count)
    return tuple(task_transactional_id(group_id, ConnectorTaskId(connector, n)) for n in numbers)


def alter_transactional_id(group_id: str, connector: str) -> str:
    """Return `<group>-<connector>`, under which the connector's offsets are changed."""
    return f"{group_id}-{connector}"
