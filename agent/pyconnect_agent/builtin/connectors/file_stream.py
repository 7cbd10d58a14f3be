"""FileStreamSource and FileStreamSink: lines of a file to a topic and back.

Layer: builtin. Kafka: `org.apache.kafka.connect.file`, whose class names are aliases of these.
Differences, all on purpose: positions count bytes (Kafka counts characters but skips bytes),
buffered lines are not held back at a batch's end, truncation is noticed, write errors are not
swallowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyconnect_agent.builtin.connectors.file_stream_sink import (
    FileStreamSinkTask,
    sink_config_def,
)
from pyconnect_agent.builtin.connectors.file_stream_source import (
    FILE,
    FILENAME_FIELD,
    POSITION_FIELD,
    FileStreamSourceTask,
    source_config_def,
)
from pyconnect_agent.core.apache_release import ApachesPlugin
from pyconnect_api import (
    ConfigDef,
    ConnectException,
    ConnectorTransactionBoundaries,
    ExactlyOnceSupport,
    SinkConnector,
    SourceConnector,
    TopicPartition,
)


class FileStreamSourceConnector(ApachesPlugin, SourceConnector):
    """One task, whose config is the connector's."""

    task_type = FileStreamSourceTask

    def start(self, props: Mapping[str, str]) -> None:
        source_config_def().parse(props)
        super().start(props)

    def config(self) -> ConfigDef:
        return source_config_def()

    def exactly_once_support(
        self, connector_configs: Mapping[str, str | None]
    ) -> ExactlyOnceSupport:
        config = source_config_def().parse(connector_configs)
        return ExactlyOnceSupport.SUPPORTED if config[FILE] else ExactlyOnceSupport.UNSUPPORTED

    def can_define_transaction_boundaries(
        self, connector_configs: Mapping[str, str | None]
    ) -> ConnectorTransactionBoundaries:
        return ConnectorTransactionBoundaries.UNSUPPORTED

    def alter_offsets(
        self,
        connector_config: Mapping[str, str],
        offsets: Sequence[tuple[Mapping[str, object] | None, Mapping[str, object] | None]],
    ) -> bool:
        if not source_config_def().parse(connector_config)[FILE]:
            raise ConnectException(
                f"Offsets cannot be modified if the '{FILE}' configuration is unspecified. "
                "This is because stdin is used for input and offsets are not tracked."
            )
        for partition, offset in offsets:
            # Anything may be forgotten: so can garbage.
            if offset is not None:
                _check_offset(partition, offset)
        return True


def _check_offset(partition: Mapping[str, object] | None, offset: Mapping[str, object]) -> None:
    if POSITION_FIELD not in offset:
        raise ConnectException(
            f"Offset objects should either be null or contain the key '{POSITION_FIELD}'"
        )
    position = offset[POSITION_FIELD]
    if not isinstance(position, int) or isinstance(position, bool) or position >= 1 << 63:
        raise ConnectException(
            f"The value for the '{POSITION_FIELD}' key in the offset is expected to be a Long value"
        )
    if position < 0:
        raise ConnectException(
            f"The value for the '{POSITION_FIELD}' key in the offset should be a non-negative value"
        )
    if partition is None:
        raise ConnectException("Partition objects cannot be null")
    if FILENAME_FIELD not in partition:
        raise ConnectException(f"Partition objects should contain the key '{FILENAME_FIELD}'")


class FileStreamSinkConnector(ApachesPlugin, SinkConnector):
    """`tasks.max` tasks of the same config, all appending to one file.

    At-least-once: a task that is killed has appended lines whose offsets were not committed, and
    its successor appends them again. LakeSink writes each record to files once.
    """

    task_type = FileStreamSinkTask

    def start(self, props: Mapping[str, str]) -> None:
        sink_config_def().parse(props)
        super().start(props)

    def config(self) -> ConfigDef:
        return sink_config_def()

    def alter_offsets(
        self, connector_config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        # Lines already written stay in the file whatever the offsets.
        return True
