"""Consumer offsets in the target database, and the epochs that say which task may write them.

There is one row per connector and partition, with the next offset and an epoch. A task that opens a
partition raises the epoch, and writes only while the row has that epoch. Each transaction updates
the row first. Its lock makes a successor wait for the open transaction of a predecessor; a later
transaction of the predecessor finds another epoch.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.exc import IntegrityError
from sqlalchemy.schema import CreateColumn
from sqlalchemy.sql import ColumnElement
from sqlalchemy.types import TypeDecorator, TypeEngine

from pyconnect_api import ConnectException, TopicPartition
from pyconnect_connectors.sql.column_types import binary_collation, key_text, reflected
from pyconnect_connectors.sql.database import create_once
from pyconnect_connectors.sql.target_tables import check_names, folding_columns

LOG = logging.getLogger(__name__)

_TOPIC, _PARTITION, _EPOCH, _OFFSET = "of_topic", "of_partition", "of_epoch", "next_one"
"""Names of statement parameters, which must differ from the names of columns."""


class _Name(TypeDecorator[str]):
    """A text column for names, which compares them letter by letter."""

    impl = sa.String
    cache_ok = True

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self._length = length

    def load_dialect_impl(self, dialect: sa.Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(key_text(dialect, self._length))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionClaim:
    """A task's right to write a partition; `next_offset` is None if nothing was stored yet."""

    epoch: int
    next_offset: int | None


class OffsetTable:
    """The offsets of one connector. The caller begins and commits transactions."""

    def __init__(self, name: str, connector: str) -> None:
        if not connector:
            raise ConnectException("The config has no name, under which offsets are stored")
        schema, _, table = name.rpartition(".")
        self._connector = connector
        self._table = sa.Table(
            table,
            sa.MetaData(),
            sa.Column("connector", _Name(200), primary_key=True),
            sa.Column("topic", _Name(249), primary_key=True),
            sa.Column("kafka_partition", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("epoch", sa.BigInteger, nullable=False),
            sa.Column("next_offset", sa.BigInteger),
            schema=schema or None,
        )
        found = self._table.c
        self._advance = (
            sa.update(self._table)
            .where(
                found.connector == connector,
                found.topic == sa.bindparam(_TOPIC),
                found.kafka_partition == sa.bindparam(_PARTITION),
                found.epoch == sa.bindparam(_EPOCH),
            )
            .values(next_offset=sa.bindparam(_OFFSET))
        )

    def create(self, connection: sa.Connection) -> None:
        """Create the table if it is missing, in a transaction of its own.

        A table of an older version, in which MariaDB compares names without case, is changed. A
        row keeps its name. Connectors and topics that shared it under another spelling get rows of
        their own, and continue at the offsets of their consumer groups.
        """
        check_names(connection.dialect, self._table.name)
        create_once(connection, self._table)
        collation = binary_collation(connection.dialect)
        if collation is None:
            return
        names = [column.name for column in self._table.columns if isinstance(column.type, _Name)]
        with connection.begin():
            found = reflected(connection, self._table.name, self._table.schema)
            folding = folding_columns(connection, found, names)
        if not folding:
            return
        table = connection.dialect.identifier_preparer.format_table(self._table)
        changes = ", ".join(
            f"MODIFY {CreateColumn(self._table.columns[name]).compile(dialect=connection.dialect)}"
            for name in names
        )
        LOG.warning(
            "the table of offsets took names for equal that differ by case; it is changed",
            extra={"table": self._table.fullname, "collation": collation},
        )
        with connection.begin():
            connection.exec_driver_sql(f"ALTER TABLE {table} {changes}")

    def claim(self, connection: sa.Connection, partition: TopicPartition) -> PartitionClaim:
        """Raise the epoch, so that no other task writes this partition any more."""
        table, found, row = self._table, self._table.c, self._row(partition)
        raised = {"epoch": found.epoch + 1}
        new = {
            "connector": self._connector,
            "topic": partition.topic,
            "kafka_partition": partition.partition,
            "epoch": 1,
        }
        # The row may be missing, and another task may do the same at the same time.
        match connection.dialect.name:
            case "mysql" | "mariadb":
                # Updating a missing row would lock its gap, and the insert would deadlock.
                connection.execute(mysql.insert(table).values(new).on_duplicate_key_update(raised))
            case "postgresql" | "sqlite" as dialect:
                added = (postgresql if dialect == "postgresql" else sqlite).insert(table)
                connection.execute(
                    added.values(new).on_conflict_do_update(
                        index_elements=list(table.primary_key), set_=raised
                    )
                )
            case _:
                change = sa.update(table).where(row).values(raised)
                if connection.execute(change).rowcount == 0:
                    try:
                        with connection.begin_nested():
                            connection.execute(sa.insert(table).values(new))
                    except IntegrityError:
                        # Another task inserted the row first.
                        connection.execute(change)
        epoch, offset = connection.execute(
            sa.select(found.epoch, found.next_offset).where(row)
        ).one()
        return PartitionClaim(epoch=epoch, next_offset=offset)

    def advance(
        self,
        connection: sa.Connection,
        epochs: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
    ) -> None:
        """Store the next offsets; ConnectException if another task has taken over a partition."""
        # All transactions use one order, as claims do. A pipeline of the driver would save round
        # trips, but PostgreSQL 15 would not end a session that is idle in such a transaction.
        for partition in sorted(ends):
            row = {
                _TOPIC: partition.topic,
                _PARTITION: partition.partition,
                _EPOCH: epochs[partition],
                _OFFSET: ends[partition],
            }
            if connection.execute(self._advance, row).rowcount != 1:
                raise ConnectException(
                    f"Partition {partition} of connector {self._connector} was taken over by "
                    "another task, which writes it now"
                )

    def stored(
        self, connection: sa.Connection, partitions: Iterable[TopicPartition], *, lock: bool = False
    ) -> Mapping[TopicPartition, int | None]:
        """Return the next offsets of partitions; with `lock` no task writes them meanwhile."""
        query = sa.select(self._table.c.next_offset)
        query = query.with_for_update() if lock else query
        return {p: connection.scalar(query.where(self._row(p))) for p in partitions}

    def replace(
        self, connection: sa.Connection, partition: TopicPartition, offset: int | None
    ) -> None:
        """Set the next offset that a user asked for, and fence the task that has the partition."""
        self.claim(connection, partition)
        connection.execute(
            sa.update(self._table).where(self._row(partition)).values(next_offset=offset)
        )

    def _row(self, partition: TopicPartition) -> ColumnElement[bool]:
        found = self._table.c
        return sa.and_(
            found.connector == self._connector,
            found.topic == partition.topic,
            found.kafka_partition == partition.partition,
        )
