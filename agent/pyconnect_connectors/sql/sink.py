"""SqlSink: topics to tables of a database, each `put` in one transaction.

With exactly-once delivery the transaction holds the offsets too (see `fencing`), `open` continues
at them, and `pre_commit` reports them. When the outcome of a `put` is unknown, the task reads the
stored offsets again, and the repeated `put` leaves out stored records.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from operator import attrgetter

from sqlalchemy import Connection, Engine, Table
from sqlalchemy.exc import DBAPIError

from pyconnect_api import (
    ConnectException,
    DataException,
    RetriableException,
    SinkConnector,
    SinkRecord,
    SinkTask,
    TopicPartition,
)
from pyconnect_connectors.connectors import Attempts, ConfiguredConnector
from pyconnect_connectors.odd_values import place_of
from pyconnect_connectors.sql.database import (
    concerns_row,
    concerns_table,
    connected,
    database_errors,
    open_engine,
    reason,
)
from pyconnect_connectors.sql.fencing import OffsetTable
from pyconnect_connectors.sql.rows import Shape, StagedUpserts, Write, runs, shape_of, write_columns
from pyconnect_connectors.sql.settings import (
    FOLDING_KEYS,
    OFFSETS_TABLE,
    PK_FIELDS,
    TABLE_FORMAT,
    URL,
    InsertMode,
    SinkSettings,
    sink_config_def,
)
from pyconnect_connectors.sql.target_tables import (
    TableChanged,
    TargetTables,
    check_case,
    check_names,
    found_table,
    refuse_folding,
    refuse_without_key,
    table_name,
)
from pyconnect_connectors.sql.writing_columns import WriteColumn
from pyconnect_connectors.sql.writing_postgres import UNFIT

_PLACE = attrgetter("original_topic", "original_kafka_partition")
_AT_ONCE = "SET CONSTRAINTS ALL IMMEDIATE"
TOGETHER = 20
"""Number of records for one savepoint, after a database has refused one of many."""


class SqlSinkTask(SinkTask):
    """A task that writes rows at once, and buffers nothing between two calls."""

    def __init__(self) -> None:
        self._settings: SinkSettings
        self._engine: Engine | None = None
        self._connection: Connection | None = None
        self._staged: StagedUpserts
        self._tables: TargetTables
        self._offsets: OffsetTable | None = None
        self._epochs: dict[TopicPartition, int] = {}
        self._stored: dict[TopicPartition, int] = {}
        self._outcome_unknown = False
        self._attempts: Attempts

    def start(self, props: Mapping[str, str]) -> None:
        settings = self._settings = SinkSettings.parse(props)
        self._engine = open_engine(settings.connection, writes=True)
        self._tables = TargetTables(settings)
        self._attempts = Attempts("writing failed and is repeated", settings.connection)
        if settings.exactly_once:
            self._offsets = OffsetTable(settings.offsets_table, settings.name)

    def stop(self) -> None:
        self._disconnect()

    def open(self, partitions: Collection[TopicPartition]) -> None:
        offsets = self._offsets
        if offsets is None:
            return
        with self._repeated_by_worker("Cannot take over partitions"):
            connection = self._connected()
            offsets.create(connection)
            with connection.begin():
                # All tasks claim partitions in one order: otherwise two could wait for each other.
                claims = {p: offsets.claim(connection, p) for p in sorted(partitions)}
        for partition, claim in claims.items():
            self._epochs[partition] = claim.epoch
            if claim.next_offset is not None:
                self._stored[partition] = claim.next_offset
                self.context.offset(partition, claim.next_offset)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self._epochs.pop(partition, None)
            self._stored.pop(partition, None)

    def pre_commit(
        self, current_offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        if self._offsets is None:
            return current_offsets
        return {p: self._stored[p] for p in current_offsets if p in self._stored}

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        with self._repeated_by_worker("Cannot write to the database"):
            connection = self._connected()
            if self._outcome_unknown and self._offsets is not None:
                with connection.begin():
                    stored = self._offsets.stored(connection, sorted(self._epochs))
                self._stored.update({p: end for p, end in stored.items() if end is not None})
                records = [
                    r
                    for r in records
                    if r.original_kafka_offset
                    >= self._stored.get(
                        TopicPartition(r.original_topic, r.original_kafka_partition), 0
                    )
                ]
            ends: dict[TopicPartition, int] = {}
            # Records of a partition follow each other, so that a run needs one lookup.
            for place, run in groupby(records, _PLACE):
                *_, last = run
                ends[TopicPartition(*place)] = last.original_kafka_offset + 1
            if records:
                try:
                    self._store(connection, records, ends)
                except (DBAPIError, TableChanged) as error:
                    if isinstance(error, DBAPIError) and not concerns_table(error):
                        raise
                    self._tables.forget()
                    self._staged = StagedUpserts(connection)
                    self._store(connection, records, ends)
            self._stored.update(ends)
            self._outcome_unknown = False

    @contextmanager
    def _repeated_by_worker(self, action: str) -> Iterator[None]:
        """Have the worker repeat a failed call after the backoff, up to the last attempt."""
        with self._attempts.limited(self.context.timeout):
            try:
                with database_errors(action):
                    yield
            except RetriableException:
                self._outcome_unknown = True
                self._disconnect()
                self._tables.forget()
                raise

    def _store(
        self,
        connection: Connection,
        records: Sequence[SinkRecord],
        ends: Mapping[TopicPartition, int],
    ) -> None:
        """Write the rows of records and the offsets behind them in one transaction.

        If a row cannot be written, the others are written, and its record is reported before the
        transaction ends.
        """
        topics = {record.topic for record in records}
        try:
            prepared = self._prepared(connection, records)
            with connection.begin():
                if self._offsets is not None:
                    self._offsets.advance(connection, self._epochs, ends)
                for write in prepared:
                    write.execute(connection, self._staged)
                self._tables.check(connection, topics)
            return
        except (DataException, *UNFIT):
            pass
        except DBAPIError as error:
            if not concerns_row(error):
                raise
            if concerns_table(error):
                # The error may be one of a type: the table may have been changed since it was
                # reflected.
                self._tables.forget()
        self._staged = StagedUpserts(connection)
        for run in runs(records):
            # Tables are created and changed before the transaction.
            with suppress(DataException):
                self._target(connection, run, shape_of(run[0], self._settings))
        with connection.begin():
            if connection.dialect.name == "sqlite":
                # The driver does not begin a transaction at a savepoint.
                connection.exec_driver_sql("BEGIN")
            if self._offsets is not None:
                self._offsets.advance(connection, self._epochs, ends)
            failed = self._kept(connection, records)
            self._tables.check(connection, topics)
            reporter = self.context.errant_record_reporter() if failed else None
            if failed and reporter is None:
                raise failed[min(failed)] from None
            # The report must be durable before the offsets behind it are stored.
            reports = [reporter.report(records[n], failed[n]) for n in sorted(failed) if reporter]
            for report in reports:
                report.result()

    def _kept(
        self, connection: Connection, records: Sequence[SinkRecord]
    ) -> Mapping[int, DataException]:
        """Write as many records as possible; return the errors of the others by index.

        Deferred constraints are checked after all rows, because their errors name no row.
        """
        attempt = connection.begin_nested()
        failed = self._written_apart(connection, records)
        if not _breaks_deferred(connection):
            attempt.commit()
            return failed
        attempt.rollback()
        attempt = connection.begin_nested()
        connection.exec_driver_sql(_AT_ONCE)
        failed = self._written_apart(connection, records)
        attempt.rollback()
        safe = [record for n, record in enumerate(records) if n not in failed]
        attempt = connection.begin_nested()
        self._written_apart(connection, safe)
        # Some records only lack a later one, as a child before its parent.
        left = list(failed)
        while fit := self._fitting(connection, records, left):
            left = [number for number in left if number not in fit]
        attempt.rollback()
        found = {number: failed[number] for number in left}
        kept = [record for n, record in enumerate(records) if n not in found]
        for errors, chosen in ((found, kept), (failed, safe)):
            attempt = connection.begin_nested()
            # In the records' own order other rows may meet.
            if not self._written_apart(connection, chosen) and not _breaks_deferred(connection):
                attempt.commit()
                return errors
            attempt.rollback()
        raise RetriableException("Rows that fitted a moment ago do not fit any more")

    def _fitting(
        self, connection: Connection, records: Sequence[SinkRecord], numbers: Sequence[int]
    ) -> set[int]:
        """Write those records that break no constraint beside the rows there; return their numbers.

        Many are tried at once, and halves of them if they do not fit; the later half is first.
        """
        attempt = connection.begin_nested()
        try:
            for write in self._prepared(connection, [records[number] for number in numbers]):
                write.execute(connection, None)
            fits = not _breaks_deferred(connection)
        except (DataException, *UNFIT, DBAPIError) as error:
            if isinstance(error, DBAPIError) and not concerns_row(error):
                raise
            fits = False
        if fits:
            attempt.commit()
            return set(numbers)
        attempt.rollback()
        half = len(numbers) // 2
        if not half:
            return set()
        later = self._fitting(connection, records, numbers[half:])
        return later | self._fitting(connection, records, numbers[:half])

    def _written_apart(
        self, connection: Connection, records: Sequence[SinkRecord]
    ) -> dict[int, DataException]:
        """Write as many records as possible; return the errors of the others by index."""
        failed: dict[int, DataException] = {}
        for begin in range(0, len(records), TOGETHER):
            part = self._part_written(connection, records[begin : begin + TOGETHER])
            failed.update({begin + number: error for number, error in part.items()})
        return failed

    def _part_written(
        self, connection: Connection, records: Sequence[SinkRecord]
    ) -> Mapping[int, DataException]:
        try:
            with connection.begin_nested():
                for write in self._prepared(connection, records):
                    write.execute(connection, None)
            return {}
        except (DataException, *UNFIT, DBAPIError) as error:
            if isinstance(error, DBAPIError) and not concerns_row(error):
                raise
        failed: dict[int, DataException] = {}
        waiting: dict[int, Write] = {}
        for number, record in enumerate(records):
            try:
                (waiting[number],) = self._prepared(connection, [record])
            except (DataException, *UNFIT) as error:
                failed[number] = self._error_of(connection, record, error)
        while waiting:
            number = -1
            try:
                with connection.begin_nested():
                    for number, write in waiting.items():  # noqa: B007  which one failed
                        write.execute(connection, None)
                break
            except (*UNFIT, DBAPIError) as error:
                if number < 0 or (isinstance(error, DBAPIError) and not concerns_row(error)):
                    raise
                del waiting[number]
                failed[number] = self._error_of(connection, records[number], error)
        return failed

    def _error_of(
        self, connection: Connection, record: SinkRecord, error: Exception
    ) -> DataException:
        """Return the error of a record, without its values."""
        if isinstance(error, DataException):
            return error
        shape = shape_of(record, self._settings)
        table, columns = self._target(connection, [record], shape)
        if (odd := shape.odd_value(record, table, columns)) is not None:
            return odd
        # Drivers raise Python's own errors for values that they cannot encode.
        text = (
            reason(error)
            if isinstance(error, DBAPIError)
            else "a text that is not valid Unicode"
            if isinstance(error, UnicodeError)
            else f"a value that the driver cannot send ({type(error).__name__})"
        )
        return DataException(
            f"Cannot write to the database: {text} (table {table.fullname}, record "
            f"{place_of(record)})"
        )

    def _prepared(self, connection: Connection, records: Sequence[SinkRecord]) -> list[Write]:
        """Return the writes of the records; changes of tables are committed before the writes.

        Raise DataException or one of UNFIT for a record that has no row.
        """
        writes = []
        for run in runs(records):
            shape, mode = shape_of(run[0], self._settings), self._settings.insert_mode
            has_keys_only = shape.columns.keys() == set(shape.keys) and not shape.deletes
            if mode is InsertMode.UPDATE and has_keys_only:
                raise DataException("insert.mode=update needs fields beside those of the key")
            table, columns = self._target(connection, run, shape)
            writes.append(Write(shape, table, mode, shape.rows(run, columns)))
        return writes

    def _target(
        self, connection: Connection, run: Sequence[SinkRecord], shape: Shape
    ) -> tuple[Table, list[WriteColumn]]:
        """Return the table of a run, and its columns in the order of the shape."""
        topic = run[0].topic
        assert topic is not None
        table = self._tables.prepared(connection, topic, shape.columns, shape.keys)
        return table, write_columns(shape, table, connection, self._settings)

    def _connected(self) -> Connection:
        if self._connection is None:
            assert self._engine is not None
            self._connection = connected(self._engine)
            self._staged = StagedUpserts(self._connection)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()


def _breaks_deferred(connection: Connection) -> bool:
    """Return whether the written rows break a constraint that is deferred to the commit."""
    if connection.dialect.name != "postgresql":
        return False
    attempt = connection.begin_nested()
    try:
        connection.exec_driver_sql(_AT_ONCE)
    except DBAPIError as error:
        if not concerns_row(error):
            raise
        return True
    finally:
        # Constraints of the next rows are deferred again.
        attempt.rollback()
    return False


class SqlSinkConnector(ConfiguredConnector[SinkSettings], SinkConnector):
    """All `tasks.max` tasks have the same config; the consumer group assigns partitions to them."""

    task_type = SqlSinkTask

    def __init__(self) -> None:
        super().__init__(sink_config_def, SinkSettings, URL)

    def problems(self, settings: SinkSettings) -> list[tuple[str, str]]:
        """Return problems of names, and of tables that exist."""
        engine = open_engine(settings.connection, writes=True)
        names = [
            (TABLE_FORMAT, table_name(settings.table_format, topic)[1]) for topic in settings.topics
        ]
        found: list[tuple[str, str]] = []

        def check(key: str, rule: Callable[..., None], *given: object) -> None:
            try:
                rule(*given)
            except ConnectException as error:
                found.append((key, str(error)))

        for key, name in [*names, (OFFSETS_TABLE, settings.offsets_table.rpartition(".")[2])]:
            check(key, check_names, engine.dialect, name)
        with database_errors("Cannot look at the tables"), connected(engine) as connection:
            check(TABLE_FORMAT, check_case, connection.dialect, [name for _, name in names])
            for topic in () if found else settings.topics:
                table = found_table(connection, settings, topic)
                if table is not None:
                    keys = settings.pk_fields or table.primary_key.columns.keys()
                    check(FOLDING_KEYS, refuse_folding, connection, settings, table, keys)
                    if settings.pk_fields:
                        check(
                            PK_FIELDS, refuse_without_key, connection.dialect, settings, table, keys
                        )
        return found

    def alter_offsets(
        self, connector_config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        settings = SinkSettings.parse(connector_config)
        if not settings.exactly_once:
            return True
        table = OffsetTable(settings.offsets_table, settings.name)
        engine = open_engine(settings.connection, writes=True)
        with database_errors("Cannot change the stored offsets"), connected(engine) as connection:
            table.create(connection)
            with connection.begin():
                for partition in sorted(offsets):
                    table.replace(connection, partition, offsets[partition])
        return True
