"""LakeSink: topics to files or Iceberg tables; it commits consumer offsets after rows are stored.

Before partitions are closed (`is_closing`, KIP-275) the task writes their buffered rows; otherwise
their next owner would read them again.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

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
from pyconnect_connectors.lake.commit_log import CommitLog, directory_of
from pyconnect_connectors.lake.file_target import FileTarget
from pyconnect_connectors.lake.partitioners import path_template
from pyconnect_connectors.lake.settings import (
    CATALOG_URI,
    NULLS,
    URL,
    SinkSettings,
    sink_config_def,
)
from pyconnect_connectors.lake.storage import Storage


def check_sink(settings: SinkSettings) -> None:
    """Reach the sink's target; ConfigException or ConnectException if that fails."""
    path_template(settings.files.path_format)
    if settings.tables is not None:
        from pyconnect_connectors.lake.catalogs import catalog_errors, open_catalog

        with catalog_errors("Cannot reach the catalog"):
            open_catalog(settings.tables).list_namespaces()
        return
    storage = Storage.open(settings.location, writes=True)
    probe = f"{directory_of(settings.files.topics_dir, settings.name)}/probe"
    storage.replace(probe, b"")
    if settings.exactly_once and storage.create(probe, b""):
        raise ConnectException(
            "The storage overwrites a file although it was asked not to: conditional writes "
            "(If-None-Match) are missing. Use delivery.guarantee=at-least-once"
        )


LOG = logging.getLogger(__name__)
_NO_VALUE = f"The record has no value; {NULLS}=ignore would leave it out"


class Target(Protocol):
    """Files or tables. Methods that raise RetriableException may be called again."""

    def open(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Take partitions; return the offsets that the target knows of them."""

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Drop the buffered rows of partitions."""

    def add(self, records: Sequence[SinkRecord]) -> None:
        """Take records, except those that it took before.

        Raise DataException for a record that cannot be written; no record after it was taken.
        """

    def skip(self, record: SinkRecord) -> None:
        """Note that the target must not write a record, the next of its partition."""

    def write_due(self) -> None:
        """Write the rows that are due by the clock."""

    def finish(self, partitions: Collection[TopicPartition]) -> None:
        """Write all buffered rows of partitions."""

    def next_offset(self, partition: TopicPartition) -> int | None:
        """Return the offset before which every record is stored, None if that is not known."""

    def take_rewinds(self) -> Mapping[TopicPartition, int]:
        """Return, once, the offsets of partitions to which another task has written."""


class LakeSinkTask(SinkTask):
    """A task that writes to one target."""

    def __init__(self) -> None:
        self._settings: SinkSettings
        self._target: Target
        self._attempts: Attempts
        self._is_checked = False

    def start(self, props: Mapping[str, str]) -> None:
        settings = self._settings = SinkSettings.parse(props)
        if settings.tables is None:
            self._target = FileTarget(settings, Storage.open(settings.location, writes=True))
        else:
            # Only tasks that write tables import pyiceberg.
            from pyconnect_connectors.lake.table_target import TableTarget

            self._target = TableTarget(settings)
        self._attempts = Attempts("writing failed and is repeated", settings.location)

    def stop(self) -> None:
        """Do nothing: the task holds no open file."""

    def open(self, partitions: Collection[TopicPartition]) -> None:
        with self._attempts.limited(self.context.timeout):
            if not self._is_checked:
                check_sink(self._settings)
                self._is_checked = True
            found = self._target.open(partitions)
        for partition, offset in found.items():
            self.context.offset(partition, offset)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self._target.close(partitions)

    def put(self, records: Sequence[SinkRecord]) -> None:
        with self._attempts.limited(self.context.timeout):
            self._add(records)
            self._target.write_due()
        for partition, offset in self._target.take_rewinds().items():
            self.context.offset(partition, offset)

    def pre_commit(
        self, current_offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        if self.context.is_closing:
            try:
                self._target.finish(current_offsets)
            except RetriableException as error:
                LOG.warning("rows are left to the next owner", extra={"reason": str(error)})
        found = {p: self._target.next_offset(p) for p in current_offsets}
        return {
            p: min(offset, current_offsets[p]) for p, offset in found.items() if offset is not None
        }

    def _add(self, records: Sequence[SinkRecord]) -> None:
        """Add records, and report those that cannot be written."""
        try:
            if not self._settings.ignores_nulls and any([r.value is None for r in records]):  # noqa: C419  hot
                raise DataException(_NO_VALUE)
            self._target.add(records)
        except DataException as error:
            reporter = self.context.errant_record_reporter()
            if reporter is None:
                raise
            if len(records) > 1:
                # Halves find the bad record; the target leaves out records that it took before.
                half = len(records) // 2
                self._add(records[:half])
                self._add(records[half:])
                return
            # The report must be durable before the offset behind it is stored.
            reporter.report(records[0], error).result()
            self._target.skip(records[0])


class LakeSinkConnector(ConfiguredConnector[SinkSettings], SinkConnector):
    """All `tasks.max` tasks have the same config; the consumer group assigns partitions to them."""

    task_type = LakeSinkTask

    def __init__(self) -> None:
        super().__init__(sink_config_def, SinkSettings, URL)

    def problems(self, settings: SinkSettings) -> Iterable[tuple[str, str]]:
        try:
            check_sink(settings)
        except ConnectException as error:
            yield URL if settings.tables is None else CATALOG_URI, str(error)

    def alter_offsets(
        self, connector_config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        settings = SinkSettings.parse(connector_config)
        if not settings.exactly_once:
            return True
        if settings.tables is not None:
            from pyconnect_connectors.lake.table_target import replace_offsets

            replace_offsets(settings, offsets)
            return True
        storage = Storage.open(settings.location, writes=True)
        log = CommitLog(storage, settings.files.topics_dir, settings.name)
        for partition in offsets:
            # Without a commit the tasks begin at the consumer group's offset.
            log.forget_all(partition)
        return True
