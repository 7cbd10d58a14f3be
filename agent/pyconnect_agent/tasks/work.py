"""The work of source and sink tasks, put together from its parts.

Kafka: AbstractWorkerSourceTask, WorkerSinkTask and their builders. Both delivery guarantees share
the loop and the pipeline of sources. `plugins` is None for a task in a Java process, which converts
its records.
"""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyconnect_agent.channel.reports import StatsReported, TopicUsed
from pyconnect_agent.core.clients.configs import sink_consumer
from pyconnect_agent.core.config.connector_checks import TOPICS_REGEX, check_sink_config, topics_of
from pyconnect_agent.core.config.connector_config import ConnectorSettings
from pyconnect_agent.kafka.task_consumer import TaskConsumer
from pyconnect_agent.tasks.control import ActiveTopics, Control
from pyconnect_agent.tasks.in_java.segments import chain_of, compose_converted
from pyconnect_agent.tasks.in_java.sink_task import JavaSinkTask, compose_unconverted
from pyconnect_agent.tasks.life_cycle import TaskLifeCycle
from pyconnect_agent.tasks.plugins import TaskPlugins
from pyconnect_agent.tasks.records import Chain, Tolerance, tolerance_of
from pyconnect_agent.tasks.sink.context import WorkerSinkTaskContext
from pyconnect_agent.tasks.sink.dead_letters import SinkErrors
from pyconnect_agent.tasks.sink.loop import SinkLoop
from pyconnect_agent.tasks.sink.pipeline import Convert, Intake, compose_conversion
from pyconnect_agent.tasks.source import provenance
from pyconnect_agent.tasks.source.at_least_once import AtLeastOnceDelivery
from pyconnect_agent.tasks.source.exactly_once import ExactlyOnceDelivery
from pyconnect_agent.tasks.source.loop import Delivery, SourceLoop
from pyconnect_agent.tasks.source.offsets import (
    OffsetStores,
    OffsetUse,
    WorkerOffsetReader,
    offset_stores,
)
from pyconnect_agent.tasks.source.pipeline import Pipeline, compose, place_of, topic_creation_of
from pyconnect_agent.tasks.task_metrics import SinkMetrics, SourceMetrics, TaskMetrics
from pyconnect_agent.tasks.trace import ShownRetries
from pyconnect_agent.tasks.tracing import Tracing, tracing_of
from pyconnect_agent.tasks.worker_view import TaskSetup, built
from pyconnect_api import (
    OffsetStorageReader,
    SinkTask,
    SourceTask,
    SourceTaskContext,
    StopSignal,
    TopicPartition,
    TransactionContext,
)

MAX_POLL_RECORDS = 500
"""Java's default of `max.poll.records`."""


def _chain(
    plugins: TaskPlugins,
    tolerance: Tolerance,
    setup: TaskSetup,
    control: Control,
    metrics: TaskMetrics,
) -> Chain | None:
    settings = ConnectorSettings.parse(setup.connector_config)
    chain = chain_of(plugins.stages, tolerance, settings, control.stop_requested, metrics.sampling)
    if chain is not None:
        metrics.stages = chain.metrics
    return chain


