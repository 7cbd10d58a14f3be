"""Raw requests of Kafka's protocol through kafka-python, for requests that librdkafka lacks.

Requests are sent unchanged, never repeated. Errors are kafka-python's, OSError and ValueError.
"""

# ruff: noqa: SLF001 - the library has no public way to send a request as it is

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.protocol.metadata import CoordinatorType, MetadataRequest

AT_ONCE = 200


class KafkaProtocol:
    """A connected cluster; each request ends within `remaining_s()`.

    `errors` translates the errors of a request; its argument is the text for the attempt.
    """

    # The library has no types.
    def __init__(
        self,
        admin: Any,
        remaining_s: Callable[[], float],
        errors: Callable[[str], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self.admin = admin
        self.remaining_s = remaining_s
        self.errors = errors

    @property
    def broker_version(self) -> tuple[int, ...]:
        """The oldest release with the brokers' protocol versions."""
        return tuple(self.admin._manager.broker_version)

    def brokers(self) -> list[int]:
        return [broker.node_id for broker in self.admin._manager.cluster.brokers()]

    def coordinators(
        self, names: Sequence[str], kind: CoordinatorType = CoordinatorType.TRANSACTION
    ) -> dict[str, int]:
        """Return the coordinating broker of each transactional id, or of each group."""
        if not names:
            return {}
        with self.errors("find coordinators"):
            admin = self.admin
            found: dict[str, int] = admin._manager.run(
                admin._find_coordinator_ids, list(names), kind
            )
        return found

    def send(self, what: str, request: Any, node: int | None = None) -> Any:
        """Send to one broker, or to any; `what` begins the text of an error."""
        return self.send_all(what, [(request, node)])[0]

    def send_all(self, what: str, requests: Sequence[tuple[Any, int | None]]) -> list[Any]:
        """Send many requests, a few hundred at once; return the answers in the same order."""
        answers: list[Any] = []
        with self.errors(what):
            for start in range(0, len(requests), AT_ONCE):
                part = requests[start : start + AT_ONCE]
                answers += self.admin._manager.run(self._each, part)
        return answers

    async def _each(self, requests: Sequence[tuple[Any, int | None]]) -> list[Any]:
        timeout_ms = max(1, round(self.remaining_s() * 1000))
        manager = self.admin._manager
        sent = [
            manager.send(request, node_id=node, request_timeout_ms=timeout_ms)
            for request, node in requests
        ]
        return [await future for future in sent]


@contextmanager
def admin_client(arguments: Mapping[str, Any], contact_s: float) -> Iterator[Any]:
    """Yield a client that is connected within `contact_s`."""
    admin = KafkaAdminClient(
        **arguments,
        bootstrap_timeout_ms=max(1, round(contact_s * 1000)),
        # The library fails requests beyond this number, five by default.
        max_in_flight_requests_per_connection=AT_ONCE + 1,
    )
    try:
        yield admin
    finally:
        admin.close()


def metadata_request(names: Iterable[str] | None) -> MetadataRequest:
    """Return a request for the metadata of topics, or of all; it does not create topics."""
    topic = MetadataRequest.MetadataRequestTopic
    topics = None if names is None else [topic(name=name) for name in sorted(set(names))]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False, min_version=4)


def open_producers(admin: Any, partitions: Iterable[tuple[str, int]]) -> Iterator[tuple[Any, Any]]:
    """Yield partition and state of each producer with an open transaction (KIP-664)."""
    described = admin.describe_producers([TopicPartition(*each) for each in partitions])
    for partition, state in described.items():
        for producer in state.active_producers:
            if producer.current_transaction_start_offset >= 0:
                yield partition, producer
