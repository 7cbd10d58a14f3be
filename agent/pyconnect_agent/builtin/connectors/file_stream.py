"""FileStreamSource and FileStreamSink: lines of a file to a topic and back.

Kafka: `org.apache.kafka.connect.file`, whose class names are aliases of these. Differences, all on
purpose: positions count bytes (Kafka counts characters but skips bytes), buffered lines are not
held back at a batch's end, truncation is noticed, write errors are not swallowed. FileStreamSink
delivers at least once: a batch may be appended again.
"""

from __future__ import annotations

import errno
import operator
import os
from collections.abc import Mapping, Sequence

from pyconnect_agent.builtin.connectors.file_stream_source import (
    FILE,
    FILENAME_FIELD,
    POSITION_FIELD,
    FileStreamSourceTask,
    source_config_def,
)
from pyconnect_agent.core.plugin_catalog import ApachesPlugin
from pyconnect_api import (
    ConfigDef,
    ConnectException,
    ConnectorTransactionBoundaries,
    ExactlyOnceSupport,
    RetriableException,
    SinkConnector,
    SinkRecord,
    SinkRecords,
    SinkTask,
    SourceConnector,
    TopicPartition,
)
from pyconnect_api.configdef import define_table
from pyconnect_api.java_text import to_string

STANDARD_OUTPUT = 1
RETRY_MS = 1_000
_TABLE = """
file  STRING  HIGH  ~
    Destination filename. If not specified, the standard output will be used. Delivery is
    at-least-once: after a failure, lines may be appended again. LakeSink writes files exactly once.
"""

TEMPORARY_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EAGAIN, errno.EINTR, errno.ENOMEM})


def sink_config_def() -> ConfigDef:
    """The settings of the sink connector."""
    return define_table(ConfigDef(), _TABLE)


class FileStreamSinkTask(ApachesPlugin, SinkTask):
    """Appends to one file; tasks that share it mix whole lines, as each `put` is one write."""

    java_name = "org.apache.kafka.connect.file.FileStreamSinkTask"

    def __init__(self) -> None:
        self._filename: str | None = None
        self._descriptor: int | None = None
        self._unwritten = b""
        self._batch: Sequence[SinkRecord] = ()

    def start(self, props: Mapping[str, str]) -> None:
        config = sink_config_def().parse(props)
        self._filename = None if config[FILE] is None else str(config[FILE])
        if self._filename is None:
            self._descriptor = STANDARD_OUTPUT
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            self._descriptor = os.open(self._filename, flags, 0o666)
        except OSError as exc:
            raise ConnectException(
                f"Couldn't find or create file '{self._filename}' for FileStreamSinkTask"
            ) from exc

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        # The very same records are repeated when the last write ended within them.
        is_repeated = (
            bool(self._unwritten)
            and len(records) == len(self._batch)
            and all(map(operator.is_, records, self._batch))
        )
        if not is_repeated:
            lines = "\n".join([*_texts(records), ""])
            # Appended: after a rebalance, the rest of a half-written line may still be there.
            self._unwritten += lines.encode("utf-8", "replace")
            self._batch = records
        assert self._descriptor is not None
        while self._unwritten:
            try:
                written = os.write(self._descriptor, self._unwritten)
            except OSError as exc:
                target = self._filename or "standard output"
                message = f"Failed to write to {target}: {exc.strerror}"
                if exc.errno in TEMPORARY_ERRORS:
                    self.context.timeout(RETRY_MS)
                    raise RetriableException(message) from exc
                raise ConnectException(message) from exc
            self._unwritten = self._unwritten[written:]
        self._batch = ()

    def stop(self) -> None:
        if self._descriptor is not None and self._filename is not None:
            os.close(self._descriptor)
        self._descriptor = None


def _texts(records: Sequence[SinkRecord]) -> Sequence[str]:
    if isinstance(records, SinkRecords) and set(map(type, records.values)) == {str}:
        return records.values  # type: ignore[return-value]  # looked at
    return [
        value
        if isinstance(value := record.value, str)
        else to_string(record.value_schema, record.value)
        for record in records
    ]


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
            if offset is None:
                continue  # anything may be forgotten: so can garbage
            if POSITION_FIELD not in offset:
                raise ConnectException(
                    f"Offset objects should either be null or contain the key '{POSITION_FIELD}'"
                )
            value = f"The value for the '{POSITION_FIELD}' key in the offset"
            position = offset[POSITION_FIELD]
            if not isinstance(position, int) or isinstance(position, bool) or position >= 1 << 63:
                raise ConnectException(f"{value} is expected to be a Long value")
            if position < 0:
                raise ConnectException(f"{value} should be a non-negative value")
            if partition is None:
                raise ConnectException("Partition objects cannot be null")
            if FILENAME_FIELD not in partition:
                raise ConnectException(
                    f"Partition objects should contain the key '{FILENAME_FIELD}'"
                )
        return True


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
