"""A sink task in a Java process.

Layer: tasks. `put` sends what was consumed as it is; the Java process converts it, transforms it,
calls the task, and answers which records failed. What the task asked of its context meanwhile
comes with every answer. The loop consumes the next batch while the Java process is at one.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

from pyconnect_agent.java.errors import JavaFailure, java_error
from pyconnect_agent.java.frames import (
    Kind,
    SinkBatch,
    encode_sink,
    json_bytes,
    unpack_headers,
)
from pyconnect_agent.java.link import Answer, JavaLink
from pyconnect_agent.kafka.task_consumer import ConsumedMessage
from pyconnect_agent.tasks.java.pipeline import record_failed
from pyconnect_agent.tasks.records.tolerance import RecordSkipped, Tolerance
from pyconnect_agent.tasks.sink.errors.consumed_record import ConsumedRecord, SerializedRecord
from pyconnect_agent.tasks.sink.pipeline import Convert, compose_with
from pyconnect_agent.tasks.sink.run import TIMESTAMP_TYPES, MessageRun
from pyconnect_api import ErrantRecordReporter, SinkRecord, SinkRecords, SinkTask, TopicPartition


class JavaSinkRecord(ConsumedRecord):
    """A record that only the Java process looks into.

    `number` counts the task's records; 0: the Java process does not have it.
    """

    __slots__ = ("number",)

    number: int


class JavaSinkRecords(SinkRecords):
    """What one poll has consumed; `first` is the number of its first record, as above.

    `batch` is what the Java process gets, None once it has it. It is encoded when the records are
    consumed, while the task takes those before.
    """

    __slots__ = ("batch", "first", "run")

    def __init__(self, run: MessageRun) -> None:
        super().__init__(run.messages, self._unconverted)
        self.run = run
        self.first = 0
        messages = run.messages
        self.batch: SinkBatch | None = encode_sink(
            topics=run.topics,
            partitions=run.partitions,
            offsets=[message.offset() for message in messages],
            timestamps=run.timestamps,
            keys=[message.key() for message in messages],
            values=[message.value() for message in messages],
            headers=[message.headers() for message in messages],
        )

    def _unconverted(self) -> list[SinkRecord]:
        first = self.first
        return [
            _unconverted(message, first + place if first else 0)
            for place, message in enumerate(self.run.messages)
        ]


def compose_unconverted(
    *,
    topic_used: Callable[[str], None] | None,
    is_assigned: Callable[[TopicPartition], bool],
    check_error: Callable[[ConsumedMessage], None],
) -> Convert:
    """Return the conversion that leaves everything to the Java process."""
    return compose_with(
        record_of=lambda message, _topic, _partition, _offset: _unconverted(message, 0),
        convert_run=JavaSinkRecords,
        chain=None,
        topic_used=topic_used,
        is_assigned=is_assigned,
        check_error=check_error,
    )


def _unconverted(message: ConsumedMessage, number: int) -> JavaSinkRecord:
    kind, timestamp = message.timestamp()
    record = JavaSinkRecord(
        message.topic(),
        message.partition(),
        None,
        None,
        None,
        None,
        message.offset(),
        timestamp,
        TIMESTAMP_TYPES[kind],
    )
    record.consumed = message
    record.number = number
    return record


class JavaSinkTask(SinkTask):
    """`tolerance` is set before the task is started."""

    tolerance: Tolerance

    def __init__(self, link: JavaLink, facts: Mapping[str, Any]) -> None:
        self._link = link
        self._version: str = facts["version"]
        self._next_number = 1
        self._reports: dict[int, Future[None]] = {}
        self._report_ids = count(1)
        self.answers: Mapping[str, Answer] = {
            "configs": lambda _: dict(self.context.configs()),
            "requestCommit": lambda _: self.context.request_commit(),
            "reportErrant": self._report,
            "awaitErrant": lambda asked: self._reports.pop(asked["report"]),
        }

    def version(self) -> str:
        return self._version

    def start(self, props: Mapping[str, str]) -> None:
        # With nothing to consume no call would find it for a long time; a commit is one.
        self._link.on_end = self.context.request_commit
        self._call("start", config=dict(props))

    def open(self, partitions: Collection[TopicPartition]) -> None:
        self._call("open", partitions=list(partitions))

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self._call("close", partitions=list(partitions))

    def put(self, records: Sequence[SinkRecord]) -> None:
        self.begin_put(records)()

    def begin_put(self, records: Sequence[SinkRecord]) -> Callable[[], None]:
        """Send the records that the Java process does not have, and which others are still due.

        Returns what waits for the end of the task's put.
        """
        kept: Sequence[int] = ()
        new: Sequence[ConsumedMessage] = ()
        batch: SinkBatch | None = None
        first = self._next_number
        if not isinstance(records, JavaSinkRecords):
            own = [record for record in records if isinstance(record, JavaSinkRecord)]
            kept = [record.number for record in own if record.number]
            sent = [record for record in own if not record.number]
            new = [record.consumed for record in sent]
            for number, record in enumerate(sent, first):
                record.number = number
            batch = _batch(new)
        elif records.first:
            kept = range(records.first, records.first + len(records))
        else:
            new, records.first = records.run.messages, first
            batch, records.batch = records.batch, None
        self._next_number += len(new)
        payload = (batch or _batch(())).payload(kept=list(kept), first=first)
        return partial(self._finish_put, self._link.send(Kind.DELIVER, *payload), new)

    def _finish_put(self, call: Future[dict[str, Any]], new: Sequence[ConsumedMessage]) -> None:
        value = self._answer(call)
        for failure in value["failures"]:
            with suppress(RecordSkipped):
                record_failed(failure, new[failure["row"]], self.tolerance)
        if "error" in value:
            raise java_error(value["error"])

    def pre_commit(
        self, current_offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        offsets = [(*partition, offset) for partition, offset in current_offsets.items()]
        safe = self._call("preCommit", offsets=offsets)
        # As in Kafka's worker, no offsets and none that are safe are the same.
        return {TopicPartition(topic, partition): at for topic, partition, at in safe or ()}

    def stop(self) -> None:
        if not self._link.has_ended:
            self._call("stop")
        self._link.close()

    def _call(self, method: str, **arguments: Any) -> Any:
        payload = json_bytes({"method": method, **arguments})
        return self._answer(self._link.send(Kind.CALL, payload))

    def _answer(self, call: Future[dict[str, Any]]) -> Any:
        answer = call.result()
        for what, *arguments in answer.get("effects", ()):
            self._effect(what, arguments)
        if "error" in answer:
            raise java_error(answer["error"])
        return answer["value"]

    def _effect(self, what: str, arguments: Sequence[Any]) -> None:
        context = self.context
        match what:
            case "timeout":
                context.timeout(arguments[0])
            case "offset":
                topic, partition, offset = arguments
                context.offset({TopicPartition(topic, partition): offset})
            case "pause":
                context.pause(TopicPartition(*arguments))
            case "resume":
                context.resume(TopicPartition(*arguments))

    # On the thread that answers questions

    def _report(self, asked: Mapping[str, Any]) -> int:
        reporter = self.context.errant_record_reporter()
        assert isinstance(reporter, ErrantRecordReporter)
        error = java_error(asked["error"])
        assert isinstance(error, JavaFailure)
        report = next(self._report_ids)
        self._reports[report] = reporter.report(_consumed(asked), error)
        return report


def _consumed(asked: Mapping[str, Any]) -> ConsumedRecord:
    """Return the record that a report is about, with the bytes that it had in Kafka."""
    record = ConsumedRecord(
        asked["originalTopic"],
        asked["originalPartition"],
        None,
        None,
        None,
        None,
        asked["offset"],
        asked["timestamp"],
        TIMESTAMP_TYPES[asked["type"]],
    )
    shown = SinkRecord(
        asked["topic"],
        asked["partition"],
        None,
        None,
        None,
        None,
        asked["offset"],
        None if asked["timestamp"] < 0 else asked["timestamp"],
        TIMESTAMP_TYPES[asked["type"]],
    )
    record.consumed = SerializedRecord(
        shown,
        _bytes(asked["key"]),
        _bytes(asked["value"]),
        unpack_headers(_bytes(asked["headers"])),
    )
    return record


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _batch(messages: Sequence[ConsumedMessage]) -> SinkBatch:
    return encode_sink(
        topics=[message.topic() for message in messages],
        partitions=[message.partition() for message in messages],
        offsets=[message.offset() for message in messages],
        timestamps=[message.timestamp() for message in messages],
        keys=[message.key() for message in messages],
        values=[message.value() for message in messages],
        headers=[message.headers() for message in messages],
    )
