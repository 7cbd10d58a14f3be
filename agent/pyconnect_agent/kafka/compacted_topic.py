"""An internal topic: create it, or check that it can be read as a log.

Kafka: KafkaTopicBasedBackingStore, TopicAdmin.verifyTopicCleanupPolicyOnlyCompact, the look-up of
partitions in KafkaBasedLog.start.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_agent.core.errors import KafkaError, RetriableKafkaError, WorkerConfigError
from pyconnect_agent.kafka.admin import Admin, TopicSpec
from pyconnect_agent.kafka.errors import Deadline

_log = logging.getLogger(__name__)

METADATA_TIMEOUT_MS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedTopic:
    """An internal topic and its names in messages.

    `worker_key`: the worker property that names the topic. `settings`: extra topic settings;
    `cleanup.policy` among them is overruled. -1 is the broker's default for both numbers.
    `create`: whether a missing topic is made. `create_timeout_ms`, `retry_backoff_ms`:
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

    WorkerConfigError for another policy than compaction alone, or for several partitions where
    there must be one; KafkaError when there is no such topic within 30 s, or on `stopping`.
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
