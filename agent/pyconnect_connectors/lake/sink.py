"""LakeSink: topics to files or Iceberg tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyconnect_api import Config, ConfigDef, SinkConnector, SinkTask, TopicPartition
from pyconnect_connectors import version
from pyconnect_connectors.lake.commit_log import CommitLog
from pyconnect_connectors.lake.definitions import sink_config_def
from pyconnect_connectors.lake.settings import SinkSettings
from pyconnect_connectors.lake.sink_task import LakeSinkTask
from pyconnect_connectors.lake.storage import Storage
from pyconnect_connectors.lake.validation import check_sink, validated


class LakeSinkConnector(SinkConnector):
    """`tasks.max` tasks of the same config; the consumer group deals partitions to them."""

    def __init__(self) -> None:
        self._props: Mapping[str, str] = {}

    def version(self) -> str:
        return version()

    def config(self) -> ConfigDef:
        return sink_config_def()

    def validate(self, connector_configs: Mapping[str, str | None]) -> Config:
        return validated(sink_config_def(), connector_configs, SinkSettings.parse, check_sink)

    def task_class(self) -> type[SinkTask]:
        return LakeSinkTask

    def start(self, props: Mapping[str, str]) -> None:
        SinkSettings.parse(props)
        self._props = props

    def stop(self) -> None:
        """Nothing runs in the background."""

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._props] * max_tasks

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
