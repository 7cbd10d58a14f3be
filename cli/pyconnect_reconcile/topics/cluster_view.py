"""Snapshots of topics: the facts of brokers that Spark's Kafka source does not report.

Offsets and topics come through librdkafka, producers of open transactions through kafka-python, the
only client with DescribeProducers; `pyconnect_clients.brokers` has the requests.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from dataclasses import replace
from typing import Any

from pyconnect_clients.connections import secured_arguments, with_token_callback
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.security import librdkafka_settings
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.properties import client_properties, client_security
from pyconnect_reconcile.spec import Cluster
from pyconnect_reconcile.topics.snapshot import (
    UNKNOWN_POLICY,
    PartitionRange,
    ProducerState,
    TopicSnapshot,
    TopicsSnapshot,
)

TIMEOUT_S = 30.0
POLL_S = 0.1
# A broker that is stopping also ends a handshake; a refusing one does so again.
HANDSHAKES_REFUSED = 2


class _Connections:
    """librdkafka's connection errors; it tries again for ever, even after a refusal."""

    def __init__(self) -> None:
        self.last: str | None = None
        self.refused = False
        """Whether another attempt cannot succeed."""
        self._handshakes = 0

    def __call__(self, error: Any) -> None:
        from confluent_kafka import KafkaError

        # The client's types lack its local errors.
        refused, handshake = KafkaError._AUTHENTICATION, KafkaError._SSL  # noqa: SLF001
        if error.code() == KafkaError._ALL_BROKERS_DOWN and self.last:  # noqa: SLF001
            return
        self.last = error.str()
        self._handshakes += error.code() == handshake
        self.refused = error.code() == refused or self._handshakes >= HANDSHAKES_REFUSED


