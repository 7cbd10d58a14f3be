"""Config stores: the config topic of distributed workers, memory for standalone ones.

Layer: stores. Kafka: KafkaConfigBackingStore, MemoryConfigBackingStore: the order of writes, and 30
seconds for each write with its read-back. The herder, not this module, compares task configs with
the stored ones and restores references in them.

Threading: writes block and may come from any thread; `snapshot` returns the last published one.
Changes are reported on the tailing thread (in memory on the writing thread), each before `snapshot`
shows it. So the result of an effect that reads the snapshot never reaches the herder before the
changes themselves, which the herder needs: a snapshot does not show, for instance, that the same
config was written again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pyconnect_agent.core.errors import KafkaError, RetriableKafkaError
from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.internal_topics import config_records
from pyconnect_agent.core.internal_topics.config_snapshot import (
    ConfigSnapshot,
    ConnectorConfig,
    SessionKey,
)
from pyconnect_agent.core.internal_topics.configlog import ConfigChange, ConfigLog
from pyconnect_agent.core.internal_topics.log_record import LogRecord
from pyconnect_agent.kafka.deadline import Deadline
from pyconnect_agent.kafka.log import Log, ReadRecord
from pyconnect_agent.kafka.notices import log_notices
from pyconnect_agent.kafka.producer import LeaderWriter, PlainLeaderWriter

_log = logging.getLogger(__name__)

READ_WRITE_TOTAL_TIMEOUT_MS = 30_000

OnChange = Callable[[ConfigSnapshot, tuple[ConfigChange, ...]], None]
"""Called with changes and the snapshot right after them, before readers see that snapshot."""


class _PublishedConfigs:
    """The reducer, and the snapshot that readers see until the next publication."""

    def __init__(self) -> None:
        self.snapshot = ConfigSnapshot()
        self._log = ConfigLog()
        self._changes: list[ConfigChange] = []

    @property
    def offset(self) -> int:
        return self._log.offset

    def apply(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        applied = self._log.apply(offset, key, value)
        if applied.notices:
            log_notices(_log, applied.notices)
        self._changes.extend(applied.changes)

    def publish(self, report: OnChange | None = None) -> None:
        """Report the changes since the last publication, then show what was applied."""
        snapshot = self._log.snapshot()
        changes, self._changes = tuple(self._changes), []
        try:
            if changes and report is not None:
                report(snapshot, changes)
        finally:
            self.snapshot = snapshot


class KafkaConfigStore:
    """The config topic. Implements `ports.ConfigStore`.

    `leader_writer` does the privileged writes; without one they are plain writes to the log.
    """

    def __init__(self, log: Log, leader_writer: LeaderWriter | None = None) -> None:
        self._log = log
        self._leader_writer = leader_writer or PlainLeaderWriter(log.write)
        self._published = _PublishedConfigs()
        self._reader = _ConfigReader(self._published)

    def start(self, on_change: OnChange) -> None:
        """See `ports.ConfigStore`; WorkerConfigError, WorkerStartError as `CompactedLog.start`."""
        self._reader.on_change = on_change
        self._log.start(self._reader)

    def stop(self) -> None:
        self._leader_writer.relinquish()
        self._log.stop()

    def snapshot(self) -> ConfigSnapshot:
        return self._published.snapshot

    def refresh(self, timeout_ms: int) -> None:
        self._log.read_to_end(timeout_ms)

    def claim_write_privileges(self) -> None:
        """Claim the privileges; KafkaError if the leader's producer cannot be initialised."""
        self._leader_writer.claim()

    def relinquish_write_privileges(self) -> None:
        """Release the privileges, so that the next claim fences the leader in between."""
        self._leader_writer.relinquish()

    def put_connector_config(
        self, connector: str, config: ConnectorConfig, target_state: TargetState | None
    ) -> None:
        records = [config_records.connector_config(connector, config)]
        if target_state is not None:
            records.insert(0, config_records.target_state(connector, target_state))
        with _failing_as("Error writing connector configuration to Kafka"):
            self._write_privileged(records)

    def remove_connector_config(self, connector: str) -> None:
        with _failing_as("Error removing connector configuration from Kafka"):
            self._write_privileged(config_records.connector_removal(connector))

    def put_task_configs(self, connector: str, configs: Sequence[ConnectorConfig]) -> None:
        """Write all task configs, then, in a later transaction if any, the commit that counts."""
        deadline = Deadline(READ_WRITE_TOTAL_TIMEOUT_MS)
        root_text = "Error writing root configuration to Kafka"
        with _failing_as(root_text):
            self._log.read_to_end(deadline.remaining_ms())
        if configs:
            records = [
                config_records.task_config(ConnectorTaskId(connector, number), config)
                for number, config in enumerate(configs)
            ]
            with _failing_as("Error writing task configurations to Kafka"):
                self._leader_writer.write(records, deadline.remaining_ms())
            with _failing_as(root_text):
                self._log.read_to_end(deadline.remaining_ms())
        with _failing_as(root_text):
            self._write_privileged([config_records.tasks_commit(connector, len(configs))], deadline)

    def put_target_state(self, connector: str, target_state: TargetState) -> None:
        """Any worker may; not read back."""
        with _failing_as("Error writing target state to Kafka"):
            self._write_plain(config_records.target_state(connector, target_state))

    def put_session_key(self, session_key: SessionKey) -> None:
        with _failing_as("Error writing session key to Kafka"):
            self._write_privileged([config_records.session_key(session_key)])

    def put_restart_request(
        self, connector: str, *, only_failed: bool, include_tasks: bool
    ) -> None:
        request = (
            f"restart request for {{connectorName='{connector}', "
            f"onlyFailed={str(only_failed).lower()}, includeTasks={str(include_tasks).lower()}}}"
        )
        record = config_records.restart_request(
            connector, only_failed=only_failed, include_tasks=include_tasks
        )
        with _failing_as(f"Error writing {request} to Kafka"):
            self._write_privileged([record])

    def put_task_count_record(self, connector: str, task_count: int) -> None:
        with _failing_as("Error writing task count record to Kafka"):
            self._write_privileged([config_records.task_count_record(connector, task_count)])

    def put_logger_level(self, namespace: str, level: str) -> None:
        """Any worker may; not read back."""
        with _failing_as("Error writing logger level to Kafka"):
            self._write_plain(config_records.logger_level(namespace, level))

    def _write_plain(self, record: LogRecord) -> None:
        self._log.write([record], READ_WRITE_TOTAL_TIMEOUT_MS)

    def _write_privileged(
        self, records: Sequence[LogRecord], deadline: Deadline | None = None
    ) -> None:
        deadline = deadline or Deadline(READ_WRITE_TOTAL_TIMEOUT_MS)
        self._leader_writer.write(records, deadline.remaining_ms())
        self._log.read_to_end(deadline.remaining_ms())


