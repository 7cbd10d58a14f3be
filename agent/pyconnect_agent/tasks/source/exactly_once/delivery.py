"""The parts of a source task whose records and offsets share transactions (KIP-618).

Kafka: ExactlyOnceWorkerSourceTask and its builder. The order matters: the producer is initialised,
which ends transactions of an older instance; then the worker is asked whether this task's configs
are still the newest; only then offsets are read.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyconnect_agent.channel import StatsReported
from pyconnect_agent.core.clients.configs import exactly_once_producer
from pyconnect_agent.core.config.connector_config import SourceTaskSettings, TransactionBoundary
from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_agent.core.transaction_boundary import (
    BoundaryPolicy,
    ConnectorBoundary,
    IntervalBoundary,
    PollBoundary,
    RequestedTransactions,
)
from pyconnect_agent.kafka.task_producer import TransactionalProducer
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.records.active_topics import ActiveTopics
from pyconnect_agent.tasks.setup.resolved_configs import TaskSetup, built
from pyconnect_agent.tasks.source.exactly_once.sender import TransactionalSender
from pyconnect_agent.tasks.source.loop import SourceLoop
from pyconnect_agent.tasks.source.offsets.stores import OffsetStores
from pyconnect_agent.tasks.task_metrics import SourceMetrics
from pyconnect_api import SourceTask, TransactionContext
from pyconnect_clients.connect_names import task_transactional_id

LOG = logging.getLogger(__name__)


class ExactlyOnceDelivery:
    """Implements `at_least_once.Delivery`."""

    def __init__(
        self,
        task: SourceTask,
        setup: TaskSetup,
        control: Control,
        *,
        metrics: SourceMetrics,
        topics: ActiveTopics,
        offsets: OffsetStores,
    ) -> None:
        worker = setup.worker.config
        assert isinstance(worker, DistributedConfig)
        settings = SourceTaskSettings.parse(setup.connector_config)
        self._control = control
        self._offsets = offsets
        overrides: Mapping[str, str | None] = setup.connector_config
        config = built(
            exactly_once_producer(
                worker,
                overrides,
                f"connector-producer-{setup.task_id}",
                task_transactional_id(worker.group_id, setup.task_id.connector, setup.task_id.task),
            )
        )
        self._producer = TransactionalProducer(config.properties, config.max_block_ms)
        boundary = _boundary(settings, worker)
        self.transaction_context: TransactionContext | None = None
        if settings.transaction_boundary is TransactionBoundary.CONNECTOR:
            requested = RequestedTransactions()
            boundary, self.transaction_context = ConnectorBoundary(requested), requested
        interval_ms = _interval_ms(settings, worker)
        limit_ms = self._producer.transaction_timeout_ms
        if isinstance(boundary, IntervalBoundary) and interval_ms >= limit_ms:
            LOG.warning(
                "transactions may expire: the interval between commits is not shorter than the"
                " producer's transaction.timeout.ms",
                extra={"interval_ms": interval_ms, "transaction_timeout_ms": limit_ms},
            )
        self.sender = TransactionalSender(
            task_id=str(setup.task_id),
            connector=setup.task_id.connector,
            task=task,
            producer=self._producer,
            boundary=boundary,
            offsets=offsets,
            topics=topics,
            metrics=metrics,
            stop_requested=self._is_stopping,
        )

    def open(self) -> bool:
        return (
            self._producer.init(self._is_stopping)
            and self._control.confirm_start()
            and self._offsets.start(self._is_stopping)
        )

    def begin(self, loop: SourceLoop) -> None:
        """Start no thread."""

    def end(self, *, failed: bool, complete: bool) -> None:
        self.sender.finish(failed=failed, complete=complete)

    def close(self, *, failed: bool) -> None:  # noqa: ARG002  an open transaction is aborted
        self._producer.close(0.0)
        self._offsets.close()

    def statistics(self) -> StatsReported:
        return StatsReported(
            last_commit_ms=self.sender.last_commit_ms,
            transaction_began_ms=self.sender.transaction_began_ms,
            queue_size=self._producer.in_flight(),
        )

    def _is_stopping(self) -> bool:
        return self._control.stopping


def _boundary(settings: SourceTaskSettings, worker: WorkerConfig) -> BoundaryPolicy:
    if settings.transaction_boundary is TransactionBoundary.INTERVAL:
        return IntervalBoundary(_interval_ms(settings, worker))
    return PollBoundary()


def _interval_ms(settings: SourceTaskSettings, worker: WorkerConfig) -> int:
    interval_ms = settings.transaction_interval_ms
    return worker.offset_flush_interval_ms if interval_ms is None else interval_ms
