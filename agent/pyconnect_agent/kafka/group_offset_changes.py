"""Changes of consumer groups' committed offsets by a client that is not a member.

Layer: kafka. Kafka: the part of Java's Admin client that `Worker` uses to alter and reset the
offsets of sink connectors. librdkafka's Python client cannot delete single offsets (OffsetDelete),
so that one request goes through kafka-python. Threading: any thread; each call blocks its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import TopicPartition as ClientTopicPartition
from kafka import TopicPartition as OffsetDeletePartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError as OffsetDeleteError

from pyconnect_agent.core.clients.configs import ClientConfig
from pyconnect_agent.core.clients.kafka_python import kafka_python_config
from pyconnect_agent.core.errors import AgentError, KafkaError
from pyconnect_agent.kafka import clients, errors
from pyconnect_agent.kafka.deadline import Deadline
from pyconnect_agent.kafka.kafka_python_client import client_arguments
from pyconnect_api import TopicPartition

_IN_USE = frozenset({ClientError.UNKNOWN_MEMBER_ID, ClientError.NON_EMPTY_GROUP})
_SUBSCRIBED_TO_TOPIC = 86
_SHOWN_MEMBERS = 5


class GroupInUseError(KafkaError):
    """The group has members: only they may change its offsets.

    `members`: some of them by client id and host, empty when they are not known.
    """

    def __init__(self, message: str, members: str) -> None:
        super().__init__(message)
        self.members = members


def check_deletion(config: ClientConfig) -> None:
    """Raise WorkerConfigError unless `delete` can connect as this admin client does."""
    _deletion_arguments(config)


def _deletion_arguments(config: ClientConfig) -> dict[str, Any]:
    client_id = config.java_config.get("client.id") or ""
    return client_arguments(kafka_python_config(config.java_config, client_id=client_id))


class GroupOffsetChanges:
    """Changes to one consumer group; all of them together have until `deadline`."""

    def __init__(self, config: ClientConfig, group: str, deadline: Deadline) -> None:
        self._config = config
        self._client = clients.create_admin(config.build().properties)
        self._group = group
        self._deadline = deadline

    def commit(self, positions: Mapping[TopicPartition, int]) -> None:
        """Commit without a membership. Raises GroupInUseError, KafkaError if a commit fails."""
        if not positions:
            return
        if negative := [found for found in positions if found.partition < 0]:
            raise KafkaError(f"There is no partition {negative[0]}")
        partitions = [
            ClientTopicPartition(found.topic, found.partition, offset)
            for found, offset in positions.items()
        ]
        request = ConsumerGroupTopicPartitions(self._group, partitions)

        def alter() -> None:
            futures = self._client.alter_consumer_group_offsets(
                [request], request_timeout=self._timeout_s()
            )
            committed = futures[self._group].result(self._timeout_s() + 1)
            for partition in committed.topic_partitions or ():
                if partition.error is not None:
                    self._refuse(partition.error, self._altering())

        self._call(alter, self._altering())

    def delete(self, partitions: Sequence[TopicPartition]) -> None:
        """Delete single offsets; a missing offset is not an error. Errors as above."""
        if not partitions:
            return
        arguments = _deletion_arguments(self._config)
        timeout_ms = max(1, self._deadline.remaining_ms())
        arguments |= {"bootstrap_timeout_ms": timeout_ms, "request_timeout_ms": timeout_ms}
        action = f"Failed to delete offsets of consumer group '{self._group}'"
        try:
            admin: Any = KafkaAdminClient(**arguments)
            try:
                answers = admin.delete_group_offsets(
                    self._group, [OffsetDeletePartition(*found) for found in partitions]
                )
            finally:
                admin.close()
        except (OffsetDeleteError, OSError, ValueError) as exc:
            raise KafkaError(f"{action}: {type(exc).__name__}: {exc}") from exc
        for found, error in answers.items():
            if error.errno == _SUBSCRIBED_TO_TOPIC:
                raise GroupInUseError(f"{action}: {error.__name__}", self._members())
            if error.errno:
                raise KafkaError(f"{action}: {found.topic}-{found.partition}: {error.__name__}")

    def delete_group(self) -> None:
        """Delete the group; a missing group is not an error. Errors as above."""

        def delete() -> None:
            futures = self._client.delete_consumer_groups(
                [self._group], request_timeout=self._timeout_s()
            )
            futures[self._group].result(self._timeout_s() + 1)

        try:
            self._call(delete, f"Failed to delete consumer group '{self._group}'")
        except KafkaError as exc:
            if errors.code_of(exc.__cause__) != errors.GROUP_ID_NOT_FOUND:
                raise

    def _altering(self) -> str:
        return f"Failed to alter offsets of consumer group '{self._group}'"

    def _call(self, call: Callable[[], None], action: str) -> None:
        try:
            call()
        except AgentError:
            raise
        except (*errors.CLIENT_ERRORS, TimeoutError, ValueError) as exc:
            self._refuse(exc, action)

    def _refuse(self, failure: Any, action: str) -> None:
        """Raise our error for a client's error."""
        error = errors.translate(failure, action)
        cause = failure if isinstance(failure, BaseException) else None
        if errors.code_of(failure) in _IN_USE:
            raise GroupInUseError(error.message, self._members()) from cause
        raise error from cause

    def _members(self) -> str:
        try:
            futures = self._client.describe_consumer_groups(
                [self._group], request_timeout=self._timeout_s()
            )
            members = futures[self._group].result(self._timeout_s() + 1).members
        except (*errors.CLIENT_ERRORS, TimeoutError, ValueError):
            return ""
        shown = [f"{member.client_id} at {member.host}" for member in members[:_SHOWN_MEMBERS]]
        more = len(members) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more else "")

    def _timeout_s(self) -> float:
        return max(0.1, self._deadline.remaining_s())
