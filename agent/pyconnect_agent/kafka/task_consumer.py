"""A sink task's consumer: group membership, positions, pause, commits with their results.

The module adds functions of Java's consumer that librdkafka lacks: a position right after the
assignment, seeks at any time, and a result for each asynchronous commit. All calls run on the
task's thread; rebalances happen inside `poll`, `commit_sync` and `close`.
"""

# ruff: noqa: SLF001 - the names of librdkafka's own codes start with an underscore

import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypedDict, cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    TIMESTAMP_CREATE_TIME,
    Consumer,
    KafkaError,
    Message,
)
from confluent_kafka import TopicPartition as ClientPartition

from pyconnect_agent.core.clients.librdkafka import BY_DURATION
from pyconnect_agent.core.errors import KafkaError as AgentKafkaError
from pyconnect_agent.kafka import errors
from pyconnect_agent.kafka.clients import create_consumer
from pyconnect_agent.kafka.topic_pattern import MatchingTopics
from pyconnect_api import TopicPartition
from pyconnect_clients.brokers import failures

LOG = logging.getLogger(__name__)

TUNING: Mapping[str, Any] = {
    # The default of a second starves a consumer that is faster than its queue.
    "fetch.queue.backoff.ms": 10,
    # Queued messages take memory of the task's process: twice as many of 100 bytes took 8 MiB more,
    # and were not faster.
    "queued.min.messages": 10_000,
    "queued.max.messages.kbytes": 8_192,
}
"""Defaults below the user's settings, in librdkafka's names."""

FORCED: Mapping[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": False,
}

POSITION_TIMEOUT_S = 60.0
SEEK_TIMEOUT_S = 10.0
SEEK_RETRY_S = 0.02
LOOK_UP_RETRY_S = 0.1
LIST_TIMEOUT_S = 5.0
METADATA_MAX_AGE_MS = 300_000
"""Java's default of `metadata.max.age.ms`: the time until a new topic is found."""

_STATE: int = KafkaError._STATE
_IGNORED = frozenset({failures.PARTITION_EOF})
_TRANSIENT = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._MAX_POLL_EXCEEDED,
        KafkaError._ALL_BROKERS_DOWN,
    }
)
_RESET_POSITIONS = {
    "earliest": OFFSET_BEGINNING,
    "smallest": OFFSET_BEGINNING,
    "beginning": OFFSET_BEGINNING,
    "latest": OFFSET_END,
    "largest": OFFSET_END,
    "end": OFFSET_END,
}

CommitCallback = Callable[[AgentKafkaError | None], None]


class ConsumedMessage(Protocol):
    """The client's message, whose values are methods."""

    def topic(self) -> str: ...
    def partition(self) -> int: ...
    def offset(self) -> int: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def timestamp(self) -> tuple[int, int]: ...
    def headers(self) -> list[tuple[str, bytes | None]] | None: ...
    def error(self) -> Any: ...


