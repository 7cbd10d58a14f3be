"""Administrative requests as blocking functions with deadlines.

Kafka: TopicAdmin (its texts, and the outcomes that it treats as success). Every method returns our
values and raises `core.errors`. Threading: any thread; each call blocks its own.

`ensure_topic` creates a compacted topic or checks that it can be read as a log, as
KafkaTopicBasedBackingStore, TopicAdmin.verifyTopicCleanupPolicyOnlyCompact and KafkaBasedLog.start.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from confluent_kafka.admin import ConfigResource, NewTopic, OffsetSpec  # type: ignore[attr-defined]  # its __init__ has no __all__

from pyconnect_agent.core.errors import (
    AuthorizationError,
    KafkaError,
    RetriableKafkaError,
    WorkerConfigError,
)
from pyconnect_agent.kafka import clients, errors
from pyconnect_agent.kafka.errors import Deadline
from pyconnect_clients.brokers import failures
from pyconnect_clients.brokers.requests import EARLIEST, LATEST, AdminRequests, answer_of

_log = logging.getLogger(__name__)

LEADERS_INTERVAL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """A topic to create; -1 for `partitions` or `replication_factor` is the broker's default."""

    name: str
    partitions: int = 1
    replication_factor: int = -1
    settings: Mapping[str, str] = field(default_factory=dict)


class TopicCreated(Enum):
    """The result of a request to create a topic.

    NOT: the broker does not know the request or denies it; the topic may exist.
    """

    NOW = auto()
    BEFORE = auto()
    NOT = auto()


