"""SqlSink: topics to tables of a database."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyconnect_api import ConnectException, SinkConnector, SinkTask, TopicPartition
from pyconnect_connectors.connectors import ConfiguredConnector
from pyconnect_connectors.sql.database import connected, database_errors, open_engine
from pyconnect_connectors.sql.definitions import (
    FOLDING_KEYS,
    OFFSETS_TABLE,
    PK_FIELDS,
    TABLE_FORMAT,
    URL,
    sink_config_def,
)
from pyconnect_connectors.sql.fencing import OffsetTable
from pyconnect_connectors.sql.settings import SinkSettings
from pyconnect_connectors.sql.sink_task import SqlSinkTask
from pyconnect_connectors.sql.target_tables import (
    check_case,
    check_names,
    found_table,
    refuse_folding,
    refuse_without_key,
    table_name,
)


class SqlSinkConnector(ConfiguredConnector[SinkSettings], SinkConnector):
    """`tasks.max` tasks of the same config; the consumer group deals partitions to them."""

    def __init__(self) -> None:
        super().__init__(sink_config_def, SinkSettings, URL)

    def problems(self, settings: SinkSettings) -> list[tuple[str, str]]:
        """Return what is wrong with names, and with tables that exist."""
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

    def task_class(self) -> type[SinkTask]:
        return SqlSinkTask

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
