"""LakeSink: topics to files or Iceberg tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyconnect_api import ConnectException, SinkConnector, SinkTask, TopicPartition
from pyconnect_connectors.connectors import ConfiguredConnector
from pyconnect_connectors.lake.commit_log import CommitLog
from pyconnect_connectors.lake.definitions import sink_config_def
from pyconnect_connectors.lake.names import CATALOG_URI, URL
from pyconnect_connectors.lake.settings import SinkSettings
from pyconnect_connectors.lake.sink_task import LakeSinkTask, check_sink
from pyconnect_connectors.lake.storage import Storage


class LakeSinkConnector(ConfiguredConnector[SinkSettings], SinkConnector):
    """`tasks.max` tasks of the same config; the consumer group deals partitions to them."""

    def __init__(self) -> None:
        super().__init__(sink_config_def, SinkSettings, URL)

    def problems(self, settings: SinkSettings) -> Iterable[tuple[str, str]]:
        try:
            check_sink(settings)
        except ConnectException as error:
            yield URL if settings.tables is None else CATALOG_URI, str(error)

    def task_class(self) -> type[SinkTask]:
        return LakeSinkTask

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
            # Without a commit the tasks begin where Kafka's consumer group is.
            log.forget_all(partition)
        return True
