"""The origins of lost records: messages of topics, and rows of the table of a SqlSource.

Messages are read at their places, or from offsets to the ends. The connector's own reader reads
rows again by their keys, so a record has the present values of its row. A row beyond the
position of the report has changed since: the source itself writes it when it is resumed.
"""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from sqlalchemy import ColumnElement, Connection, and_, inspect, types

from pyconnect_api import ConnectException, SourceRecord, Struct
from pyconnect_clients.brokers.failures import CLIENT_ERRORS, PARTITION_EOF, failure_of
from pyconnect_clients.connections import with_token_callback
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.security import librdkafka_settings
from pyconnect_connectors.odd_values import OddValueException
from pyconnect_connectors.sql.column_types import reflected
from pyconnect_connectors.sql.database import connected, database_errors, open_engine
from pyconnect_connectors.sql.reading import (
    INCREMENTING_FIELD,
    TIMESTAMP_FIELD,
    Offset,
    TableReader,
)
from pyconnect_connectors.sql.settings import SourceSettings
from pyconnect_connectors.sql.source_tables import QUERY_VIEW, describe_query, place_of
from pyconnect_reconcile.data_sides import TablePosition
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import count_of
from pyconnect_reconcile.properties import client_properties, client_security
from pyconnect_reconcile.spec import Cluster
from pyconnect_repair.plan import Place, Refused

RECORD_S = 30.0
"""The longest wait for one record."""
NO_PARTITION = -1
_POLL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairRecord:
    """A record; bytes are in Base64. With NO_PARTITION its key decides, as in sources."""

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
        """The tombstone of the record's key."""
        return replace(self, value=None, headers=(), timestamp_ms=0)

    @property
    def identity(self) -> str:
        """The compared part of the record: key, value and headers."""
        return json.dumps(asdict(replace(self, partition=NO_PARTITION, timestamp_ms=0)))


def client_settings(cluster: Cluster) -> dict[str, Any]:
    """Return librdkafka's settings for a cluster; ReconcileError for an invalid property."""
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
            if (error := message.error()) is not None and error.code() != PARTITION_EOF:
                raise ReconcileError(f"the record {name} cannot be read: {error.str()}")
            if error is not None or message.offset() != place[2]:
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
    """Raise ReconcileError in place of the client's errors."""
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

    Errors that may pass, such as a lost connection, do not end the wait.
    """
    deadline = time.monotonic() + RECORD_S
    while time.monotonic() < deadline:
        message = consumer.poll(_POLL_S)
        error = message and message.error()
        if message is not None and not (error and failure_of(error).kind.retriable):
            return message
    return None


_VALUES: Mapping[type, Callable[[str], object]] = {
    int: int,
    str: str,
    Decimal: Decimal,
    date: date.fromisoformat,
}
"""Readers of the key texts in a report, by the type of a column."""


class SourceTable:
    """The table or the query that has a topic's rows, over one connection."""

    def __init__(
        self, connection: Connection, settings: SourceSettings, topic: str, position: TablePosition
    ) -> None:
        name, self._partition = topic.removeprefix(settings.prefix), "table"
        if settings.query is not None:
            describe_query(connection, settings.query)
            name, self._partition = QUERY_VIEW, "query"
        schema, table = place_of(inspect(connection), name, settings.schema)
        self._connection = connection
        # A row with an odd value raises an error that refuses it, instead of being skipped.
        self._settings = replace(settings, tolerates_errors=False)
        self._topic = topic
        self._table = reflected(connection, table, schema)
        number: object = position.number
        column = self._table.columns.get(settings.incrementing or "")
        if position.number is not None and column is not None:
            is_whole = isinstance(column.type, types.Integer)
            number = int(position.number) if is_whole else position.number
        offset = {TIMESTAMP_FIELD: position.timestamp, INCREMENTING_FIELD: number}
        self._position = {name: part for name, part in offset.items() if part is not None}

    def record(self, key: Mapping[str, str]) -> SourceRecord:
        """Return the record of a row; ReconcileError when the row has changed since the report."""
        conditions = []
        for name, text in key.items():
            column = self._table.columns.get(name)
            value = None if column is None else _VALUES.get(column.type.python_type)
            if column is None or value is None:
                raise Refused(f"a row cannot be found by its column {name}")
            conditions.append(column == value(text))
        only = and_(*conditions)
        try:
            found = self._read(None, only, key)
            beyond = self._read(self._position, only, key)
        except OddValueException as exc:
            raise Refused(str(exc)) from exc
        if len(found) == 1 and not beyond:
            return found[0]
        number = count_of(len(found) - len(beyond), "row")
        raise ReconcileError(
            f"{self._table.fullname} has changed since the report: {number} of"
            f" {', '.join(f'{name}={text}' for name, text in key.items())} would have been read"
            " by then, not 1",
            hint="audit again, and repair by the new report",
        )

    def _read(
        self, offset: Offset | None, only: ColumnElement[bool], key: Mapping[str, str]
    ) -> list[SourceRecord]:
        reader = TableReader(
            self._table,
            self._settings,
            partition={self._partition: self._table.name},
            topic=self._topic,
            offset=offset,
            only=only,
        )
        records = [each for batch in reader.batches(self._connection) for each in batch]
        # A collation also finds other texts for the key.
        return [
            each
            for each in records
            if isinstance(each.value, Struct)
            and all(
                text == value
                for name, text in key.items()
                if isinstance(value := each.value.get(name), str)
            )
        ]


@contextmanager
def source_table(
    config: Mapping[str, str], topic: str, position: TablePosition
) -> Iterator[SourceTable]:
    """Yield the table that a source with this config reads for a topic."""
    settings = SourceSettings.parse(config)
    try:
        engine = open_engine(settings.connection, writes=False)
        with database_errors("the repair"), closing(connected(engine)) as connection:
            yield SourceTable(connection, settings, topic, position)
    except ConnectException as exc:
        raise ReconcileError(str(exc)) from exc
