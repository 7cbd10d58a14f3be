"""The config store: the config topic of distributed workers, a log in memory of standalone ones.

Kafka: KafkaConfigBackingStore, MemoryConfigBackingStore: the order of writes, and 30 seconds for
each write with its read-back. The herder, not this module, compares task configs with the stored
ones and restores references in them.

Threading: writes block and may come from any thread; `snapshot` returns the last published one.
Changes are reported on the tailing thread (in memory on the writing thread), each before `snapshot`
shows it. So the result of an effect that reads the snapshot never reaches the herder before the
changes themselves, which the herder needs: a snapshot does not show, for instance, that the same
config was written again.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pyconnect_agent.core.errors import (
    BadRequestError,
    KafkaError,
    PrivilegedRecordTooLargeError,
    RecordTooLargeError,
    RetriableKafkaError,
)
from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.internal_topics import LogRecord, config_records
from pyconnect_agent.core.internal_topics.config_snapshot import (
    ConfigSnapshot,
    ConnectorConfig,
    SessionKey,
)
from pyconnect_agent.core.internal_topics.configlog import ConfigChange, ConfigLog
from pyconnect_agent.kafka.errors import Deadline
from pyconnect_agent.kafka.log import Log, ReadRecord, log_notices
from pyconnect_agent.kafka.producer import LeaderWriter, PlainLeaderWriter

_log = logging.getLogger(__name__)

READ_WRITE_TOTAL_TIMEOUT_MS = 30_000

OnChange = Callable[[ConfigSnapshot, tuple[ConfigChange, ...]], None]
"""Called with the changes and the snapshot after them, before readers see that snapshot."""


class ConfigStore:
    """The configs in a log.

    `leader_writer` does the privileged writes; without one they are plain writes to the log.
    `record_limit`: the largest size of a record, in bytes of key and value; None without a limit.
    """

    def __init__(
        self, log: Log, leader_writer: LeaderWriter | None = None, record_limit: int | None = None
    ) -> None:
        self._log = log
        self._record_limit = record_limit
        self._leader_writer = leader_writer or PlainLeaderWriter(log.write)
        self._reader = _ConfigReader()

    def start(self, on_change: OnChange) -> None:
        """Create or check the topic, read it to its end, then tail it.

        `on_change` is called on the tailing thread with the changes and the snapshot after them,
        before `snapshot()` returns it. WorkerConfigError, WorkerStartError as `CompactedLog.start`.
        """
        self._reader.on_change = on_change
        self._log.start(self._reader)

    def stop(self) -> None:
        self._leader_writer.relinquish()
        self._log.stop()

    def snapshot(self) -> ConfigSnapshot:
        return self._reader.snapshot

    def refresh(self, timeout_ms: int) -> None:
        """Read to the present end; RetriableKafkaError on timeout."""
        self._log.read_to_end(timeout_ms)

    def claim_write_privileges(self) -> None:
        """Claim the privilege; KafkaError if the leader's producer cannot be initialised."""
        self._leader_writer.claim()

    def relinquish_write_privileges(self) -> None:
        """Release the privilege, so that the next claim fences a leader that claimed in between."""
        self._leader_writer.relinquish()

    def put_connector_config(
        self, connector: str, config: ConnectorConfig, target_state: TargetState | None
    ) -> None:
        records = [config_records.connector_config(connector, config)]
        self._check_size(f"The configuration of connector {connector}", records[0])
        if target_state is not None:
            records.insert(0, config_records.target_state(connector, target_state))
        with _failing_as("Error writing connector configuration to Kafka"):
            self._write_privileged(records)

    def remove_connector_config(self, connector: str) -> None:
        with _failing_as("Error removing connector configuration from Kafka"):
            self._write_privileged(config_records.connector_removal(connector))

    def put_task_configs(self, connector: str, configs: Sequence[ConnectorConfig]) -> None:
        """Write all task configs, then their commit, which is in a later transaction if any."""
        deadline = Deadline(READ_WRITE_TOTAL_TIMEOUT_MS)
        root_text = "Error writing root configuration to Kafka"
        with _failing_as(root_text):
            self._log.read_to_end(deadline.remaining_ms())
        if configs:
            records = [
                config_records.task_config(ConnectorTaskId(connector, number), config)
                for number, config in enumerate(configs)
            ]
            for number, record in enumerate(records):
                self._check_size(f"The configuration of task {connector}-{number}", record)
            with _failing_as("Error writing task configurations to Kafka"):
                self._leader_writer.write(records, deadline.remaining_ms())
            with _failing_as(root_text):
                self._log.read_to_end(deadline.remaining_ms())
        with _failing_as(root_text):
            self._write_privileged([config_records.tasks_commit(connector, len(configs))], deadline)

    def put_target_state(self, connector: str, target_state: TargetState) -> None:
        """Write a target state, as any worker may; it is not read back."""
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
        """Write a logger's level, as any worker may; it is not read back."""
        with _failing_as("Error writing logger level to Kafka"):
            self._write_plain(config_records.logger_level(namespace, level))

    def _check_size(self, what: str, record: LogRecord) -> None:
        size = len(record.key or b"") + len(record.value or b"")
        if self._record_limit is not None and size > self._record_limit:
            raise BadRequestError(
                f"{what} takes {size} bytes in the config topic; a record there has at most"
                f" {self._record_limit} bytes (max.request.size in the worker's properties). Let it"
                " refer to large values by a config provider."
            )

    def _write_plain(self, record: LogRecord) -> None:
        self._log.write([record], READ_WRITE_TOTAL_TIMEOUT_MS)

    def _write_privileged(
        self, records: Sequence[LogRecord], deadline: Deadline | None = None
    ) -> None:
        deadline = deadline or Deadline(READ_WRITE_TOTAL_TIMEOUT_MS)
        self._leader_writer.write(records, deadline.remaining_ms())
        self._log.read_to_end(deadline.remaining_ms())


