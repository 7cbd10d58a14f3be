"""Admin requests through librdkafka: topics, offsets of partitions and of consumer groups.

Partitions are pairs of topic and number. Each call waits for its answer, and raises
`failures.REQUEST_ERRORS`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
    TopicCollection,
    TopicPartition,
)

# The library's __init__ has no __all__.
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from pyconnect_clients.brokers.failures import GROUP_ID_NOT_FOUND, REQUEST_ERRORS, code_of

EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # the client's
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # likewise

Partition = TypeVar("Partition", bound=tuple[str, int])
Wait = Callable[[Future[Any], float], Any]


def answer_of(future: Future[Any], timeout_s: float) -> Any:
    """Return a future's result; raise the client's exception, or TimeoutError if it hangs.

    The client applies the timeout itself and has a better text; this one is for a hanging client.
    """
    try:
        return future.result(timeout_s + 1)
    except FutureTimeoutError as exc:
        raise TimeoutError("timed out") from exc


class AdminRequests:
    """The admin requests of one client; `wait` waits for answers."""

    def __init__(self, client: AdminClient, wait: Wait = answer_of) -> None:
        self._client = client
        self._wait = wait

    def cluster_id(self, timeout_s: float) -> str | None:
        """Return the cluster's id, None if the broker has none."""
        described = self._wait(self._client.describe_cluster(request_timeout=timeout_s), timeout_s)
        found: str | None = described.cluster_id
        return found

    def topics(self, names: Iterable[str], timeout_s: float) -> Iterator[tuple[str, Any]]:
        """Yield each topic with its description, or with the exception of its description."""
        if not (wanted := list(names)):
            return
        futures = self._client.describe_topics(TopicCollection(wanted), request_timeout=timeout_s)
        for name, future in futures.items():
            try:
                yield name, self._wait(future, timeout_s)
            except REQUEST_ERRORS as exc:
                yield name, exc

    def offsets(
        self,
        partitions: Iterable[tuple[str, int]],
        at: OffsetSpec,
        timeout_s: float,
        *,
        committed: bool = False,
    ) -> dict[tuple[str, int], int]:
        """Return an offset of each partition, negative for a time after its last record.

        `committed`: the latest offset is the last stable one, before all open transactions.
        """
        wanted = {TopicPartition(*partition): at for partition in partitions}
        if not wanted:
            return {}
        isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        futures = self._client.list_offsets(
            wanted, isolation_level=isolation, request_timeout=timeout_s
        )
        return {
            (found.topic, found.partition): self._wait(future, timeout_s).offset
            for found, future in futures.items()
        }

    def committed(self, group: str, timeout_s: float) -> dict[tuple[str, int], int]:
        """Return the committed offsets of a consumer group; none if the group does not exist."""
        request = ConsumerGroupTopicPartitions(group)
        try:
            found = self._of_group(self._client.list_consumer_group_offsets, request, timeout_s)
        except KafkaException as exc:
            if code_of(exc) == GROUP_ID_NOT_FOUND:
                return {}
            raise
        # A negative offset means a partition without a committed one.
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def commit(self, group: str, offsets: Mapping[Partition, int], timeout_s: float) -> None:
        """Set committed offsets of a group without members."""
        wanted = [
            TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()
        ]
        request = ConsumerGroupTopicPartitions(group, wanted)
        self._of_group(self._client.alter_consumer_group_offsets, request, timeout_s)

    def delete_group(self, group: str, timeout_s: float) -> None:
        """Delete a group without members; a missing group is not an error."""
        futures = self._client.delete_consumer_groups([group], request_timeout=timeout_s)
        try:
            self._wait(futures[group], timeout_s)
        except KafkaException as exc:
            if code_of(exc) != GROUP_ID_NOT_FOUND:
                raise

    # The client publishes no types of its answers.
    def _of_group(
        self, call: Any, request: ConsumerGroupTopicPartitions, timeout_s: float
    ) -> list[Any]:
        (future,) = call([request], request_timeout=timeout_s).values()
        partitions = list(self._wait(future, timeout_s).topic_partitions or ())
        for partition in partitions:
            if partition.error is not None:
                raise KafkaException(partition.error)
        return partitions


def offset_at(timestamp_ms: int) -> OffsetSpec:
    """Return the spec of the first record at or after a time, for `AdminRequests.offsets`."""
    at: OffsetSpec = OffsetSpec.for_timestamp(timestamp_ms)
    return at
