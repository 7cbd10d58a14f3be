"""The committed offsets of a consumer group, read and changed by a client that is not a member.

Kafka: the part of Java's Admin client that `Worker` uses for the offsets of sink connectors.
librdkafka's Python client cannot delete single offsets (OffsetDelete), so that one request goes
through kafka-python, whose import would slow down each process that only reads. Threading: any
thread; each call blocks its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyconnect_agent.core.clients.configs import ClientConfig, kafka_python_config
from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.core.offsets.connector_offsets import CommittedOffset
from pyconnect_agent.kafka import clients, errors
from pyconnect_agent.kafka.errors import Deadline
from pyconnect_api import TopicPartition
from pyconnect_clients.brokers.failures import IN_USE, REQUEST_ERRORS, code_of
from pyconnect_clients.brokers.requests import AdminRequests, answer_of

_SUBSCRIBED_TO_TOPIC = 86
_SHOWN_MEMBERS = 5


class GroupInUseError(KafkaError):
    """The error of a group with members: only they may change its offsets.

    `members`: some of them by client id and host, empty if they are not known.
    """

    def __init__(self, message: str, members: str) -> None:
        super().__init__(message)
        self.members = members


def deletion_arguments(config: ClientConfig) -> dict[str, Any]:
    """Return the arguments for `delete`; WorkerConfigError if kafka-python cannot connect so."""
    client_id = config.java_config.get("client.id") or ""
    return clients.client_arguments(kafka_python_config(config.java_config, client_id=client_id))


class GroupOffsets:
    """One consumer group; all requests together end at `deadline`.

    Its client is closed with the last reference. A change raises GroupInUseError and KafkaError.
    """

    def __init__(self, config: ClientConfig, group: str, deadline: Deadline) -> None:
        self._config = config
        self._client = clients.create_admin(config.build().properties)
        self._requests = AdminRequests(self._client)
        self._group = group
        self._deadline = deadline

    def committed(self) -> tuple[CommittedOffset, ...]:
        """Return all committed offsets, sorted; none if the group does not exist.

        Raises KafkaError.
        """
        with errors.translated(f"Failed to list offsets of consumer group '{self._group}'"):
            found = self._requests.committed(self._group, self._timeout_s())
        return tuple(sorted(CommittedOffset(*at, offset) for at, offset in found.items()))

    def commit(self, positions: Mapping[TopicPartition, int]) -> None:
        """Commit offsets without being a member."""
        if not positions:
            return
        if negative := [found for found in positions if found.partition < 0]:
            raise KafkaError(f"There is no partition {negative[0]}")
        with self._translated(f"Failed to alter offsets of consumer group '{self._group}'"):
            self._requests.commit(self._group, positions, self._timeout_s())

    def delete(self, partitions: Sequence[TopicPartition]) -> None:
        """Delete single offsets; a missing offset is not an error."""
        if not partitions:
            return
        from kafka import TopicPartition as OffsetDeletePartition
        from kafka.errors import KafkaError as OffsetDeleteError

        from pyconnect_clients.brokers.protocol import admin_client

        timeout_ms = max(1, self._deadline.remaining_ms())
        arguments = deletion_arguments(self._config) | {"request_timeout_ms": timeout_ms}
        action = f"Failed to delete offsets of consumer group '{self._group}'"
        try:
            with admin_client(arguments, timeout_ms / 1000) as admin:
                answers = admin.delete_group_offsets(
                    self._group, [OffsetDeletePartition(*found) for found in partitions]
                )
        except (OffsetDeleteError, OSError, ValueError) as exc:
            raise KafkaError(f"{action}: {type(exc).__name__}: {exc}") from exc
        for found, error in answers.items():
            if error.errno == _SUBSCRIBED_TO_TOPIC:
                raise GroupInUseError(f"{action}: {error.__name__}", self._members())
            if error.errno:
                raise KafkaError(f"{action}: {found.topic}-{found.partition}: {error.__name__}")

    def delete_group(self) -> None:
        """Delete the group; a missing group is not an error."""
        with self._translated(f"Failed to delete consumer group '{self._group}'"):
            self._requests.delete_group(self._group, self._timeout_s())

    @contextmanager
    def _translated(self, action: str) -> Iterator[None]:
        try:
            yield
        except (*REQUEST_ERRORS, ValueError) as exc:
            error = errors.translate(exc, action)
            if code_of(exc) in IN_USE:
                error = GroupInUseError(error.message, self._members())
            raise error from exc

    def _members(self) -> str:
        timeout_s = self._timeout_s()
        try:
            futures = self._client.describe_consumer_groups(
                [self._group], request_timeout=timeout_s
            )
            members = answer_of(futures[self._group], timeout_s).members
        except (*REQUEST_ERRORS, ValueError):
            return ""
        shown = [f"{member.client_id} at {member.host}" for member in members[:_SHOWN_MEMBERS]]
        more = len(members) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more else "")

    def _timeout_s(self) -> float:
        return max(0.1, self._deadline.remaining_s())