class _ConfigReader:
    """The reader of the log. Changes before the end of the first read are not reported.

    `snapshot` is the last published one.
    """

    def __init__(self) -> None:
        self.on_change: OnChange | None = None
        self.snapshot = ConfigSnapshot()
        self._log = ConfigLog()
        self._changes: list[ConfigChange] = []
        self._caught_up = False

    def apply(self, record: ReadRecord) -> None:
        applied = self._log.apply(record.offset, record.key, record.value)
        if applied.notices:
            log_notices(_log, applied.notices)
        if self._caught_up:
            self._changes.extend(applied.changes)

    def applied(self) -> None:
        """Report the changes since the last publication, then publish the new snapshot."""
        # Each publication copies changes, which would slow down a long first read.
        if not self._caught_up:
            return
        snapshot = self._log.snapshot()
        changes, self._changes = tuple(self._changes), []
        try:
            if changes and self.on_change is not None:
                self.on_change(snapshot, changes)
        finally:
            self.snapshot = snapshot

    def caught_up(self) -> None:
        self._caught_up = True
        self.snapshot = self._log.snapshot()


@contextmanager
def _failing_as(text: str) -> Iterator[None]:
    """Replace the text of a Kafka failure with Apache's; the cause is attached and logged."""
    try:
        yield
    except (KafkaError, PrivilegedRecordTooLargeError) as exc:
        _log.error(text, extra={"reason": str(exc)})
        too_large = (
            f"{text}: a record is larger than the broker allows (max.message.bytes of the config"
            " topic). Let it refer to large values by a config provider."
        )
        if isinstance(exc, PrivilegedRecordTooLargeError):
            raise PrivilegedRecordTooLargeError(too_large) from exc
        if isinstance(exc, RecordTooLargeError):
            raise BadRequestError(too_large) from exc
        if exc.retriable:
            raise RetriableKafkaError(text) from exc
        raise KafkaError(text) from exc
