"""Round-robin assignment of protocol version 0 (Kafka: EagerAssignor).

Every member gets its complete work. Connectors are dealt first; the tasks go on where the
connectors ended, so that a small cluster is even in both together.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle

from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.protocol.messages import Work


def assign_eagerly(members: Iterable[str], configured: Work) -> dict[str, Work]:
    """Complete work of each member id. `members` must not be empty."""
    ordered = sorted(members)
    connectors: dict[str, list[str]] = {member: [] for member in ordered}
    tasks: dict[str, list[ConnectorTaskId]] = {member: [] for member in ordered}
    turn = cycle(ordered)
    for connector in configured.connectors:
        connectors[next(turn)].append(connector)
    for task in configured.tasks:
        tasks[next(turn)].append(task)
    return {member: Work.of(connectors[member], tasks[member]) for member in ordered}
