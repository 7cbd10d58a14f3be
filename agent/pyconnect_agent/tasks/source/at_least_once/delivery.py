"""The parts of a source task that commits offsets after its records (Kafka: WorkerSourceTask).

Layer: tasks. The composition of `sender.py` and `committer.py`.
"""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from typing import Protocol

from pyconnect_agent.channel import StatsReported
from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.kafka.admin import Admin
from pyconnect_agent.kafka.task_producer import TaskProducer
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.records.active_topics import ActiveTopics
from pyconnect_agent.tasks.records.tolerance import Tolerance
from pyconnect_agent.tasks.setup import client_settings
from pyconnect_agent.tasks.setup.resolved_configs import TaskSetup
from pyconnect_agent.tasks.source.at_least_once.committer import SERVE_INTERVAL_S, SourceCommitter
from pyconnect_agent.tasks.source.at_least_once.sender import AtLeastOnceSender
from pyconnect_agent.tasks.source.loop import SourceLoop
from pyconnect_agent.tasks.source.metrics import SourceMetrics
from pyconnect_agent.tasks.source.offsets.stores import OffsetStores
from pyconnect_agent.tasks.source.sender import Sender
from pyconnect_api import SourceTask, TransactionContext

CLOSE_TIMEOUT_S = 30.0
"""Kafka's constant for closing a source task's producer."""


class Delivery(Protocol):
    """A delivery guarantee: opened, driven and closed around a source task's loop."""

    transaction_context: TransactionContext | None

    @property
    def sender(self) -> Sender: ...

    def open(self) -> bool:
        """Prepare before the task is started; False when the worker asks for a stop.

        Any exception makes the task FAILED.
        """
        ...

    def begin(self, loop: SourceLoop) -> None:
        """The loop runs from now on."""
        ...

    def end(self, *, failed: bool, complete: bool) -> None:
        """The loop has ended; commit the offsets that may be committed.

        `complete` is False when a part of the last batch was not sent.
        """
        ...

    def close(self, *, failed: bool) -> None:
        """Release everything."""
        ...

    def statistics(self) -> StatsReported: ...


class AtLeastOnceDelivery:
    """Implements `Delivery`."""

    transaction_context: TransactionContext | None = None

    def __init__(
        self,
        task: SourceTask,
        setup: TaskSetup,
        control: Control,
        *,
        tolerance: Tolerance,
        metrics: SourceMetrics,
        topics: ActiveTopics,
        offsets: OffsetStores,
    ) -> None:
        worker = setup.worker.config
        config = client_settings.producer(worker, setup.connector_config, setup.task_id)
        self._control = control
        self._offsets = offsets
        self._producer = TaskProducer(
            config.properties,
            lambda: Admin(
                client_settings.producers_admin(
                    worker, setup.connector_config, setup.task_id
                ).properties
            ),
        )
        self.sender = AtLeastOnceSender(
            task=task,
            producer=self._producer,
            tolerance=tolerance,
            topics=topics,
            stop_requested=lambda: control.stopping,
            offer=self._offer,
            commit=self._commit,
            flush_timeout_s=worker.offset_flush_timeout_ms / 1000,
            not_delivered=partial(metrics.left_out, 1),
        )
        self._committer = SourceCommitter(
            connector=setup.task_id.connector,
            task=task,
            write=offsets.write,
            flush_interval_ms=worker.offset_flush_interval_ms,
            flush_timeout_ms=worker.offset_flush_timeout_ms,
            serve_if_idle=self._serve_if_idle,
            metrics=metrics,
        )
        self._loop: SourceLoop | None = None

    def open(self) -> bool:
        return self._offsets.start(lambda: self._control.stopping)

    def begin(self, loop: SourceLoop) -> None:
        self._loop = loop
        self._committer.start()

    def end(self, *, failed: bool, complete: bool) -> None:
        self._committer.stop()
        self.sender.finish(failed=failed, complete=complete)

    def close(self, *, failed: bool) -> None:
        self._producer.close(0.0 if failed else CLOSE_TIMEOUT_S)
        self._offsets.close()

    def statistics(self) -> StatsReported:
        return StatsReported(
            last_commit_ms=self._committer.last_commit_ms, queue_size=self._producer.in_flight()
        )

    def _offer(self) -> None:
        self._committer.offer(self.sender.submitted.committable_offsets())

    def _commit(self) -> None:
        self._committer.commit()

    def _serve_if_idle(self) -> None:
        """Serve the producer's callbacks while the task's thread waits in `poll`."""
        assert self._loop is not None
        since = self._loop.polling_since_s
        if since is not None and time.monotonic() - since > SERVE_INTERVAL_S:
            # A producer that cannot go on says so to the task's thread as well.
            with suppress(KafkaError):
                self._producer.serve()
