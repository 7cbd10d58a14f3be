"""Transactional ids of source connectors (KIP-618). Layer: core."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

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


def leader_transactional_id(group_id: str) -> str:
    """Return the id under which Kafka's leader writes to the config topic."""
    return f"connect-cluster-{group_id}"


class SharedId(NamedTuple):
    """An id that two would use; `other` None: the leader."""

    transactional_id: str
    other: str | None


def shared_id(
    group_id: str,
    connector: str,
    tasks_max: int,
    others: Callable[[str], int | None],
    *,
    leader: str,
) -> SharedId | None:
    """Return an id of a new source connector that is in use already, or None.

    `others` returns how many tasks an existing connector may have, None for other names; `leader`
    is the id of the group's leader. Task ids end with their number, so two connectors only meet
    where one's id for altering offsets is the other's of a task.
    """
    alter = alter_transactional_id(group_id, connector)
    if leader == alter or leader in task_transactional_ids(group_id, connector, tasks_max):
        return SharedId(leader, None)
    for number in range(tasks_max):
        if others(other := f"{connector}-{number}") is not None:
            return SharedId(alter_transactional_id(group_id, other), other)
    owner, _, number_text = connector.rpartition("-")
    if any(str(number) == number_text for number in range(others(owner) or 0)):
        return SharedId(alter, owner)
    return None