class Admin:
    """An admin client, which is closed with the last reference to it."""

    def __init__(self, config: clients.ClientConfig) -> None:
        self._client = clients.create_admin(config)
        self._requests = AdminRequests(self._client)
        self._bootstrap_servers = str(config.get("bootstrap.servers", ""))
        self._client_id = str(config.get("client.id", ""))
        self._leaders_in_doubt = False

    def create_topic(self, topic: TopicSpec, timeout_ms: int) -> bool:
        """Create a topic; return False if it exists or may exist.

        As in Kafka, it is not an error if the broker does not know the request or denies it: the
        topic may exist.
        """
        return self.create_or_find_topic(topic, timeout_ms) is TopicCreated.NOW

    def create_or_find_topic(self, topic: TopicSpec, timeout_ms: int) -> TopicCreated:
        """Create a topic and return whether it was created, exists, or may exist."""
        name = topic.name
        try:
            self._request_creation(topic, timeout_ms)
        except failures.REQUEST_ERRORS as exc:
            code = failures.code_of(exc)
            if code == failures.TOPIC_ALREADY_EXISTS:
                _log.debug("Found existing topic", extra={"topic": name})
                return TopicCreated.BEFORE
            if code in failures.TOPIC_NOT_AUTHORIZED or code == failures.UNSUPPORTED_VERSION:
                _log.debug(
                    "Cannot create topic, assuming that it exists",
                    extra={"topic": name, "reason": str(exc)},
                )
                return TopicCreated.NOT
            if code == failures.INVALID_CONFIG:
                raise errors.translate(exc, f"Unable to create topic(s) '{name}'") from exc
            if isinstance(exc, TimeoutError) or code in failures.TIMEOUTS:
                raise RetriableKafkaError(
                    f"Timed out while checking for or creating topic(s) '{name}'. This could"
                    " indicate a connectivity issue, unavailable topic partitions, or if this is"
                    " your first use of the topic it may have taken too long to create."
                ) from exc
            action = f"Error while attempting to create/find topic(s) '{name}'"
            failure = errors.translate(exc, action)
            if code == failures.INVALID_REPLICATION_FACTOR:
                # The number may become valid once all brokers have started.
                raise RetriableKafkaError(failure.message) from exc
            raise failure from exc
        _log.info("Created topic", extra={"topic": name})
        return TopicCreated.NOW

    def create_missing_topic(self, topic: TopicSpec, timeout_ms: int) -> bool:
        """Create a topic unless it is listed; return False if it exists.

        Unlike `create_topic` this raises KafkaError if the broker does not create it.
        """
        deadline = Deadline(timeout_ms)
        if topic.name in self.topic_names(timeout_ms):
            return False
        try:
            self._request_creation(topic, max(1, deadline.remaining_ms()))
        except failures.REQUEST_ERRORS as exc:
            if failures.code_of(exc) == failures.TOPIC_ALREADY_EXISTS:
                return False
            raise errors.translate(exc, f"Failed to create topic '{topic.name}'") from exc
        return True

    def topic_names(self, timeout_ms: int) -> frozenset[str]:
        """Return the names of all topics that this client may see."""
        with errors.translated("Failed to list topics"):
            metadata = self._client.list_topics(timeout=timeout_ms / 1000)
        return frozenset(metadata.topics)

    def _request_creation(self, topic: TopicSpec, timeout_ms: int) -> None:
        """Create the topic; raise the client's exceptions and TimeoutError."""
        new_topic = NewTopic(
            topic.name,
            num_partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            config=dict(topic.settings),
        )
        answer_of(
            self._client.create_topics(
                [new_topic], request_timeout=timeout_ms / 1000, operation_timeout=timeout_ms / 1000
            )[topic.name],
            timeout_ms / 1000,
        )

    def create_topic_with_retry(
        self, topic: TopicSpec, timeout_ms: int, retry_backoff_ms: int
    ) -> bool:
        """Do as `create_topic`, and repeat while brokers are too few or do not answer.

        The last attempt has little time: an earlier answer of a broker says more than its timeout.
        """
        deadline = Deadline(timeout_ms)
        answered: RetriableKafkaError | None = None
        while True:
            try:
                return self.create_topic(topic, max(1, deadline.remaining_ms()))
            except RetriableKafkaError as exc:
                if failures.code_of(exc.__cause__) == failures.INVALID_REPLICATION_FACTOR:
                    answered = exc
                if deadline.remaining_ms() <= retry_backoff_ms:
                    failure = answered or exc
                    raise failure from failure.__cause__
                _log.info(
                    "Topic creation failed, retrying",
                    extra={
                        "topic": topic.name,
                        "reason": str(exc),
                        "remaining_ms": deadline.remaining_ms(),
                    },
                )
            time.sleep(retry_backoff_ms / 1000)

    def topic_setting(self, topic: str, name: str, timeout_ms: int) -> str | None:
        """Return a setting of a topic, None if it is unknown or not readable."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        try:
            futures = self._client.describe_configs([resource], request_timeout=timeout_ms / 1000)
            entries = answer_of(futures[resource], timeout_ms / 1000)
        except failures.REQUEST_ERRORS as exc:
            code = failures.code_of(exc)
            if (
                code in failures.TOPIC_NOT_AUTHORIZED | failures.UNKNOWN_TOPIC
                or code == failures.UNSUPPORTED_VERSION
            ):
                _log.debug(
                    "Cannot read a topic's configuration",
                    extra={"topic": topic, "reason": str(exc)},
                )
                return None
            raise errors.translate(
                exc, f"Error while attempting to describe topic configs '{topic}'"
            ) from exc
        entry = entries.get(name)
        return None if entry is None else entry.value

    def partition_count(self, topic: str, timeout_ms: int) -> int:
        """Return the number of partitions, 0 if the topic is not (yet) known."""
        with errors.translated(f"Failed to read metadata of topic '{topic}'"):
            metadata = self._client.list_topics(topic, timeout=timeout_ms / 1000)
        found = metadata.topics.get(topic)
        if found is None or found.error is not None:
            code = None if found is None else failures.code_of(found.error)
            if found is not None and code not in failures.UNKNOWN_TOPIC:
                failure = self._describing_failed(
                    topic, found.error, f"Failed to read metadata of topic '{topic}'"
                )
                if not failure.retriable:
                    raise failure
            return 0
        return len(found.partitions)

    def end_offsets(self, topic: str, partitions: Sequence[int], timeout_ms: int) -> dict[int, int]:
        """Return the log end offsets by partition, with records of open transactions."""
        return self._list_offsets(topic, partitions, LATEST, timeout_ms)

    def wait_for_leaders(
        self, topic: str, partitions: int, timeout_ms: int, *, give_up: Callable[[], bool]
    ) -> None:
        """Wait until each partition's leader knows that it leads, which metadata say earlier.

        Afterwards no leader refuses records for this reason. The wait also ends at its timeout, and
        when the brokers deny the request.
        """
        deadline = Deadline(timeout_ms)
        while not give_up():
            try:
                self.end_offsets(topic, range(partitions), min(1_000, deadline.remaining_ms()))
            except KafkaError as exc:
                if exc.retriable and not deadline.expired():
                    time.sleep(LEADERS_INTERVAL_S)
                    continue
                _log.warning(
                    "not all partitions of a topic have leaders; records may change their order",
                    extra={"topic": topic, "reason": str(exc)},
                )
            return

    def beginning_offsets(
        self, topic: str, partitions: Sequence[int], timeout_ms: int
    ) -> dict[int, int]:
        """Return the log start offsets by partition."""
        return self._list_offsets(topic, partitions, EARLIEST, timeout_ms)

    def _list_offsets(
        self, topic: str, partitions: Sequence[int], at: OffsetSpec, timeout_ms: int
    ) -> dict[int, int]:
        wanted = [(topic, partition) for partition in partitions]
        deadline = Deadline(timeout_ms)
        if self._leaders_in_doubt:
            # librdkafka would keep asking the old leaders.
            with contextlib.suppress(*failures.CLIENT_ERRORS):
                self._client.list_topics(topic, timeout=max(0.001, deadline.remaining_s() / 2))
                self._leaders_in_doubt = False
        try:
            found = self._requests.offsets(wanted, at, max(0.001, deadline.remaining_s()))
        except failures.REQUEST_ERRORS as exc:
            failure = self._describing_failed(
                topic, exc, f"Error while getting offsets of topic '{topic}'"
            )
            self._leaders_in_doubt = True
            if failures.code_of(exc) == failures.NO_LEADERS:
                # Starting brokers will elect leaders soon.
                raise RetriableKafkaError(failure.message) from exc
            raise failure from exc
        return {partition: offset for (_, partition), offset in found.items()}

    def _describing_failed(self, topic: str, failure: object, action: str) -> KafkaError:
        """Translate a failure; the text of a denial also names the missing grant."""
        return errors.translate(
            failure,
            action,
            grant=f"Describe on topic '{topic}' to the principal of the admin client"
            f" '{self._client_id}'",
        )

    def cluster_id(self, timeout_ms: int) -> str | None:
        """Return the Kafka cluster's id, None from a broker that has none."""
        with errors.translated(f"Failed to look up the Kafka cluster at {self._bootstrap_servers}"):
            return self._requests.cluster_id(timeout_ms / 1000)

    def describe_topics(self, topics: Sequence[str], timeout_ms: int) -> dict[str, int]:
        """Return the number of partitions of those topics that exist."""
        found: dict[str, int] = {}
        for topic, answer in self._requests.topics(topics, timeout_ms / 1000):
            if not isinstance(answer, BaseException):
                found[topic] = len(answer.partitions)
                continue
            code = failures.code_of(answer)
            if code in failures.TOPIC_NOT_AUTHORIZED:
                raise AuthorizationError(
                    f"Not authorized to describe topic(s) '{topic}' on the brokers"
                    f" {self._bootstrap_servers}"
                ) from answer
            if code not in failures.UNKNOWN_TOPIC:
                action = f"Error while attempting to describe topics '{topic}'"
                raise errors.translate(answer, action) from answer
        return found


