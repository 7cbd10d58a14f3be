"""Builds and runs an at-least-once source task (Kafka: WorkerSourceTask and its builder).

Layer: tasks. The composition of the modules named `source_*`.
"""

from __future__ import annotations

import contextlib
import logging
import time

from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.kafka.task_producer import TaskProducer
from pyconnect_agent.supervise.channel import TopicUsed
from pyconnect_agent.tasks import client_settings
from pyconnect_agent.tasks.active_topics import ActiveTopics
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.error_settings import tolerance_of
from pyconnect_agent.tasks.life_cycle import TaskLifeCycle
from pyconnect_agent.tasks.offset_reader import WorkerOffsetReader
from pyconnect_agent.tasks.source import SourceLoop
from pyconnect_agent.tasks.source_committer import SERVE_INTERVAL_S, SourceCommitter
from pyconnect_agent.tasks.source_context import WorkerSourceTaskContext
from pyconnect_agent.tasks.source_pipeline import compose
from pyconnect_agent.tasks.source_sender import AtLeastOnceSender
from pyconnect_agent.tasks.statistics import Statistics
from pyconnect_agent.tasks.task_setup import TaskSetup
from pyconnect_agent.tasks.transform_chain import TransformationStage, chain
from pyconnect_api import Converter, HeaderConverter, SourceTask

LOG = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 30.0
"""Kafka's constant for closing a source task's producer."""


class SourceWork:
    """Implements `life_cycle.TaskWork`."""

    def __init__(
        self, task: SourceTask, setup: TaskSetup, control: Control, life_cycle: TaskLifeCycle
    ) -> None:
        self._task = task
        self._setup = setup
        self._control = control
        self._life_cycle = life_cycle
        worker, config = setup.worker, setup.connector_config
        self._key_converter = worker.converter("key", config)
        self._value_converter = worker.converter("value", config)
        self._header_converter = worker.header_converter(config)
        self._stages: list[TransformationStage] = worker.transformations(config)
        self._initialized = False
        self._failed = False
        self._producer: TaskProducer | None = None
        self._reader: WorkerOffsetReader | None = None
        self._committer: SourceCommitter | None = None
        self._sender: AtLeastOnceSender | None = None
        self._loop: SourceLoop | None = None

    def version(self) -> str | None:
        return self._task.version()

    def start(self) -> None:
        self._build()
        setup = self._setup
        assert self._reader is not None
        context = WorkerSourceTaskContext(
            configs=setup.latest_task_config,
            reader=self._reader,
            stop_requested=self._control.stop_requested,
        )
        self._initialized = True
        self._task.initialize(context)
        self._task.start(setup.task_config)

    def execute(self) -> None:
        assert self._loop is not None
        assert self._committer is not None
        assert self._sender is not None
        self._committer.start()
        try:
            self._loop.run()
        except BaseException:
            self._failed = True
            raise
        finally:
            self._committer.stop()
            self._sender.finish(failed=self._failed)

    def close(self) -> None:
        with contextlib.ExitStack() as closing:
            # In reverse: the task first, what it used after it, whatever fails before.
            for converter in self._converters():
                closing.callback(converter.close)
            for stage in self._stages:
                closing.callback(stage.close)
            if self._reader is not None:
                closing.callback(self._reader.close)
            if self._producer is not None:
                closing.callback(self._producer.close, 0.0 if self._failed else CLOSE_TIMEOUT_S)
            if self._initialized:
                closing.callback(self._task.stop)

    def _converters(self) -> tuple[Converter | HeaderConverter, ...]:
        return (self._key_converter, self._value_converter, self._header_converter)

    def _build(self) -> None:
        setup, control = self._setup, self._control
        worker = setup.worker.config
        tolerance = tolerance_of(
            setup.connector_config,
            task_id=str(setup.task_id),
            describe_record=lambda record: f", where source record is = {record}",
            stop_requested=control.stop_requested,
        )
        self._reader = WorkerOffsetReader(setup.task_id.connector, control.read_offsets)
        self._producer = self._new_producer(setup.task_id)
        self._sender = AtLeastOnceSender(
            task=self._task,
            producer=self._producer,
            tolerance=tolerance,
            topics=ActiveTopics(self._topic_used if worker.topic_tracking_enable else _nothing),
            stop_requested=lambda: control.stopping,
            offer=self._offer,
            commit=self._commit,
            flush_timeout_s=worker.offset_flush_timeout_ms / 1000,
        )
        self._committer = SourceCommitter(
            connector=setup.task_id.connector,
            task=self._task,
            write=control.write_offsets,
            flush_interval_ms=worker.offset_flush_interval_ms,
            flush_timeout_ms=worker.offset_flush_timeout_ms,
            serve_if_idle=self._serve_if_idle,
        )
        self._loop = SourceLoop(
            task=self._task,
            convert=compose(
                key_converter=self._key_converter,
                value_converter=self._value_converter,
                header_converter=self._header_converter,
                transform=chain(self._stages, tolerance),
                tolerance=tolerance,
            ),
            sender=self._sender,
            control=control,
            report=self._report,
        )
        control.statistics = self._statistics

    def _new_producer(self, task_id: ConnectorTaskId) -> TaskProducer:
        setup = self._setup
        config = client_settings.source_producer(
            setup.worker.config, setup.connector_config, task_id
        )
        return TaskProducer(config.properties)

    def _statistics(self) -> Statistics:
        if self._loop is None or self._committer is None or self._producer is None:
            return Statistics()
        return Statistics(
            last_activity_ms=self._loop.last_poll_ms,
            last_commit_ms=self._committer.last_commit_ms,
            queue_size=self._producer.in_flight(),
        )

    def _report(self, state: State) -> None:
        self._life_cycle.report(state)

    def _topic_used(self, topic: str) -> None:
        self._control.send(TopicUsed(topic=topic))

    def _offer(self) -> None:
        assert self._committer is not None
        assert self._sender is not None
        self._committer.offer(self._sender.submitted.committable_offsets())

    def _commit(self) -> None:
        assert self._committer is not None
        self._committer.commit()

    def _serve_if_idle(self) -> None:
        """Serve the producer's callbacks while the task's thread waits in `poll`."""
        assert self._loop is not None
        assert self._producer is not None
        since = self._loop.polling_since_s
        if since is not None and time.monotonic() - since > SERVE_INTERVAL_S:
            self._producer.serve()


def _nothing(_: str) -> None:
    """Topic tracking is off."""
