"""Transactional ids that two source connectors would share (KIP-618). Layer: core."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pyconnect_clients.connect_names import alter_transactional_id, task_transactional_ids


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
