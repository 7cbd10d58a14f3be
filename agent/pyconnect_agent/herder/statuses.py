"""Statuses and active topics as the herder's clients and effects need them.

Layer: herder. Reads do not block; the docstring of a method that blocks says so.
"""

from __future__ import annotations

from collections.abc import Callable

from pyconnect_agent.core.ids import Instance
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot, ConnectorConfig
from pyconnect_agent.core.protocol.messages import Work
from pyconnect_agent.core.reporting import ConnectorStateInfo
from pyconnect_agent.core.restart_plan import statuses_to_delete
from pyconnect_agent.stores.status import StatusStore

ConnectorType = Callable[[ConnectorConfig | None], str]


class StatusView:
    """Reads and cleans the status store."""

    def __init__(self, store: StatusStore, connector_type: ConnectorType) -> None:
        self._store = store
        self._connector_type = connector_type

    def state_info(self, connector: str, snapshot: ConfigSnapshot) -> ConnectorStateInfo | None:
        """Return the connector's and its tasks' statuses, None when it has none."""
        status = self._store.connector(connector)
        if status is None:
            return None
        return ConnectorStateInfo(
            name=connector,
            connector=status,
            tasks=tuple(sorted(self._store.tasks(connector).items())),
            type=self._connector_type(snapshot.connector_config(connector)),
        )

    def latest_generation(self) -> int:
        """Return the latest generation of any status: new statuses must not look older."""
        store = self._store
        generations = [0]
        for name in store.connectors():
            status = store.connector(name)
            if status is not None:
                generations.append(status.generation)
            generations.extend(task.generation for task in store.tasks(name).values())
        return max(generations)

    def clean(self, snapshot: ConfigSnapshot, revoked: Work) -> None:
        """Tombstone statuses of what is not configured; tasks before their connector.

        `revoked`: checked too, because its last statuses may not have been read yet.
        """
        connectors = self._store.connectors() | frozenset(revoked.connectors)
        tasks = {name: frozenset(self._store.tasks(name)) for name in connectors}
        for task_id in revoked.tasks:
            known = tasks.get(task_id.connector, frozenset())
            tasks[task_id.connector] = known | {task_id.task}
        gone_connectors, gone_tasks = statuses_to_delete(
            connectors=connectors,
            tasks=tasks,
            configured={name: len(snapshot.tasks(name)) for name in snapshot.connector_configs},
        )
        gone: list[Instance] = [*gone_tasks, *gone_connectors]
        for item in gone:
            self._store.delete(item)

    def forget_topics(self, connector: str) -> None:
        """Tombstone all active topics of a connector."""
        for topic in self._store.topics(connector):
            self._store.delete_topic(connector, topic)