class ClusterView:
    """One cluster as its brokers describe it; every request ends within TIMEOUT_S."""

    def __init__(self, cluster: Cluster) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        from pyconnect_clients.brokers.requests import AdminRequests

        self._cluster = cluster
        self._security = client_security(client_properties(cluster.properties))
        self._connections = _Connections()
        settings: dict[str, Any] = {
            **librdkafka_settings(self._security),
            "bootstrap.servers": cluster.bootstrap,
            "log_level": "0",
            "error_cb": self._connections,
        }
        try:
            self._admin = AdminClient(with_token_callback(settings))
        except ClientPropertyError as exc:
            raise ReconcileError(
                f"Kafka client properties: {exc.statement}", hint=exc.way_out
            ) from exc
        except KafkaException as exc:
            raise ReconcileError(f"Kafka client properties: {exc.args[0].str()}") from exc
        self._requests = AdminRequests(self._admin, self._result)

    def snapshot(self, topics: Sequence[str]) -> TopicsSnapshot:
        """Return these topics with whole ranges, from the earliest offset to the last stable one.

        Raises ReconcileError for a topic that does not exist and for brokers that do not answer.
        """
        from pyconnect_clients.brokers.failures import CLIENT_ERRORS
        from pyconnect_clients.brokers.requests import EARLIEST, LATEST

        taken_ms = int(time.time() * 1000)
        described = {}
        for name, answer in self._requests.topics(topics, TIMEOUT_S):
            if isinstance(answer, BaseException):
                raise self._failed(f"topic {name}", answer) from answer
            described[name] = answer
        partitions = [
            (name, part.id) for name, topic in described.items() for part in topic.partitions
        ]
        earliest = self._offsets(partitions, EARLIEST)
        # The high watermark comes first: a record written in between is not an open transaction.
        high = self._offsets(partitions, LATEST)
        later = self._offsets(partitions, LATEST, committed=True)
        stable = {at: min(high[at], later[at]) for at in partitions}
        policies = self._policies(topics)
        ranges = {
            at: PartitionRange(
                topic=at[0],
                partition=at[1],
                start=earliest[at],
                end=max(stable[at], earliest[at]),
                earliest=earliest[at],
                last_stable=stable[at],
                high_watermark=high[at],
            )
            for at in partitions
        }
        opened = [at for at, part in ranges.items() if part.open_tail > 0]
        for at, producers in self._open_producers(opened).items():
            ranges[at] = replace(ranges[at], open_producers=producers)
        try:
            cluster_id = str(self._admin.list_topics(timeout=TIMEOUT_S).cluster_id)
        except CLIENT_ERRORS as exc:
            raise self._failed("describe the cluster", exc) from exc
        return TopicsSnapshot(
            cluster_id=cluster_id,
            taken_ms=taken_ms,
            topics=tuple(
                TopicSnapshot(
                    topic=name,
                    topic_id=str(described[name].topic_id),
                    cleanup_policy=policies[name],
                    partitions=tuple(part for at, part in ranges.items() if at[0] == name),
                )
                for name in topics
            ),
        )

    def gone(self, snapshot: TopicsSnapshot) -> list[str]:
        """Return the topics that were deleted since the snapshot, or created again."""
        from pyconnect_clients.brokers.failures import UNKNOWN_TOPIC, failure_of

        before = {topic.topic: topic.topic_id for topic in snapshot.topics}
        found = []
        for name, answer in self._requests.topics(list(before), TIMEOUT_S):
            if not isinstance(answer, BaseException):
                if str(answer.topic_id) != before[name]:
                    found.append(name)
            elif failure_of(answer).code in UNKNOWN_TOPIC:
                found.append(name)
            else:
                raise self._failed(f"topic {name}", answer) from answer
        return found

    def offsets_at(self, snapshot: TopicsSnapshot, timestamp_ms: int) -> dict[str, dict[int, int]]:
        """Return the first offset at or after a time; the end if every record is older."""
        from pyconnect_clients.brokers.requests import offset_at

        at = [(part.topic, part.partition) for part in snapshot.partitions]
        found = self._offsets(at, offset_at(timestamp_ms))
        bounds: dict[str, dict[int, int]] = {}
        for part in snapshot.partitions:
            offset = found[(part.topic, part.partition)]
            bounds.setdefault(part.topic, {})[part.partition] = part.end if offset < 0 else offset
        return bounds

    def _offsets(
        self, partitions: Sequence[tuple[str, int]], at: Any, *, committed: bool = False
    ) -> dict[tuple[str, int], int]:
        from pyconnect_clients.brokers.failures import REQUEST_ERRORS, WITHOUT_LEADER, code_of

        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                return self._requests.offsets(partitions, at, TIMEOUT_S, committed=committed)
            except REQUEST_ERRORS as exc:
                # Leaders are being elected: the topic is new, or a broker has just gone.
                if code_of(exc) not in WITHOUT_LEADER or time.monotonic() > deadline:
                    raise self._failed("list offsets", exc) from exc
            time.sleep(POLL_S)

    def _policies(self, topics: Sequence[str]) -> Mapping[str, str]:
        from confluent_kafka import KafkaException

        # The client documents these, but its types do not export them.
        from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]

        if not topics:
            return {}
        futures = self._admin.describe_configs(
            [ConfigResource(ResourceType.TOPIC, name) for name in topics], request_timeout=TIMEOUT_S
        )
        policies = {}
        for resource, future in futures.items():
            try:
                policies[resource.name] = str(
                    self._result(future, TIMEOUT_S)["cleanup.policy"].value
                )
            except KafkaException:
                # A user who may read topics may lack the right to describe their configuration.
                policies[resource.name] = UNKNOWN_POLICY
        return policies

    def _open_producers(
        self, at: list[tuple[str, int]]
    ) -> dict[tuple[str, int], tuple[ProducerState, ...]]:
        """Return producers with open transactions; empty if the request is not possible.

        Producers only explain a finding; the finding itself does not need them.
        """
        if not at:
            return {}
        from kafka.errors import KafkaError

        from pyconnect_clients.brokers.protocol import admin_client, open_producers

        found = defaultdict(list)
        try:
            arguments = secured_arguments(self._security, self._cluster.bootstrap)
            arguments["bootstrap_servers"] = self._cluster.bootstrap.split(",")
            arguments["request_timeout_ms"] = int(TIMEOUT_S * 1000)
            with admin_client(arguments, TIMEOUT_S) as client:
                for (topic, partition), producer in open_producers(client, at):
                    state = ProducerState(
                        producer_id=producer.producer_id,
                        producer_epoch=producer.producer_epoch,
                        transaction_start_offset=producer.current_transaction_start_offset,
                        last_timestamp_ms=producer.last_timestamp,
                    )
                    found[topic, partition].append(state)
        except (ClientPropertyError, KafkaError):
            return {}
        return {where: tuple(states) for where, states in found.items()}

    # The client has no types for the results of its futures.
    def _result(self, future: Any, _timeout_s: float) -> Any:
        """Wait for an answer, and handle the client's connection errors meanwhile."""
        while not future.done():
            wait([future], POLL_S)
            self._admin.poll(0)
            if self._connections.refused:
                raise ReconcileError(
                    f"Kafka at {self._cluster.bootstrap} refuses the connection:"
                    f" {self._connections.last}",
                    hint="check --kafka-properties: protocol, credentials, trust store",
                )
        return future.result()

    def _failed(self, what: str, error: BaseException) -> ReconcileError:
        from pyconnect_clients.brokers.failures import UNKNOWN_TOPIC, failure_of

        failure = failure_of(error)
        if failure.code in UNKNOWN_TOPIC:
            return ReconcileError(
                f"{what}: the topic does not exist at {self._cluster.bootstrap}",
                hint="list the topics of a connector: pyconnect topics list NAME",
            )
        last = f" ({self._connections.last})" if self._connections.last else ""
        return ReconcileError(
            f"Kafka at {self._cluster.bootstrap}: {what}: {failure.text}{last}",
            hint="are --kafka-bootstrap and --kafka-properties right?",
        )
