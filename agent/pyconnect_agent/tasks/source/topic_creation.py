"""Topics that a source connector's records need, created as its rules say (KIP-158).

Layer: tasks. Kafka: TopicCreation and AbstractWorkerSourceTask.maybeCreateTopic. Runs on the task's
thread, before the first record to a topic; a task does not ask again for a topic that it has seen.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from pyconnect_agent.core.clients.configs import connector_admin
from pyconnect_agent.core.config.connector_config import SourceTaskSettings
from pyconnect_agent.core.config.topic_creation import TopicCreationGroup
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.kafka.admin import Admin, TopicCreated, TopicSpec
from pyconnect_agent.tasks.setup.client_settings import API_TIMEOUT_MS, built
from pyconnect_api import ConnectException, RetriableException

LOG = logging.getLogger(__name__)


class TopicCreation:
    """`known` are the topics that need no look any more; only `ensure` adds to it.

    `groups` are tried in order; the last is for every topic.
    """

    def __init__(
        self, groups: Sequence[TopicCreationGroup], admin: Admin, *, timeout_ms: int
    ) -> None:
        self.known: set[str] = set()
        self._groups = tuple(groups)
        self._admin = admin
        self._timeout_ms = timeout_ms

    def ensure(self, topic: str) -> None:
        """Create the topic unless it exists.

        Raises RetriableException when the brokers do not say in time whether it does,
        ConnectException when the topic does not exist and cannot be created.
        """
        LOG.info("first record for a topic: checking whether it exists", extra={"topic": topic})
        if self._exists(topic):
            LOG.info("topic exists", extra={"topic": topic})
        else:
            group = next(group for group in self._groups if group.matches(topic))
            spec = TopicSpec(
                name=topic,
                partitions=group.partitions,
                replication_factor=group.replication_factor,
                settings=group.other_configs,
            )
            try:
                created = self._admin.create_or_find_topic(spec, self._timeout_ms)
            except KafkaError as exc:
                # As in Kafka also when it timed out: only the describing is repeated.
                raise ConnectException(str(exc)) from exc
            fields = {"topic": spec.name, "creation_group": group.name}
            match created:
                case TopicCreated.NOW:
                    LOG.info("topic created", extra=fields)
                case TopicCreated.BEFORE:
                    LOG.info("topic was created by another client meanwhile", extra=fields)
                case TopicCreated.NOT:
                    raise ConnectException(
                        f"Task failed to create new topic {_describe(spec)}. Ensure that the task "
                        "is authorized to create topics or that the topic exists and restart the"
                        " task"
                    )
        self.known.add(topic)

    def _exists(self, topic: str) -> bool:
        try:
            return topic in self._admin.describe_topics([topic], self._timeout_ms)
        except KafkaError as exc:
            if exc.retriable:
                raise RetriableException(f"Timed out while describing topics '{topic}'") from exc
            raise ConnectException(str(exc)) from exc


def topic_creation_of(
    worker: WorkerConfig, connector_config: Mapping[str, str], task_id: ConnectorTaskId
) -> TopicCreation | None:
    """Return the rules of a source connector; None when the worker or the connector has it off.

    Raises ConfigException for wrong rules and for admin overrides that the worker forbids.
    """
    if not worker.topic_creation_enable:
        return None
    groups = SourceTaskSettings.parse(connector_config).topic_creation
    if not groups:
        return None
    config = built(connector_admin(worker, connector_config, f"connector-adminclient-{task_id}"))
    return TopicCreation(
        groups,
        Admin(config.properties),
        timeout_ms=config.default_api_timeout_ms or API_TIMEOUT_MS,
    )


def _describe(spec: TopicSpec) -> str:
    """Write a topic as Java's NewTopic does."""
    partitions, replicas = (
        "default" if number == -1 else number
        for number in (spec.partitions, spec.replication_factor)
    )
    settings = ", ".join(f"{name}={value}" for name, value in spec.settings.items())
    return (
        f"(name={spec.name}, numPartitions={partitions}, replicationFactor={replicas}, "
        f"replicasAssignments=null, configs={{{settings}}})"
    )
