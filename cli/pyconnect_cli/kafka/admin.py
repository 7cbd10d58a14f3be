"""The offsets at which partitions begin and end, which only the brokers report.

confluent_kafka is imported when a command needs it, and by few modules (pyproject.toml lists them).
Client errors become the command line's errors here.
"""

# ruff: noqa: SLF001 - the names of librdkafka's own codes start with an underscore

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pyconnect_cli.errors import (
    Forbidden,
    NotAuthenticated,
    PyconnectError,
    ServerError,
    Unreachable,
    UsageError,
)
from pyconnect_cli.kafka.cluster import kafka_cluster
from pyconnect_cli.kafka.model import OffsetRange, TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    from pyconnect_cli.session import Session

CONTACT_S = 8.0


class AdminConnection:
    """An admin client that is made when it is first used; calls end within `remaining_s()`."""

    def __init__(self, settings: Mapping[str, str], remaining_s: Callable[[], float]) -> None:
        self._settings = settings
        self._remaining_s = remaining_s
        self._made: AdminClient | None = None

    def require_contact(self) -> None:
        """Raise Unreachable, with the addresses and the reason, unless a broker answers soon."""
        self._client()

    def _client(self) -> AdminClient:
        if self._made is None:
            self._made = contacted(self._settings, self._timeout_s())
        return self._made

    def _timeout_s(self) -> float:
        return max(self._remaining_s(), 0.1)


class KafkaAdmin(AdminConnection):
    """Topics of one cluster and their offsets."""

    def partitions(self, topics: Iterable[str]) -> set[TopicPartition]:
        """Return the partitions of those topics that exist."""
        from confluent_kafka import KafkaError, KafkaException, TopicCollection

        absent = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED}
        found: set[TopicPartition] = set()
        client = self._client()
        if not (wanted := sorted(set(topics))):
            return found
        try:
            futures = client.describe_topics(
                TopicCollection(wanted), request_timeout=self._timeout_s()
            )
            for name, future in futures.items():
                try:
                    described = future.result()
                except KafkaException as exc:
                    if exc.args[0].code() not in absent:
                        raise
                    continue
                found |= {TopicPartition(name, one.id) for one in described.partitions}
        except KafkaException as exc:
            raise translated(exc, "describe topics") from exc
        return found

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the end offsets of partitions; all of them must exist."""
        return self._offsets(list(partitions), _specifications().latest())

    def ranges(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        """Return the first and end offsets of partitions; all of them must exist."""
        chosen = list(partitions)
        specifications = _specifications()
        earliest = self._offsets(chosen, specifications.earliest())
        latest = self.ends(chosen)
        return {
            partition: OffsetRange(earliest=earliest[partition], latest=latest[partition])
            for partition in chosen
        }

    def offsets_at(
        self, partitions: Iterable[TopicPartition], timestamp_ms: int
    ) -> dict[TopicPartition, int | None]:
        """Return the first offset at or after a time; None if every record is older."""
        found = self._offsets(list(partitions), _specifications().for_timestamp(timestamp_ms))
        return {partition: None if at < 0 else at for partition, at in found.items()}

    def decided_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return each partition's last stable offset: transactions before it have ended."""
        return self._offsets(list(partitions), _specifications().latest(), committed=True)

    # The client publishes no types of specifications.
    def _offsets(
        self, partitions: list[TopicPartition], spec: Any, *, committed: bool = False
    ) -> dict[TopicPartition, int]:
        from confluent_kafka import IsolationLevel, KafkaException
        from confluent_kafka import TopicPartition as KafkaTopicPartition

        if not partitions:
            return {}
        request = {KafkaTopicPartition(p.topic, p.partition): spec for p in partitions}
        try:
            timeout_s = self._timeout_s()
            futures = self._client().list_offsets(
                request,
                request_timeout=timeout_s,
                isolation_level=(
                    IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
                ),
            )
            return {
                TopicPartition(partition.topic, partition.partition): future.result().offset
                for partition, future in futures.items()
            }
        except KafkaException as exc:
            raise translated(exc, "list offsets") from exc


def contacted(settings: Mapping[str, str], timeout_s: float) -> AdminClient:
    """Return a client that has reached a broker, within CONTACT_S.

    librdkafka repeats its attempts for the whole time of a call: a wrong address would look like
    a slow cluster.
    """
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient

    errors: list[KafkaError] = []
    try:
        # The client's types do not include callbacks.
        client = AdminClient({**settings, "log_level": "0", "error_cb": errors.append})  # type: ignore[dict-item]
    except KafkaException as exc:
        raise UsageError(f"Kafka client properties: {exc.args[0].str()}") from exc
    limit_s = min(CONTACT_S, timeout_s)
    try:
        client.describe_cluster(request_timeout=limit_s).result()
    except KafkaException as exc:
        client.poll(0)  # `error_cb` gets the reason; the call's own error does not have it
        reasons = [error for error in errors if error.code() != KafkaError._ALL_BROKERS_DOWN]
        cause = reasons[-1] if reasons else exc.args[0]
        what = f"no broker answers at {settings['bootstrap.servers']} within {limit_s:.2g}s"
        raise translated(KafkaException(cause), what) from exc
    return client


def kafka_admin(session: Session, purpose: str) -> KafkaAdmin:
    """Return the brokers of the settings in force; PreconditionFailed when there are none."""
    cluster = kafka_cluster(
        session, f"{purpose} needs Kafka itself: REST does not report where topics begin and end"
    )
    return KafkaAdmin(cluster.librdkafka(), session.budget.remaining_s)


def translated(error: KafkaException, what: str) -> PyconnectError:
    """Return a client's error as ours."""
    from confluent_kafka import KafkaError

    cause = error.args[0]
    text = f"Kafka: {what}: {cause.str()}"
    authentication = {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED}
    unreachable = {
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
    }
    match cause.code():
        case code if code in authentication:
            return NotAuthenticated(text, hint="see --kafka-properties")
        case code if code in unreachable:
            return Unreachable(text, hint="is --kafka-bootstrap right?")
        case KafkaError.TOPIC_AUTHORIZATION_FAILED | KafkaError.CLUSTER_AUTHORIZATION_FAILED:
            return Forbidden(text)
        case _:
            return ServerError(text)


def _specifications() -> Any:
    # Neither exported nor typed by the client, and documented there.
    from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

    return OffsetSpec
