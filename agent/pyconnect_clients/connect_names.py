"""Names that Connect derives from its group and connectors, names of topics, and phases. Pure.

Transactional ids are those of KIP-618. An id joins names with `-` and escapes nothing, so two pairs
of names may give the same id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

LEADER_ID_KEY = "agent.leader.transactional.id"
"""A setting of pyconnect's agents: the leader's id in place of Kafka's, equal on all workers."""

SINK_GROUP_PREFIX = "connect-"
DEAD_LETTER_TOPIC = "errors.deadletterqueue.topic.name"
Properties = Mapping[str, str | None]


def leader_transactional_id(group_id: str, properties: Properties | None = None) -> str:
    """Return the id under which the leader writes to the config topic.

    Without a worker's properties the id is Kafka's.
    """
    return (properties or {}).get(LEADER_ID_KEY) or f"connect-cluster-{group_id}"


def task_transactional_id(group_id: str, connector: str, task: int) -> str:
    """Return the id of the producer of a source task."""
    return f"{group_id}-{connector}-{task}"


def task_transactional_ids(group_id: str, connector: str, count: int) -> tuple[str, ...]:
    """Return the ids of the first `count` tasks of a connector."""
    return tuple(task_transactional_id(group_id, connector, task) for task in range(count))


def alter_transactional_id(group_id: str, connector: str) -> str:
    """Return the id under which an agent changes the offsets of a connector (KIP-875)."""
    return f"{group_id}-{connector}"


def source_transactional_ids(group_id: str, connector: str, tasks: int) -> tuple[str, ...]:
    """Return all ids of a source connector: that of offset changes, then those of its tasks."""
    own = alter_transactional_id(group_id, connector)
    return (own, *task_transactional_ids(group_id, connector, tasks))


def tasks_max(config: Properties) -> int:
    """Return the greatest number of tasks of a connector; one for a text that is not a number."""
    text = (config.get("tasks.max") or "1").strip()
    return int(text) if text.isdecimal() else 1


def sink_group_id(connector: str, config: Properties, worker: Properties | None = None) -> str:
    """Return the consumer group of a sink connector with this config on a worker."""
    return (
        config.get("consumer.override.group.id")
        or (worker or {}).get("consumer.group.id")
        or f"{SINK_GROUP_PREFIX}{connector}"
    )


def collisions(leader_id: str, ids: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield a sentence for each id with several owners; `ids`: of each source connector."""
    owners: dict[str, list[str]] = {leader_id: ["the leader"]}
    for connector, own in ids.items():
        for transactional_id in own:
            owners.setdefault(transactional_id, []).append(connector)
    for transactional_id, names in owners.items():
        if len(names) > 1:
            yield f"the transactional id {transactional_id} belongs to {' and '.join(names)}"


CONNECTOR = "connector-"
TARGET_STATE = "target-state-"
TASK = "task-"
COMMIT = "commit-"
TASK_COUNT = "tasks-fencing-"
SESSION_KEY = "session-key"
RESTART = "restart-connector-"
LOGGER = "logger-cluster-"

STATUS_CONNECTOR = "status-connector-"
STATUS_TASK = "status-task-"
STATUS_TOPIC = "status-topic-"


def split_task(text: str) -> tuple[str, int] | None:
    """Split `<connector>-<task>` at the last `-`, because connectors' names may contain it.

    Return None without a name or a number.
    """
    connector, _, number = text.rpartition("-")
    return (connector, int(number)) if connector and number.isascii() and number.isdigit() else None


class Phase(StrEnum):
    """A value of `exactly.once.source.support`.

    `rank` gives the order of the phases, which comparison of the texts does not.
    """

    DISABLED = "disabled"
    PREPARING = "preparing"
    ENABLED = "enabled"

    @property
    def rank(self) -> int:
        """The position in the order of phases."""
        return list(Phase).index(self)

    @property
    def uses_transactional_leader(self) -> bool:
        """Whether the leader writes to the config topic through a transactional producer."""
        return self is not Phase.DISABLED

    @property
    def following(self) -> Phase:
        """The next phase; enabled has none and is its own."""
        return list(Phase)[min(self.rank + 1, Phase.ENABLED.rank)]