class WorkerSourceTaskContext(SourceTaskContext):
    """The context of a source task; `configs` resolves variables again at each call."""

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
    """The work of a source task, as a `life_cycle.TaskWork`."""

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
            # The worker asked for a stop before the task was started.
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
                # Counted at the end, as records that the producer drops at its end were not
                # written.
                self._last_statistics = self._statistics()

    def close(self) -> None:
        with contextlib.ExitStack() as closing:
            # Callbacks run in reverse: the task is closed first, then its parts, even after a
            # failure.
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
        chain = _chain(plugins, tolerance, setup, self._control, self._metrics.task)
        return compose(
            converters=plugins.converters, chain=chain, tolerance=tolerance, topics=topics
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


class SinkWork:
    """The work of a sink task (`life_cycle.TaskWork`); also the consumer's rebalance listener."""

    def __init__(
        self,
        task: SinkTask,
        setup: TaskSetup,
        control: Control,
        life_cycle: TaskLifeCycle,
        plugins: TaskPlugins | None,
    ) -> None:
        self._task = task
        self._setup = setup
        self._control = control
        self._life_cycle = life_cycle
        self._plugins = plugins
        self._topics = ActiveTopics(lambda topic: control.send(TopicUsed(topic=topic)))
        self._errors: SinkErrors | None = None
        self._metrics: SinkMetrics | None = None
        self._consumer: TaskConsumer | None = None
        self._loop: SinkLoop | None = None
        self._tracing: Tracing | None = None
        self._started = False

    def version(self) -> str | None:
        return self._task.version()

    def start(self) -> None:
        setup = self._setup
        check_sink_config(setup.task_config, setup.worker.config)
        context = self._build()
        assert self._consumer is not None
        topics = topics_of(setup.task_config)
        if topics is None:
            self._consumer.subscribe_pattern(setup.task_config[TOPICS_REGEX])
        else:
            self._consumer.subscribe(topics)
        context.connect(self._consumer)
        self._life_cycle.metrics.own = context.metrics
        self._started = True
        self._task.initialize(context)
        self._task.start(setup.task_config)

    def execute(self) -> None:
        assert self._loop is not None
        self._loop.run()

    def close(self) -> None:
        with contextlib.ExitStack() as closing:
            # Callbacks run in reverse: the task is closed first, then its parts, even after a
            # failure.
            if self._plugins is not None:
                self._plugins.close_with(closing)
            if self._errors is not None:
                closing.callback(self._errors.close)
            if self._tracing is not None:
                closing.callback(self._tracing.close)
            if self._consumer is not None:
                closing.callback(self._consumer.close)
            if self._loop is not None:
                closing.callback(self._loop.task_stopped)
            if self._started:
                closing.callback(self._task.stop)

    def on_assigned(self, positions: Mapping[TopicPartition, int]) -> None:
        assert self._loop is not None
        self._loop.on_assigned(positions)

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        assert self._loop is not None
        self._loop.on_revoked(partitions)

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        assert self._loop is not None
        self._loop.on_lost(partitions)

    def _build(self) -> WorkerSinkTaskContext:
        setup, control = self._setup, self._control
        worker = setup.worker.config
        converters = None if self._plugins is None else self._plugins.converters
        errors = self._errors = SinkErrors(setup, converters, stop_requested=control.stop_requested)
        metrics = self._metrics = SinkMetrics(self._life_cycle.metrics)
        metrics.task.errors = errors.counts
        name, client_id = setup.task_id.connector, f"connector-consumer-{setup.task_id}"
        config = built(sink_consumer(worker, name, setup.connector_config, client_id))
        consumer = self._consumer = TaskConsumer(config.properties, self)
        context = WorkerSinkTaskContext(
            configs=setup.latest_task_config,
            connector_paused=lambda: control.should_pause,
            reporter=errors.reports,
        )
        max_poll_records = config.max_poll_records or MAX_POLL_RECORDS
        if isinstance(self._task, JavaSinkTask):
            self._task.put_records = max_poll_records
        self._tracing = tracing_of(setup)
        self._loop = SinkLoop(
            task=self._task,
            consumer=consumer,
            convert=self._convert(errors, consumer),
            context=context,
            control=control,
            reports=errors.reports,
            metrics=metrics,
            report=self._life_cycle.report,
            retries=ShownRetries(self._life_cycle.show_retries),
            flush_interval_ms=worker.offset_flush_interval_ms,
            flush_timeout_ms=worker.offset_flush_timeout_ms,
            max_poll_records=max_poll_records,
            now_ms=lambda: time.monotonic_ns() // 1_000_000,
            begin_put=self._task.begin_put if isinstance(self._task, JavaSinkTask) else None,
            tracing=self._tracing,
        )
        control.statistics = self._statistics
        return context

    def _convert(self, errors: SinkErrors, consumer: TaskConsumer) -> Convert:
        tracks_topics = self._setup.worker.config.topic_tracking_enable
        task, plugins = self._task, self._plugins
        topics = topics_of(self._setup.task_config)
        intake = Intake(
            topic_used=self._topic_used if tracks_topics else None,
            is_assigned=consumer.is_assigned,
            check_error=consumer.check,
            only_topic=topics[0] if topics is not None and len(topics) == 1 else None,
        )
        if plugins is None:
            assert isinstance(task, JavaSinkTask)
            task.tolerance = errors.tolerance
            return compose_unconverted(intake)
        return compose_conversion(
            intake,
            converters=plugins.converters,
            chain=_chain(
                plugins, errors.tolerance, self._setup, self._control, self._life_cycle.metrics
            ),
            tolerance=errors.tolerance,
            keep_consumed=errors.reports is not None,
        )

    def _statistics(self) -> StatsReported:
        loop, metrics = self._loop, self._metrics
        if loop is None or metrics is None:
            return StatsReported()
        metrics.look_at(loop.offsets)
        return StatsReported(
            last_activity_ms=loop.last_put_ms,
            last_commit_ms=loop.commits.last_commit_ms,
            queue_size=loop.pending,
            metrics=metrics.values(),
            plugins=metrics.task.plugin_values(),
        )

    def _topic_used(self, topic: str) -> None:
        self._topics.used(topic)
        self._topics.refresh()
