"""Builds and runs a source task (Kafka: AbstractWorkerSourceTask and the builders).

The loop and the pipeline are the same for both delivery guarantees, whose own parts are in
`source/at_least_once` and `source/exactly_once`.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from pyconnect_agent.channel import StatsReported, TopicUsed
from pyconnect_agent.core.config.connector_config import ConnectorSettings
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.in_java.segments import chain_of, compose_converted
from pyconnect_agent.tasks.life_cycle import TaskLifeCycle
from pyconnect_agent.tasks.records.active_topics import ActiveTopics
from pyconnect_agent.tasks.records.tolerance import Tolerance, tolerance_of
from pyconnect_agent.tasks.setup.plugins import TaskPlugins
from pyconnect_agent.tasks.setup.resolved_configs import TaskSetup
from pyconnect_agent.tasks.source import provenance
from pyconnect_agent.tasks.source.at_least_once.delivery import AtLeastOnceDelivery, Delivery
from pyconnect_agent.tasks.source.exactly_once.delivery import ExactlyOnceDelivery
from pyconnect_agent.tasks.source.loop import SourceLoop
from pyconnect_agent.tasks.source.offsets.own_topic import OffsetUse, offset_stores
from pyconnect_agent.tasks.source.offsets.stores import OffsetStores, WorkerOffsetReader
from pyconnect_agent.tasks.source.pipeline import Pipeline, compose, place_of, topic_creation_of
from pyconnect_agent.tasks.task_metrics import SourceMetrics
from pyconnect_agent.tasks.trace import ShownRetries
from pyconnect_agent.tasks.tracing import Tracing, tracing_of
from pyconnect_api import (
    OffsetStorageReader,
    SourceTask,
    SourceTaskContext,
    StopSignal,
    TransactionContext,
)

LOG = logging.getLogger(__name__)


class WorkerSourceTaskContext(SourceTaskContext):
    """`configs` resolves variables again at each call."""

    def __init__(
        self,
        *,
        configs: Callable[[], Mapping[str, str]],
        reader: OffsetStorageReader,
        stop_requested: StopSignal,
        transaction_context: TransactionContext | None = None,
    ) -> None:
        self._configs = configs
        self._reader = reader
        self._transaction_context = transaction_context
        self.stop_requested = stop_requested

    def configs(self) -> Mapping[str, str]:
        return self._configs()

    @property
    def offset_storage_reader(self) -> OffsetStorageReader:
        return self._reader

    @property
    def transaction_context(self) -> TransactionContext | None:
        return self._transaction_context


class SourceWork:
    """Implements `life_cycle.TaskWork`.

    `plugins` None: the task's records are converted already.
    """

    def __init__(
        self,
        task: SourceTask,
        setup: TaskSetup,
        control: Control,
        life_cycle: TaskLifeCycle,
        plugins: TaskPlugins | None,
    ) -> None:
        self._task = task
        self._setup = setup
        self._control = control
        self._life_cycle = life_cycle
        self._metrics = SourceMetrics(life_cycle.metrics)
        self._plugins = plugins
        self._initialized = False
        self._failed = False
        self._reader: WorkerOffsetReader | None = None
        self._delivery: Delivery | None = None
        self._tracing: Tracing | None = None
        self._loop: SourceLoop | None = None
        self._last_statistics: StatsReported | None = None

    def version(self) -> str | None:
        return self._task.version()

    def start(self) -> None:
        delivery = self._build()
        if not delivery.open():
            return
        assert self._reader is not None
        setup = self._setup
        context = WorkerSourceTaskContext(
            configs=setup.latest_task_config,
            reader=self._reader,
            stop_requested=self._control.stop_requested,
            transaction_context=delivery.transaction_context,
        )
        self._metrics.task.own = context.metrics
        self._initialized = True
        self._task.initialize(context)
        self._task.start(setup.task_config)

    def execute(self) -> None:
        if not self._initialized:
            # An end was asked for before there was a beginning.
            return
        assert self._loop is not None
        assert self._delivery is not None
        self._delivery.begin(self._loop)
        try:
            self._loop.run()
        except BaseException:
            self._failed = True
            raise
        finally:
            try:
                self._delivery.end(failed=self._failed, complete=self._loop.is_batch_complete)
            finally:
                # Records that the producer drops at its end were not written.
                self._last_statistics = self._statistics()

    def close(self) -> None:
        with contextlib.ExitStack() as closing:
            # In reverse: the task is closed first, then its parts, even after a failure.
            if self._plugins is not None:
                self._plugins.close_with(closing)
            if self._reader is not None:
                closing.callback(self._reader.close)
            if self._tracing is not None:
                closing.callback(self._tracing.close)
            if self._delivery is not None:
                closing.callback(self._delivery.close, failed=self._failed)
            if self._initialized:
                closing.callback(self._task.stop)

    def _build(self) -> Delivery:
        setup, control = self._setup, self._control
        tolerance = tolerance_of(
            setup.connector_config,
            task_id=str(setup.task_id),
            describe_record=lambda record: f", where source record is = {record}",
            stop_requested=control.stop_requested,
            place_of=place_of,
        )
        offsets = offset_stores(
            setup.worker.config,
            setup.task_id.connector,
            setup.connector_config,
            control,
            client=str(setup.task_id),
            use=(
                OffsetUse.EXACTLY_ONCE
                if setup.worker.config.exactly_once_source_enabled
                else OffsetUse.AT_LEAST_ONCE
            ),
            is_only_task=setup.job.task_count == 1,
        )
        self._metrics.task.errors = tolerance.counts
        self._reader = WorkerOffsetReader(setup.task_id.connector, offsets.read)
        delivery = self._delivery = self._new_delivery(tolerance, offsets)
        delivery.sender.tracing = self._tracing = tracing_of(setup)
        pipeline = self._pipeline(tolerance)
        if provenance.wanted(setup.connector_config):
            pipeline = provenance.stamped(
                pipeline, connector=setup.task_id.connector, epoch_ms=int(time.time() * 1000)
            )
        self._loop = SourceLoop(
            task=self._task,
            pipeline=pipeline,
            sender=delivery.sender,
            control=control,
            report=self._life_cycle.report,
            retries=ShownRetries(self._life_cycle.show_retries),
            metrics=self._metrics,
        )
        control.statistics = self._statistics
        return delivery

    def _pipeline(self, tolerance: Tolerance) -> Pipeline:
        setup, plugins = self._setup, self._plugins
        topics = topic_creation_of(setup.worker.config, setup.connector_config, setup.task_id)
        if plugins is None:
            return compose_converted(tolerance=tolerance, topics=topics)
        metrics = self._metrics.task
        chain = chain_of(
            plugins.stages,
            tolerance,
            ConnectorSettings.parse(setup.connector_config),
            self._control.stop_requested,
            metrics.sampling,
        )
        if chain is not None:
            metrics.stages = chain.metrics
        return compose(
            converters=plugins.converters,
            chain=chain,
            tolerance=tolerance,
            topics=topics,
        )

    def _new_delivery(self, tolerance: Tolerance, offsets: OffsetStores) -> Delivery:
        task, setup, control = self._task, self._setup, self._control
        worker = setup.worker.config
        tracks_topics = worker.topic_tracking_enable
        topics = ActiveTopics(
            lambda topic: control.send(TopicUsed(topic=topic)) if tracks_topics else None
        )
        if worker.exactly_once_source_enabled:
            return ExactlyOnceDelivery(
                task, setup, control, metrics=self._metrics, topics=topics, offsets=offsets
            )
        return AtLeastOnceDelivery(
            task,
            setup,
            control,
            tolerance=tolerance,
            metrics=self._metrics,
            topics=topics,
            offsets=offsets,
        )

    def _statistics(self) -> StatsReported:
        if self._loop is None or self._delivery is None:
            return StatsReported()
        if self._last_statistics is not None:
            return self._last_statistics
        self._loop.count_under_way()
        statistics = self._delivery.statistics()
        return replace(
            statistics,
            last_activity_ms=self._loop.last_poll_ms,
            metrics=self._metrics.values(),
            plugins=self._metrics.task.plugin_values(),
        )
