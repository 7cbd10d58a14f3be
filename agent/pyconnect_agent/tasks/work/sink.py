"""Builds and runs a sink task (Kafka: WorkerSinkTask, its builder, `Worker.sinkTaskReporters`).

The composition of the modules in `sink`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence

from pyconnect_agent.channel import StatsReported, TopicUsed
from pyconnect_agent.core.clients.configs import (
    connector_admin,
    connector_producer,
    sink_consumer,
)
from pyconnect_agent.core.config.connector_checks import TOPICS_REGEX, check_sink_config, topics_of
from pyconnect_agent.core.config.connector_config import ConnectorSettings, SinkTaskSettings
from pyconnect_agent.kafka.admin import Admin
from pyconnect_agent.kafka.task_consumer import TaskConsumer
from pyconnect_agent.kafka.task_producer import TaskProducer
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.in_java.segments import chain_of
from pyconnect_agent.tasks.in_java.sink_task import JavaSinkTask, compose_unconverted
from pyconnect_agent.tasks.life_cycle import TaskLifeCycle
from pyconnect_agent.tasks.records.active_topics import ActiveTopics
from pyconnect_agent.tasks.records.tolerance import ErrorCounts, tolerance_of
from pyconnect_agent.tasks.setup.plugins import Converters, TaskPlugins
from pyconnect_agent.tasks.setup.resolved_configs import API_TIMEOUT_MS, TaskSetup, built
from pyconnect_agent.tasks.sink.context import WorkerSinkTaskContext
from pyconnect_agent.tasks.sink.dead_letters import (
    DeadLetterQueue,
    ErrantRecords,
    describe_consumed,
    place_of,
    prepare_topic,
)
from pyconnect_agent.tasks.sink.loop import SinkLoop
from pyconnect_agent.tasks.sink.pipeline import Convert, compose
from pyconnect_agent.tasks.task_metrics import SinkMetrics
from pyconnect_agent.tasks.trace import ShownRetries
from pyconnect_agent.tasks.tracing import Tracing, tracing_of
from pyconnect_api import SinkTask, TopicPartition

CLOSE_TIMEOUT_S = 30.0
"""How long records may take to reach the dead letter queue once the task has ended."""


class SinkErrors:
    """`reports` is None when errors are neither logged nor sent anywhere.

    Making it creates the dead letter topic. Raises ConfigException, and ConnectException when the
    topic cannot be created.
    """

    def __init__(
        self,
        setup: TaskSetup,
        converters: Converters | None,
        *,
        stop_requested: threading.Event,
    ) -> None:
        settings = SinkTaskSettings.parse(setup.connector_config)
        self.counts = ErrorCounts()
        self._queue: DeadLetterQueue | None = None
        if settings.dlq_topic is not None:
            worker, config, task_id = setup.worker.config, setup.connector_config, setup.task_id
            producer_id = f"connector-dlq-producer-{task_id}"
            producer = built(connector_producer(worker, config, producer_id))
            admin = built(connector_admin(worker, config, f"connector-dlq-adminclient-{task_id}"))
            prepare_topic(
                Admin(admin.properties),
                settings.dlq_topic,
                replication_factor=settings.dlq_replication_factor,
                timeout_ms=admin.default_api_timeout_ms or API_TIMEOUT_MS,
            )
            self._queue = DeadLetterQueue(
                topic=settings.dlq_topic,
                producer=TaskProducer(producer.properties),
                task_id=task_id,
                context_headers=settings.dlq_context_headers,
                counts=self.counts,
                mask=setup.worker.mask,
            )
        self.tolerance = tolerance_of(
            setup.connector_config,
            task_id=str(setup.task_id),
            describe_record=describe_consumed,
            stop_requested=stop_requested,
            place_of=place_of,
            further_reporters=() if self._queue is None else (self._queue,),
            counts=self.counts,
        )
        self.reports: ErrantRecords | None = None
        if settings.has_errant_record_reporter:
            self.reports = ErrantRecords(self.tolerance, converters)

    def close(self) -> None:
        """Wait for the records that are being sent to the dead letter queue."""
        if self._queue is not None:
            self._queue.close(CLOSE_TIMEOUT_S)


MAX_POLL_RECORDS = 500
"""Java's default of `max.poll.records`."""


class SinkWork:
    """Implements `life_cycle.TaskWork` and the consumer's rebalance listener.

    `plugins` None: the task converts its records itself.
    """

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
            # In reverse: the task is closed first, then its parts, even after a failure.
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

    # Rebalance listener

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
        task_id = setup.task_id
        config = built(
            sink_consumer(
                worker,
                task_id.connector,
                setup.connector_config,
                f"connector-consumer-{task_id}",
            )
        )
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
        topic_used = self._topic_used if tracks_topics else None
        task, plugins = self._task, self._plugins
        topics = topics_of(self._setup.task_config)
        only_topic = topics[0] if topics is not None and len(topics) == 1 else None
        if plugins is None:
            assert isinstance(task, JavaSinkTask)
            task.tolerance = errors.tolerance
            return compose_unconverted(
                topic_used=topic_used,
                is_assigned=consumer.is_assigned,
                check_error=consumer.check,
                only_topic=only_topic,
            )
        metrics = self._life_cycle.metrics
        chain = chain_of(
            plugins.stages,
            errors.tolerance,
            ConnectorSettings.parse(self._setup.connector_config),
            self._control.stop_requested,
            metrics.sampling,
        )
        if chain is not None:
            metrics.stages = chain.metrics
        return compose(
            converters=plugins.converters,
            chain=chain,
            tolerance=errors.tolerance,
            topic_used=topic_used,
            is_assigned=consumer.is_assigned,
            check_error=consumer.check,
            only_topic=only_topic,
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