METADATA_TIMEOUT_MS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedTopic:
    """An internal topic and its names in messages.

    `worker_key`: the worker property that names the topic. `settings`: further topic settings,
    without effect for `cleanup.policy`. -1 is the broker's default for both numbers. `create`:
    whether a missing topic is created. `create_timeout_ms`, `retry_backoff_ms`:
    `default.api.timeout.ms` and `retry.backoff.ms`.
    """

    name: str
    worker_key: str
    purpose: str
    partitions: int
    replication_factor: int
    settings: Mapping[str, str] = field(default_factory=dict)
    single_partition: bool = False
    create: bool = True
    create_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100


def ensure_topic(admin: Admin, topic: CompactedTopic, stopping: threading.Event) -> int:
    """Create the topic or check its cleanup policy; return its number of partitions.

    Raises WorkerConfigError for a policy other than compaction alone, or for several partitions
    where one is required; KafkaError if no such topic exists within 30 s, or on `stopping`.
    """
    spec = TopicSpec(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        settings={**topic.settings, "cleanup.policy": "compact"},
    )
    if not topic.create and not admin.partition_count(topic.name, topic.create_timeout_ms):
        raise WorkerConfigError(
            f"Topic '{topic.name}' specified via the '{topic.worker_key}' property is missing. The"
            " config 'internal.topics.automatic.creation.enable' is set to 'false', so automatic"
            " creation of internal topics is disabled. Either enable automatic creation or create"
            " the topics manually."
        )
    if not topic.create or not admin.create_topic_with_retry(
        spec, topic.create_timeout_ms, topic.retry_backoff_ms
    ):
        policy = admin.topic_setting(topic.name, "cleanup.policy", topic.create_timeout_ms)
        _check_cleanup_policy(topic, policy)
    count = _await_partitions(admin, topic.name, stopping)
    if topic.single_partition and count > 1:
        raise WorkerConfigError(
            f"Topic '{topic.name}' supplied via the '{topic.worker_key}' property is required to "
            f"have a single partition in order to guarantee consistency of {topic.purpose}, but "
            f"found {count} partitions."
        )
    return count


