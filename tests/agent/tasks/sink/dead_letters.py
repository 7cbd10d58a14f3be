"""Records that a sink task cannot process, and their reports, over a fake producer."""

import threading
from collections.abc import Mapping

from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.tasks.records import ErrorCounts, Failure, RecordStage, Tolerance, tolerance_of
from pyconnect_agent.tasks.sink.dead_letters import (
    ConsumedRecord,
    DeadLetterQueue,
    ErrantRecords,
    describe_consumed,
    place_of,
)
from pyconnect_agent.tasks.sink.pipeline import compose_conversion
from pyconnect_api import SinkRecord
from tests.agent.tasks.parts import converters, json_values
from tests.support.fakes.fake_clients import FakeMessage, FakeProducer
from tests.support.functions import ANY_MESSAGES

SECRET = "hunter2"
POISON = FakeMessage("t", 3, 7, b'{"password": "hunter2", }', b"k", (1, 1234), (("h", b"\x00"),))
TASK_ID = ConnectorTaskId("c", 2)


class QueueProducer(FakeProducer):
    """A fake for two threads that can be closed; its `serve` waits as the client's does.

    Once `unforeseen` is set, `serve` raises it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.closed_after_s: float | None = None
        self.unforeseen: Exception | None = None
        self._idle, self._lock = threading.Event(), threading.Lock()

    def serve(self, timeout_s: float = 0.0) -> int:
        self._idle.wait(min(timeout_s, 0.001))
        if self.unforeseen is not None:
            raise self.unforeseen
        with self._lock:
            return super().serve()

    def deliver(self, *indexes: int) -> None:
        with self._lock:
            super().deliver(*indexes)

    def fail(self, index: int, code: int) -> None:
        with self._lock:
            super().fail(index, code)

    def produce(self, topic: str, value: bytes | None, key: bytes | None, **more: object) -> None:  # type: ignore[override]
        super().produce(topic, value, key, partition=-1, **more)  # type: ignore[arg-type]

    def close(self, timeout_s: float) -> None:
        self.closed_after_s = timeout_s


class Queue:
    """A dead letter queue over a fake producer."""

    def __init__(self, *, context_headers: bool = False, tolerate_all: bool = True) -> None:
        self.producer, self.counts = QueueProducer(), ErrorCounts()
        self.queue = DeadLetterQueue(
            topic="dead",
            producer=self.producer,
            task_id=TASK_ID,
            context_headers=context_headers,
            counts=self.counts,
            mask=lambda text: text.replace("provided", "${p:k}"),
        )
        self.tolerance = tolerance(
            {"errors.tolerance": "all" if tolerate_all else "none"}, self.counts, self.queue
        )
        self.reports = ErrantRecords(self.tolerance, converters())


def tolerance(
    config: Mapping[str, str], counts: ErrorCounts | None = None, *queues: DeadLetterQueue
) -> Tolerance:
    return tolerance_of(
        {"name": "c", "connector.class": "C", **config},
        task_id=str(TASK_ID),
        describe_record=describe_consumed,
        stop_requested=threading.Event(),
        place_of=place_of,
        further_reporters=queues,
        counts=counts,
    )


def convert(message: FakeMessage, handling: Tolerance) -> list[SinkRecord]:
    """Convert one message, its value with the JSON converter."""
    records, _ = compose_conversion(
        ANY_MESSAGES,
        converters=converters(json_values(schemas=False)),
        chain=None,
        tolerance=handling,
        keep_consumed=True,
    )([message], {})
    return list(records)


def consumed(message: FakeMessage = POISON) -> ConsumedRecord:
    record = ConsumedRecord(
        message.topic(), message.partition(), None, "k", None, "v", message.offset()
    )
    record.consumed = message
    return record


def failure(error: Exception, record: object = POISON) -> Failure:
    return Failure(stage=RecordStage.VALUE_CONVERTER, class_name="a.B", error=error, record=record)
