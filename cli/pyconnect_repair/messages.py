"""Messages of topics: at places, from offsets to the ends, and as records that are written."""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from pyconnect_clients.brokers.failures import CLIENT_ERRORS, PARTITION_EOF, failure_of
from pyconnect_clients.connections import with_token_callback
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.security import librdkafka_settings
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.properties import client_properties, client_security
from pyconnect_reconcile.spec import Cluster
from pyconnect_repair.plan import Place

RECORD_S = 30.0
"""The longest wait for one record."""
NO_PARTITION = -1
_POLL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairRecord:
    """A record; bytes are in Base64. Partition NO_PARTITION: its key decides, as in sources."""

    partition: int
    key: str | None
    value: str | None
    headers: Sequence[tuple[str, str | None]] = ()
    timestamp_ms: int = 0

    @classmethod
    def of(cls, message: Any) -> RepairRecord:
        """Return the record of a message of the client."""
        headers = [(name, text_of(value)) for name, value in message.headers() or ()]
        return cls(
            partition=message.partition(),
            key=text_of(message.key()),
            value=text_of(message.value()),
            headers=headers,
            timestamp_ms=message.timestamp()[1],
        )

    @property
    def ended(self) -> RepairRecord:
        """The tombstone of its key."""
        return replace(self, value=None, headers=(), timestamp_ms=0)

    @property
    def identity(self) -> str:
        """What is compared of it: key, value and headers."""
        return json.dumps(asdict(replace(self, partition=NO_PARTITION, timestamp_ms=0)))


def client_settings(cluster: Cluster) -> dict[str, Any]:
    """Return librdkafka's settings for a cluster; ReconcileError says what is wrong with it."""
    try:
        security = client_security(client_properties(cluster.properties))
        settings = {**librdkafka_settings(security), "bootstrap.servers": cluster.bootstrap}
        return with_token_callback({**settings, "log_level": "0"})
    except ClientPropertyError as exc:
        raise ReconcileError(f"Kafka client properties: {exc.statement}", hint=exc.way_out) from exc


def messages_at(cluster: Cluster, places: Sequence[Place]) -> Iterator[tuple[Place, Any]]:
    """Yield the message of each place.

    ReconcileError for a place without a record: it was removed, or its transaction aborted.
    """
    if not places:
        return
    with _consumer(cluster) as consumer:
        for place in sorted(places):
            consumer.assign([TopicPartition(*place)])
            message = _awaited(consumer)
            name = f"{place[0]}:{place[1]}@{place[2]}"
            if message is None:
                raise ReconcileError(f"the record {name} cannot be read", hint="try again")
            if message.error() is not None or message.offset() != place[2]:
                raise ReconcileError(
                    f"the record {name} cannot be read any more",
                    hint="audit again: records may have been removed since the report",
                )
            yield place, message


def messages_from(cluster: Cluster, topic: str, starts: Mapping[int, int]) -> list[Any]:
    """Return the messages from an offset of each partition to its last stable offset."""
    found: list[Any] = []
    ended: set[int] = set()
    with _consumer(cluster) as consumer:
        consumer.assign([TopicPartition(topic, *each) for each in starts.items()])
        while len(ended) < len(starts):
            message = _awaited(consumer)
            if message is None:
                raise ReconcileError(f"the ends of {topic} cannot be read", hint="try again")
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise KafkaException(error)
    return found


def text_of(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()


def bytes_of(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


@contextmanager
def kafka_errors(topic: str) -> Iterator[None]:
    """Raise the client's errors as ReconcileError."""
    try:
        yield
    except CLIENT_ERRORS as exc:
        hint = "run the same command again: it finds what was written"
        raise ReconcileError(f"{topic}: {failure_of(exc).text}", hint=hint) from exc


@contextmanager
def _consumer(cluster: Cluster) -> Iterator[Any]:
    settings = {
        **client_settings(cluster),
        "group.id": "pyconnect-repair",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
    }
    with closing(Consumer(settings)) as consumer:
        yield consumer


def _awaited(consumer: Any) -> Any:
    """Return the next record, end of a partition or refusal; None if none came within RECORD_S.

    Errors that may pass, such as a lost connection, are waited out.
    """
    deadline = time.monotonic() + RECORD_S
    while time.monotonic() < deadline:
        message = consumer.poll(_POLL_S)
        error = message and message.error()
        if message is not None and not (error and failure_of(error).kind.retriable):
            return message
    return None