def _check_cleanup_policy(topic: CompactedTopic, policy: str | None) -> None:
    found = {part.strip().lower() for part in (policy or "").split(",") if part.strip()}
    if not found:
        _log.info(
            "Unable to verify that the cleanup policy is 'compact': the broker is too old or the "
            "principal may not describe topic configurations",
            extra={"topic": topic.name},
        )
    elif found != {"compact"}:
        raise WorkerConfigError(
            f"Topic '{topic.name}' supplied via the '{topic.worker_key}' property is required to "
            "have 'cleanup.policy=compact' to guarantee consistency and durability of "
            f"{topic.purpose}, but found the topic currently has "
            f"'cleanup.policy={','.join(sorted(found))}'. Continuing would likely result in "
            f"eventually losing {topic.purpose} and problems restarting this Connect cluster in "
            f"the future. Change the '{topic.worker_key}' property in the Connect worker "
            "configurations to use a topic with 'cleanup.policy=compact'."
        )


def _await_partitions(admin: Admin, topic: str, stopping: threading.Event) -> int:
    deadline = Deadline(METADATA_TIMEOUT_MS)
    pause_s = 0.1
    while not stopping.is_set():
        try:
            count = admin.partition_count(topic, max(1, deadline.remaining_ms()))
        except RetriableKafkaError as exc:
            _log.info("Metadata not yet available", extra={"topic": topic, "reason": str(exc)})
            count = 0
        if count:
            return count
        if deadline.expired():
            break
        stopping.wait(min(pause_s, deadline.remaining_s()))
        pause_s = min(2 * pause_s, 1.0)
    raise KafkaError(
        f"Could not look up partition metadata for topic '{topic}' in the allotted period. This "
        "could indicate a connectivity issue, unavailable topic partitions, or if this is your "
        "first use of the topic it may have taken too long to create."
    )