def message_of(
    *,
    topic: str,
    partition: int,
    offset: int,
    timestamp_ms: int | None,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> ConsumedMessage:
    """Return a record as a message; its timestamp is the time of creation, if there is one."""
    timestamp = (TIMESTAMP_CREATE_TIME, -1 if timestamp_ms is None else timestamp_ms)
    message: Any = Message(
        topic=topic,
        partition=partition,
        offset=offset,
        key=key,
        value=value,
        headers=list(headers),
        timestamp=timestamp,
    )
    return cast("ConsumedMessage", message)


class RebalanceListener(Protocol):
    """A listener that is called inside `poll` and `close`, and must not raise."""

    def on_assigned(self, positions: Mapping[TopicPartition, int]) -> None:
        """Take new partitions and their start positions; may call `seek` and `pause`."""
        ...

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None: ...
    def on_lost(self, partitions: Sequence[TopicPartition]) -> None: ...


class GroupMetadata(TypedDict):
    """A membership in a group; `member` is empty before the end of the first rebalance."""

    group: str
    generation: int
    member: str
    instance: str | None


class TaskConsumer:
    """The consumer of one sink task."""

    def __init__(self, config: Mapping[str, Any], listener: RebalanceListener) -> None:
        self._listener = listener
        self._group_id = str(config.get("group.id", ""))
        self._client_id = str(config.get("client.id", ""))
        self._incremental = (
            config.get("partition.assignment.strategy") == "cooperative-sticky"
            or config.get("group.protocol") == "consumer"
        )
        self._reset_policy = str(config.get("auto.offset.reset", "earliest"))
        if self._reset_policy.startswith(BY_DURATION):
            # With this setting the client reports a position that is out of range, and does not
            # move it.
            config = {**config, "auto.offset.reset": "error"}
        self._assignment: set[TopicPartition] = set()
        self._starting: dict[TopicPartition, int] | None = None
        self._paused: set[TopicPartition] = set()
        self._commits: deque[tuple[frozenset[tuple[str, int, int]], CommitCallback]] = deque()
        self._failure: AgentKafkaError | None = None
        self._matching: MatchingTopics | None = None
        max_age_ms = int(config.get("metadata.max.age.ms", METADATA_MAX_AGE_MS))
        self._topics_interval_s = max_age_ms / 1000
        client = {**TUNING, **config, **FORCED}
        self._consumer: Consumer = create_consumer({**client, "on_commit": self._on_commit})
        self._reader_config = {k: v for k, v in client.items() if k != "group.instance.id"}
        self._offset_reader: Consumer | None = None
        self._keeps_metadata = False
        self._read_group_metadata()
        # The messages are `ConsumedMessage`s; the client types each accessor as optional.
        self._consume: Callable[[int, float], list[Any]] = self._consumer.consume

    def subscribe(self, topics: Sequence[str]) -> None:
        self._consumer.subscribe(
            list(topics),
            on_assign=self._on_assign,
            on_revoke=partial(self._release, self._listener.on_revoked),
            on_lost=partial(self._release, self._listener.on_lost),
        )

    def subscribe_pattern(self, pattern: str) -> None:
        """Consume topics whose whole name matches, in Java's syntax; `poll` follows changes.

        Raises re.error.
        """
        self._matching = MatchingTopics(
            pattern, self._topic_names, interval_s=self._topics_interval_s
        )

    def poll(self, max_records: int, timeout_s: float) -> list[ConsumedMessage]:
        """Return waiting messages, else the first ones that arrive within `timeout_s`.

        A batch may hold errors. Raises KafkaError for an error that ends the task.
        """
        topics = None if self._matching is None else self._matching.change()
        if topics is not None:
            LOG.info("topics that match the pattern", extra={"topics": ", ".join(topics)})
            if topics:
                self.subscribe(topics)
            else:
                # The client refuses an empty subscription.
                self._consumer.unsubscribe()
        messages: list[ConsumedMessage] = self._consume(max_records, 0)
        if not messages and timeout_s > 0:
            messages = self._consume(1, timeout_s)
            if messages:
                messages += self._consume(max_records - 1, 0) if max_records > 1 else []
        if self._keeps_metadata:
            self._read_group_metadata()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self._reset_policy.startswith(BY_DURATION):
            return [message for message in messages if not self._was_out_of_range(message)]
        return messages

    def _was_out_of_range(self, message: ConsumedMessage) -> bool:
        """Return whether the message reports a position out of range; also move the position."""
        failure = message.error()
        if failure is None or failure.code() != KafkaError._AUTO_OFFSET_RESET:
            return False
        place = ClientPartition(message.topic(), message.partition())
        partition = TopicPartition(place.topic, place.partition)
        LOG.warning("position out of range", extra={"partition": str(partition)})
        with errors.translated(f"Failed to look up the position of {partition}"):
            positions = self._reset_positions(self._consumer, [place])
        self.seek(partition, positions[partition])
        return True

    def check(self, message: ConsumedMessage) -> None:
        """Handle a message whose `error()` is set: log a temporary error, raise any other."""
        failure = message.error()
        if failure.code() in _IGNORED:
            return
        error = self._translated(failure, "Failed to consume", message.topic())
        if _passes(failure):
            LOG.warning("consumer reported an error", extra={"reason": str(error)})
            return
        raise error

    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self._assignment)

    def is_assigned(self, partition: TopicPartition) -> bool:
        return partition in self._assignment

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue at `offset`; callable within `on_assigned`. Raises KafkaError."""
        if self._starting is not None and partition in self._starting:
            self._starting[partition] = offset
            return
        target = ClientPartition(partition.topic, partition.partition, offset)
        deadline = time.monotonic() + SEEK_TIMEOUT_S
        while True:
            try:
                self._consumer.seek(target)
                return
            except failures.CLIENT_ERRORS as exc:
                # librdkafka accepts a seek only once it fetches the partition.
                if failures.code_of(exc) != _STATE or time.monotonic() > deadline:
                    raise errors.translate(exc, f"Failed to seek {partition} to {offset}") from exc
                time.sleep(SEEK_RETRY_S)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop fetching; unassigned partitions are ignored."""
        wanted = self._assignment.intersection(partitions)
        self._paused |= wanted
        self._apply(self._consumer.pause, wanted)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        wanted = self._assignment.intersection(partitions)
        self._paused -= wanted
        self._apply(self._consumer.resume, wanted)

    def commit_sync(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit and wait; raise KafkaError if that fails."""
        with errors.translated("Failed to commit offsets", self._translated):
            results = self._consumer.commit(offsets=_client_offsets(offsets), asynchronous=False)
        for result in results or ():
            if result.error is not None:
                raise self._translated(
                    result.error, f"Failed to commit {result.topic}-{result.partition}"
                )

    def commit_async(self, offsets: Mapping[TopicPartition, int], done: CommitCallback) -> None:
        """Commit without waiting; `done` is called from a later `poll`."""
        client_offsets = _client_offsets(offsets)
        self._commits.append((_fingerprint(client_offsets), done))
        try:
            self._consumer.commit(offsets=client_offsets, asynchronous=True)
        except failures.CLIENT_ERRORS as exc:
            self._commits.pop()
            done(self._translated(exc, "Failed to commit offsets"))

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Return the group's committed offsets, None without one. On any thread.

        Raises KafkaError.
        """
        if self._offset_reader is None:
            # The consumer's own call would wait for the end of a rebalance, which waits for this
            # thread.
            self._offset_reader = create_consumer(self._reader_config)
        return self._committed(self._offset_reader, [ClientPartition(*each) for each in partitions])

    @property
    def group_metadata(self) -> GroupMetadata:
        """Return the data with which a transaction commits the group's offsets. On any thread."""
        self._keeps_metadata = True
        return self._metadata

    def _read_group_metadata(self) -> None:
        self._metadata = parse_group_metadata(self._consumer.consumer_group_metadata())

    def close(self) -> None:
        self._consumer.close()
        if self._offset_reader is not None:
            self._offset_reader.close()

    def _topic_names(self) -> Collection[str]:
        with errors.translated("Failed to list topics"):
            return frozenset(self._consumer.list_topics(timeout=LIST_TIMEOUT_S).topics)

    def _apply(self, call: Callable[[list[Any]], None], wanted: set[TopicPartition]) -> None:
        if not wanted:
            return
        if self._starting is not None:
            # The client does not know the starting partitions yet; `_on_assign` pauses them.
            wanted = wanted - self._starting.keys()
        with errors.translated("Failed to pause or resume partitions"):
            call([ClientPartition(p.topic, p.partition) for p in wanted])

    def _on_commit(self, error: Any, partitions: Sequence[Any]) -> None:
        fingerprint = _fingerprint(partitions)
        if all(expected != fingerprint for expected, _ in self._commits):
            return  # a synchronous commit, whose caller has the result
        expected, done = self._commits.popleft()
        while expected != fingerprint:
            expected, done = self._commits.popleft()
        failure = error or next((p.error for p in partitions if p.error is not None), None)
        done(None if failure is None else self._translated(failure, "Failed to commit offsets"))

    def _on_assign(self, consumer: Consumer, partitions: list[Any]) -> None:
        self._read_group_metadata()
        try:
            positions = self._positions(consumer, partitions)
        except AgentKafkaError as exc:
            self._failure = exc
            positions = {}
        self._starting = positions
        if not self._incremental:
            self._assignment.clear()
        self._assignment.update(positions)
        try:
            self._listener.on_assigned(dict(positions))
        finally:
            starting, self._starting = self._starting, None
            assigned = [ClientPartition(p.topic, p.partition, o) for p, o in starting.items()]
            (consumer.incremental_assign if self._incremental else consumer.assign)(assigned)
            paused = self._paused.intersection(starting)
            if paused:
                consumer.pause([ClientPartition(p.topic, p.partition) for p in paused])

    def _release(
        self,
        tell: Callable[[Sequence[TopicPartition]], None],
        consumer: Consumer,
        partitions: list[Any],
    ) -> None:
        gone = [TopicPartition(p.topic, p.partition) for p in partitions]
        tell(gone)
        self._assignment.difference_update(gone)
        self._paused.difference_update(gone)
        if self._incremental:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()

    def _positions(self, consumer: Consumer, partitions: list[Any]) -> dict[TopicPartition, int]:
        """Return start positions: the committed offset, or else that of the reset policy."""
        if not partitions:
            return {}
        found = self._committed(consumer, partitions)
        positions = {p: offset for p, offset in found.items() if offset is not None}
        unknown = [p for p, offset in found.items() if offset is None]
        if unknown:
            client_partitions = [ClientPartition(*p) for p in unknown]
            with errors.translated("Failed to read the positions of partitions", self._translated):
                positions |= self._reset_positions(consumer, client_partitions)
        return positions

    def _committed(
        self, consumer: Consumer, partitions: list[Any]
    ) -> dict[TopicPartition, int | None]:
        """Return the partitions' committed offsets, None without one. Raises KafkaError."""
        with errors.translated("Failed to read the positions of partitions", self._translated):
            found = consumer.committed(partitions, timeout=POSITION_TIMEOUT_S)
        for each in found:
            if each.error is not None:
                raise self._translated(
                    each.error,
                    f"Failed to read the position of {each.topic}-{each.partition}",
                    each.topic,
                )
        return {
            TopicPartition(each.topic, each.partition): each.offset if each.offset >= 0 else None
            for each in found
        }

    def _translated(self, failure: Any, action: str, topic: str | None = None) -> AgentKafkaError:
        what = f"topic '{topic}'" if topic else "the connector's topics"
        if failures.code_of(failure) == failures.GROUP_NOT_AUTHORIZED:
            what = f"group '{self._group_id}'"
        return errors.translate(
            failure,
            action,
            grant=f"Read on {what} to the principal of the consumer '{self._client_id}'",
        )

    def _reset_positions(
        self, consumer: Consumer, partitions: Sequence[Any]
    ) -> dict[TopicPartition, int]:
        reset = _RESET_POSITIONS.get(self._reset_policy)
        if self._reset_policy.startswith(BY_DURATION):
            age_ms = int(self._reset_policy.removeprefix(BY_DURATION))
            reset = max(0, round(time.time() * 1000) - age_ms)
        if reset is None:
            names = ", ".join(f"{p.topic}-{p.partition}" for p in partitions)
            raise AgentKafkaError(
                f"Undefined offset with no reset policy for partitions: [{names}]"
            )
        # The timestamps -2 and -1 ask for the first and the next offset; others for the first
        # record that is not older.
        asked = [ClientPartition(p.topic, p.partition, reset) for p in partitions]
        positions: dict[TopicPartition, int] = {}
        deadline = time.monotonic() + POSITION_TIMEOUT_S
        while asked:
            found = consumer.offsets_for_times(asked, timeout=max(0.0, deadline - time.monotonic()))
            asked, wait_s = [], 0.0
            for place in found:
                partition = TopicPartition(place.topic, place.partition)
                if place.error is None and place.offset >= 0:
                    positions[partition] = place.offset
                elif place.error is None:
                    # All records are older than the timestamp.
                    asked.append(ClientPartition(place.topic, place.partition, OFFSET_END))
                elif _passes(place.error) and time.monotonic() < deadline:
                    # A logical position cannot be used to rewind.
                    asked.append(ClientPartition(place.topic, place.partition, reset))
                    wait_s = LOOK_UP_RETRY_S
                else:
                    raise self._translated(
                        place.error, f"Failed to look up the position of {partition}", place.topic
                    )
            if wait_s:
                time.sleep(wait_s)
        return positions


def _passes(failure: Any) -> bool:
    """Return whether a client's error is temporary."""
    return errors.translate(failure, "").retriable or failure.code() in _TRANSIENT


def _client_offsets(offsets: Mapping[TopicPartition, int]) -> list[Any]:
    return [ClientPartition(p.topic, p.partition, offset) for p, offset in offsets.items()]


def _fingerprint(partitions: Iterable[Any]) -> frozenset[tuple[str, int, int]]:
    return frozenset((p.topic, p.partition, p.offset) for p in partitions)


def parse_group_metadata(written: bytes) -> GroupMetadata:
    """Return the membership from the bytes that the client has written.

    The form is `CGMDv2:`, the generation in four bytes of the machine's order, group and member
    with a zero byte after each, and one byte: 0 if the instance's id and a zero byte follow.
    """
    magic, rest = written[:7], written[7:]
    assert magic == b"CGMDv2:"
    group, member, instance = rest[4:].split(b"\0", 2)
    return GroupMetadata(
        group=group.decode(),
        generation=int.from_bytes(rest[:4], sys.byteorder, signed=True),
        member=member.decode(),
        instance=None if instance[0] else instance[1:-1].decode(),
    )
