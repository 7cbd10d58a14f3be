"""Change a sink connector's offsets, which are those of its consumer group (KIP-875).

Layer: tasks. Kafka: `Worker.modifySinkConnectorOffsets`. A reset deletes the whole group; an alter
commits positions and deletes those that shall be none. Members of the group, of tasks that have not
ended yet, keep both from being done.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyconnect_agent.channel import ChangeOffsetsJob
from pyconnect_agent.core.clients.configs import connector_admin
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.core.errors import AgentError, InternalError, WorkerConfigError
from pyconnect_agent.core.offsets.changes import (
    failed_text,
    read_pairs,
    sink_offsets_asked,
    zombie_text,
)
from pyconnect_agent.kafka.deadline import Deadline
from pyconnect_agent.kafka.group_offsets import (
    GroupInUseError,
    GroupOffsets,
    deletion_arguments,
)
from pyconnect_api import SinkConnector, TopicPartition
from pyconnect_clients.connect_names import sink_group_id

LOG = logging.getLogger(__name__)


class SinkOffsetChange:
    """Implements `offset_change.OffsetChangeSteps`; `config` is resolved."""

    def __init__(
        self,
        job: ChangeOffsetsJob,
        connector: SinkConnector,
        worker: WorkerConfig,
        config: Mapping[str, str],
        *,
        deadline: Deadline,
    ) -> None:
        self._job = job
        self._connector = connector
        self._config = config
        self._deadline = deadline
        self._group = sink_group_id(job.connector, config, worker.originals)
        client_id = f"connector-worker-adminclient-{job.connector}"
        self._admin = connector_admin(worker, config, client_id)
        self._asked: dict[TopicPartition, int | None] = {}

    def collect(self) -> None:
        if self._job.offsets is not None:
            self._asked = sink_offsets_asked(read_pairs(self._job.offsets))
            if None in self._asked.values():
                self._check_deletion()
            return
        try:
            committed = self._offsets().committed()
        except AgentError as exc:
            self._log(exc)
            raise InternalError(
                "Failed to list offsets prior to resetting offsets for sink connector"
                f" {self._job.connector}"
            ) from exc
        self._asked = {TopicPartition(found.topic, found.partition): None for found in committed}

    def ask_connector(self) -> bool:
        return self._connector.alter_offsets(dict(self._config), dict(self._asked))

    def write(self) -> None:
        if any(offset is not None and offset < 0 for offset in self._asked.values()):
            raise InternalError(failed_text(self._job.connector, "sink"))
        verb, what = ("reset", " sink") if self._job.offsets is None else ("alter", "")
        try:
            self._write()
        except GroupInUseError as exc:
            self._log(exc)
            members = f" Members of group {self._group}: {exc.members}." if exc.members else ""
            raise InternalError(zombie_text(self._job.connector, verb) + members) from exc
        except AgentError as exc:
            self._log(exc)
            raise InternalError(
                f"Failed to {verb} consumer group offsets for{what} connector {self._job.connector}"
            ) from exc

    def _check_deletion(self) -> None:
        """Refuse to delete single offsets if that is impossible, before anything is changed."""
        try:
            deletion_arguments(self._admin)
        except WorkerConfigError as exc:
            raise InternalError(
                f"Failed to alter consumer group offsets for connector {self._job.connector}:"
                f" single offsets cannot be deleted as its admin client connects, {exc}."
                " Nothing was changed; all can be reset, and each can be set to a position"
            ) from exc

    def _write(self) -> None:
        changes = self._offsets()
        if self._job.offsets is None:
            changes.delete_group()
            return
        positions = {found: offset for found, offset in self._asked.items() if offset is not None}
        # Both are tried, as in Kafka Connect; a request that failed in part can be repeated.
        failure: AgentError | None = None
        try:
            changes.commit(positions)
        except AgentError as exc:
            failure = exc
        changes.delete([found for found, offset in self._asked.items() if offset is None])
        if failure is not None:
            raise failure

    def _offsets(self) -> GroupOffsets:
        return GroupOffsets(self._admin, self._group, self._deadline)

    def _log(self, exc: AgentError) -> None:
        LOG.error("group offsets could not be changed", extra={"reason": exc.message})
