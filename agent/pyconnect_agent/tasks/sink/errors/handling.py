"""Everything a sink task has for records that fail: tolerance, log, dead letter queue, reporter.

Layer: tasks. Kafka: what `Worker.sinkTaskReporters` and the builder of sink tasks put together.
"""

from __future__ import annotations

import threading

from pyconnect_agent.core.config.connector_config import SinkTaskSettings
from pyconnect_agent.kafka.admin import Admin
from pyconnect_agent.kafka.task_producer import TaskProducer
from pyconnect_agent.tasks.records.tolerance import ErrorCounts
from pyconnect_agent.tasks.setup import client_settings
from pyconnect_agent.tasks.setup.error_settings import tolerance_of
from pyconnect_agent.tasks.setup.plugins import Converters
from pyconnect_agent.tasks.setup.resolved_configs import TaskSetup
from pyconnect_agent.tasks.sink.errors.consumed_record import describe_consumed, place_of
from pyconnect_agent.tasks.sink.errors.dead_letter_queue import DeadLetterQueue, prepare_topic
from pyconnect_agent.tasks.sink.errors.errant_reports import ErrantRecords

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
        self._queue = self._queue_of(settings, setup)
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

    def _queue_of(self, settings: SinkTaskSettings, setup: TaskSetup) -> DeadLetterQueue | None:
        topic = settings.dlq_topic
        if topic is None:
            return None
        worker, config, task_id = setup.worker.config, setup.connector_config, setup.task_id
        producer = client_settings.producer(worker, config, task_id, "dlq-producer")
        admin = client_settings.admin(worker, config, task_id, "dlq-adminclient")
        prepare_topic(
            Admin(admin.properties),
            topic,
            replication_factor=settings.dlq_replication_factor,
            timeout_ms=admin.default_api_timeout_ms or client_settings.API_TIMEOUT_MS,
        )
        return DeadLetterQueue(
            topic=topic,
            producer=TaskProducer(producer.properties),
            task_id=task_id,
            context_headers=settings.dlq_context_headers,
            counts=self.counts,
            mask=setup.worker.mask,
        )
