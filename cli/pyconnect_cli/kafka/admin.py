"""The offsets at which partitions begin and end, which only the brokers report.

Both clients of Kafka are imported when a command needs them (`pyconnect_clients.brokers`). Their
errors become the command line's errors here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
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
    from confluent_kafka.admin import AdminClient

    from pyconnect_cli.session import Session
    from pyconnect_clients.brokers.requests import AdminRequests

CONTACT_S = 8.0
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})


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

    def _requests(self) -> AdminRequests:
        from pyconnect_clients.brokers.requests import AdminRequests

        return AdminRequests(self._client())

    def _timeout_s(self) -> float:
        return max(self._remaining_s(), 0.1)


class KafkaAdmin(AdminConnection):
    """Topics of one cluster and their offsets."""

    def partitions(self, topics: Iterable[str]) -> set[TopicPartition]:
        """Return the partitions of those topics that exist."""
        from pyconnect_clients.brokers.failures import TOPIC_NOT_AUTHORIZED, UNKNOWN_TOPIC, code_of

        found: set[TopicPartition] = set()
        with translated_errors("describe topics"):
            for name, answer in self._requests().topics(sorted(set(topics)), self._timeout_s()):
                if not isinstance(answer, BaseException):
                    found |= {TopicPartition(name, one.id) for one in answer.partitions}
                elif code_of(answer) not in UNKNOWN_TOPIC | TOPIC_NOT_AUTHORIZED:
                    raise answer
        return found

    def names(self) -> list[str]:
        """Return the topics that this command may see, without those of Kafka itself."""
        with translated_errors("list topics"):
            found = self._client().list_topics(timeout=self._timeout_s()).topics
        return sorted(name for name in found if name not in INTERNAL_TOPICS)

    def cluster_id(self) -> str:
        """Return the id of the cluster, empty from a broker that has none."""
        with translated_errors("describe the cluster"):
            return self._requests().cluster_id(self._timeout_s()) or ""

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the end offsets of partitions; all of them must exist."""
        from pyconnect_clients.brokers.requests import LATEST

        return self._offsets(partitions, LATEST)

    def ranges(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        """Return the first and end offsets of partitions; all of them must exist."""
        from pyconnect_clients.brokers.requests import EARLIEST

        chosen = list(partitions)
        earliest = self._offsets(chosen, EARLIEST)
        latest = self.ends(chosen)
        return {
            partition: OffsetRange(earliest=earliest[partition], latest=latest[partition])
            for partition in chosen
        }

    def offsets_at(
        self, partitions: Iterable[TopicPartition], timestamp_ms: int
    ) -> dict[TopicPartition, int | None]:
        """Return the first offset at or after a time; None if every record is older."""
        from pyconnect_clients.brokers.requests import offset_at

        found = self._offsets(partitions, offset_at(timestamp_ms))
        return {partition: None if at < 0 else at for partition, at in found.items()}

    def decided_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return each partition's last stable offset: transactions before it have ended."""
        from pyconnect_clients.brokers.requests import LATEST

        return self._offsets(partitions, LATEST, committed=True)

    def _offsets(
        self, partitions: Iterable[TopicPartition], at: Any, *, committed: bool = False
    ) -> dict[TopicPartition, int]:
        if not (chosen := list(partitions)):
            return {}
        with translated_errors("list offsets"):
            found = self._requests().offsets(chosen, at, self._timeout_s(), committed=committed)
        return {TopicPartition(*partition): offset for partition, offset in found.items()}


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
        down = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 - librdkafka's own codes
        reasons = [error for error in errors if error.code() != down]
        what = f"no broker answers at {settings['bootstrap.servers']} within {limit_s:.2g}s"
        raise translated(reasons[-1] if reasons else exc, what) from exc
    return client


def kafka_admin(session: Session, purpose: str) -> KafkaAdmin:
    """Return the brokers of the settings in force; PreconditionFailed when there are none."""
    cluster = kafka_cluster(
        session, f"{purpose} needs Kafka itself: REST does not report where topics begin and end"
    )
    return KafkaAdmin(cluster.librdkafka(), session.budget.remaining_s)


@contextmanager
def translated_errors(what: str) -> Iterator[None]:
    """Raise an error of librdkafka as ours."""
    from pyconnect_clients.brokers.failures import REQUEST_ERRORS

    try:
        yield
    except REQUEST_ERRORS as exc:
        raise translated(exc, what) from exc


def translated(error: object, what: str) -> PyconnectError:
    """Return an error of either client library as ours; `what` starts its message."""
    from pyconnect_clients.brokers.failures import FailureKind, failure_of

    failure = failure_of(error)
    text = f"Kafka: {what}: {failure.text}"
    match failure.kind:
        case FailureKind.DENIED:
            return Forbidden(text, hint="show the grant that is missing: pyconnect acls explain")
        case FailureKind.NOT_AUTHENTICATED:
            return NotAuthenticated(text, hint="see --kafka-properties")
        case FailureKind.UNREACHABLE:
            return Unreachable(text, hint="are --kafka-bootstrap and the credentials right?")
        case FailureKind.COORDINATOR_MOVES:
            hint = "its coordinator is starting or moving: run the command again"
            return Unreachable(text, hint=hint)
        case FailureKind.RETRIABLE:
            return Unreachable(text, hint="the answer is temporary: run the command again")
        case _:
            return ServerError(text)
