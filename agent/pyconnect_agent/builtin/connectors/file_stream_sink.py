"""The task of FileStreamSink: a line per record, appended to a file or to standard output.

Layer: builtin. Kafka: FileStreamSinkTask. At-least-once: a batch may be appended again.
"""

from __future__ import annotations

import errno
import operator
import os
from collections.abc import Mapping, Sequence

from pyconnect_agent.core.apache_release import ApachesPlugin
from pyconnect_api import (
    ConfigDef,
    ConnectException,
    RetriableException,
    SinkRecord,
    SinkRecords,
    SinkTask,
)
from pyconnect_api.java_text import to_string
from pyconnect_api.key_table import define_table

FILE = "file"
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
        if not self._waits_to_be_written(records):
            lines = "\n".join([*_texts(records), ""])
            # Appended: after a rebalance, the rest of a half-written line may still be there.
            self._unwritten += lines.encode("utf-8", "replace")
            self._batch = records
        self._write()
        self._batch = ()

    def stop(self) -> None:
        if self._descriptor is not None and self._filename is not None:
            os.close(self._descriptor)
        self._descriptor = None

    def _waits_to_be_written(self, records: Sequence[SinkRecord]) -> bool:
        """Whether these very records are repeated because the last write ended within them."""
        return (
            bool(self._unwritten)
            and len(records) == len(self._batch)
            and all(map(operator.is_, records, self._batch))
        )

    def _write(self) -> None:
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


def _texts(records: Sequence[SinkRecord]) -> Sequence[str]:
    if isinstance(records, SinkRecords) and set(map(type, records.values)) == {str}:
        return records.values  # type: ignore[return-value]  # looked at
    return [
        value
        if isinstance(value := record.value, str)
        else to_string(record.value_schema, record.value)
        for record in records
    ]