class _ConfigReader:
    """The reader of the log. Changes before the end of the first read are not reported."""

    def __init__(self, published: _PublishedConfigs) -> None:
        self.on_change: OnChange | None = None
        self._published = published
        self._caught_up = False

    def apply(self, record: ReadRecord) -> None:
        self._published.apply(record.offset, record.key, record.value)

    def applied(self) -> None:
        # Each publication copies changes, which would slow a long first read down.
        if self._caught_up:
            self._published.publish(self.on_change)

    def caught_up(self) -> None:
        self._published.publish()
        self._caught_up = True


class MemoryConfigStore:
    """Configs of a standalone worker, gone with its process. Implements `ports.ConfigStore`.

    `on_change` is called before a write returns and must not write itself.
    """

    def __init__(self) -> None:
        self._published = _PublishedConfigs()
        self._lock = threading.RLock()
        self._on_change: OnChange | None = None

    def start(self, on_change: OnChange) -> None:
        self._on_change = on_change

    def stop(self) -> None:
        self._on_change = None

    def snapshot(self) -> ConfigSnapshot:
        return self._published.snapshot

    def refresh(self, timeout_ms: int) -> None:
        """Do nothing: writes are visible when they return."""

    def claim_write_privileges(self) -> None:
        """There is no other writer."""

    def relinquish_write_privileges(self) -> None:
        """There is no other writer."""

    def put_connector_config(
        self, connector: str, config: ConnectorConfig, target_state: TargetState | None
    ) -> None:
        records = [config_records.connector_config(connector, config)]
        if target_state is not None:
            records.insert(0, config_records.target_state(connector, target_state))
        self._write(records)

    def remove_connector_config(self, connector: str) -> None:
        self._write(config_records.connector_removal(connector))

    def put_task_configs(self, connector: str, configs: Sequence[ConnectorConfig]) -> None:
        records = [
            config_records.task_config(ConnectorTaskId(connector, number), config)
            for number, config in enumerate(configs)
        ]
        self._write([*records, config_records.tasks_commit(connector, len(configs))])

    def put_target_state(self, connector: str, target_state: TargetState) -> None:
        self._write([config_records.target_state(connector, target_state)])

    def put_session_key(self, session_key: SessionKey) -> None:
        self._write([config_records.session_key(session_key)])

    def put_restart_request(
        self, connector: str, *, only_failed: bool, include_tasks: bool
    ) -> None:
        self._write(
            [
                config_records.restart_request(
                    connector, only_failed=only_failed, include_tasks=include_tasks
                )
            ]
        )

    def put_task_count_record(self, connector: str, task_count: int) -> None:
        self._write([config_records.task_count_record(connector, task_count)])

    def put_logger_level(self, namespace: str, level: str) -> None:
        self._write([config_records.logger_level(namespace, level)])

    def _write(self, records: Sequence[LogRecord]) -> None:
        with self._lock:
            for record in records:
                offset = max(0, self._published.offset)
                self._published.apply(offset, record.key, record.value)
            # Under the lock, so that changes are reported in the order of the writes.
            self._published.publish(self._on_change)


@contextmanager
def _failing_as(text: str) -> Iterator[None]:
    """Replace the text of a Kafka failure by Apache's; the cause is attached and logged."""
    try:
        yield
    except KafkaError as exc:
        _log.error(text, extra={"reason": str(exc)})
        if exc.retriable:
            raise RetriableKafkaError(text) from exc
        raise KafkaError(text) from exc
