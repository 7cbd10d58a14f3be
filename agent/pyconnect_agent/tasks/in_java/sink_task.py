"""A sink task in a Java process.

`put` sends the consumed bytes; the Java process converts and transforms the records, calls the
task, and answers which records failed. Each answer also has the calls that the task has made of its
context meanwhile. A frame may have the records of several puts.
"""

import base64
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import count
from typing import Any

from pyconnect_agent.java_processes.frames import (
    FrameKind,
    SinkBatch,
    encode_sink,
    json_bytes,
    unpack_headers,
)
from pyconnect_agent.java_processes.link import Answer, JavaFailure, JavaLink, java_error
from pyconnect_agent.kafka.task_consumer import ConsumedMessage, TaskConsumer
from pyconnect_agent.tasks.in_java.segments import PythonSegments, record_failed
from pyconnect_agent.tasks.records import RecordSkipped, Tolerance
from pyconnect_agent.tasks.sink.context import WorkerSinkTaskContext
from pyconnect_agent.tasks.sink.dead_letters import ConsumedRecord, SerializedRecord
from pyconnect_agent.tasks.sink.delivery import PutEnd
from pyconnect_agent.tasks.sink.pipeline import (
    TIMESTAMP_TYPES,
    Convert,
    Intake,
    MessageRun,
    compose_with,
)
from pyconnect_api import (
    ConnectException,
    ErrantRecordReporter,
    SinkRecord,
    SinkRecords,
    SinkTask,
    TopicPartition,
)


class JavaSinkRecord(ConsumedRecord):
    """A record whose content only the Java process reads.

    `number` counts the task's records; 0 means that the Java process does not have the record.
    """

    __slots__ = ("number",)

    number: int


class JavaSinkRecords(SinkRecords):
    """The records of one poll; `first` is the number of its first record, as above.

    `batch` is the message for the Java process, None once it is sent.
    """

    __slots__ = ("batch", "first", "messages")

    def __init__(self, run: MessageRun) -> None:
        # A bound `_make` instead of `list` would be a cycle, which lives until a collection.
        super().__init__(run.messages, list)
        self.messages = run.messages
        self.first = 0
        self.batch: SinkBatch | None = _encoded(
            run.messages,
            names=[*run.distinct_topics],
            topics=run.topics,
            partitions=run.partitions,
            offsets=run.offsets,
            timestamps=run.timestamps,
            types=run.timestamp_types,
        )

    def _make(self) -> list[SinkRecord]:
        first = self.first
        return [
            _unconverted(message, first + place if first else 0)
            for place, message in enumerate(self.messages)
        ]


def compose_unconverted(intake: Intake) -> Convert:
    """Return the conversion that leaves converting to the Java process."""
    return compose_with(intake, lambda message, *_: _unconverted(message, 0), JavaSinkRecords)


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
    """A sink task in Java; `tolerance` and `put_records`, the most for one put, are set first.

    No put of a frame starts after `longest_ms`: a frame delays the worker's commits, rebalances and
    stops. A round ends when the task has not taken a frame, or wants to go on at other offsets: the
    Java process then refuses frames of the same round that are under way.
    """

    tolerance: Tolerance
    put_records: int
    longest_ms = 100
    segments: PythonSegments | None = None

    def __init__(self, link: JavaLink, facts: Mapping[str, Any]) -> None:
        self._link = link
        self._version: str = facts["version"]
        self._next_number = 1
        self._round = 0
        self._reports: dict[int, Future[None]] = {}
        self._report_ids = count(1)
        self.answers: Mapping[str, Answer] = {
            "configs": lambda _: dict(self.context.configs()),
            "requestCommit": lambda _: self.context.request_commit(),
            "groupMetadata": lambda _: self._consumer().group_metadata,
            "committed": self._committed,
            "reportErrant": self._report,
            "awaitErrant": lambda asked: self._reports.pop(asked["report"]),
        }

    def version(self) -> str:
        return self._version

    def start(self, props: Mapping[str, str]) -> None:
        # Without records no call would find the end of the process for a long time; a commit finds
        # it.
        self._link.on_end = self.context.request_commit
        self._call("start", config=dict(props))

    def open(self, partitions: Collection[TopicPartition]) -> None:
        self._call("open", partitions=list(partitions))

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self._call("close", partitions=list(partitions))

    def put(self, records: Sequence[SinkRecord]) -> None:
        if error := self.begin_put(records)().error:
            raise error

    def begin_put(self, records: Sequence[SinkRecord]) -> Callable[[], PutEnd]:
        """Send the records that the Java process does not have, and the numbers of those it has.

        Returns a function that waits for the end of the puts.
        """
        first = self._next_number
        kept: list[int] = []
        new: Sequence[ConsumedMessage]
        if isinstance(records, JavaSinkRecords) and records.batch is not None:
            new, records.first = records.messages, first
            batch, records.batch = records.batch, None
        else:
            own = [record for record in records if isinstance(record, JavaSinkRecord)]
            kept = [record.number for record in own if record.number]
            sent = [record for record in own if not record.number]
            new = [record.consumed for record in sent]
            for number, record in enumerate(sent, first):
                record.number = number
            stamps = [message.timestamp() for message in new]
            topics = [message.topic() for message in new]
            batch = _encoded(
                new,
                names=list(dict.fromkeys(topics)),
                topics=topics,
                partitions=[message.partition() for message in new],
                offsets=[message.offset() for message in new],
                timestamps=[timestamp for _, timestamp in stamps],
                types=[kind for kind, _ in stamps],
            )
        self._next_number += len(new)
        payload = batch.payload(
            kept=kept,
            first=first,
            round=self._round,
            most=self.put_records,
            longestMs=self.longest_ms,
        )
        call = self._link.send(FrameKind.DELIVER, *payload)
        return partial(self._finish_put, call, self._round, len(kept), new)

    def _finish_put(
        self, call: Future[dict[str, Any]], begun_in: int, kept: int, new: Sequence[ConsumedMessage]
    ) -> PutEnd:
        value = self._answer(call)
        if value["stopped"]:
            # Counted from the frame's own round, as frames refused in that round report `stopped`
            # too.
            self._round = begun_in + 1
        puts = [(size, duration_us / 1000) for size, duration_us in value["puts"]]
        taken = value["taken"] + (kept if puts else 0)
        error = value.get("error")
        if self.segments is not None:
            self.segments.take(value)
        for failure in value["failures"]:
            try:
                record_failed(failure, new[failure["row"]], self.tolerance)
            except RecordSkipped:
                continue
            except ConnectException as exc:
                return PutEnd(taken=taken, puts=puts, stopped=True, error=exc)
        return PutEnd(
            taken=taken,
            # The Java process keeps the records of the put that has failed.
            due=min(self.put_records + (0 if puts else kept), kept + len(new) - taken)
            if error
            else 0,
            puts=puts,
            stopped=value["stopped"],
            error=None if error is None else java_error(error),
        )

    def pre_commit(
        self, current_offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        offsets = [(*partition, offset) for partition, offset in current_offsets.items()]
        safe = self._call("preCommit", offsets=offsets)
        if safe is None:
            # The loop fails the task, as Kafka's worker does.
            return None  # type: ignore[return-value]
        return {TopicPartition(topic, partition): at for topic, partition, at in safe}

    def stop(self) -> None:
        try:
            if not self._link.has_ended:
                self._call("stop")
        finally:
            self._link.close()
            if self.segments is not None:
                self.segments.close()

    def _call(self, method: str, **arguments: Any) -> Any:
        payload = json_bytes({"method": method, **arguments})
        return self._answer(self._link.send(FrameKind.CALL, payload))

    def _answer(self, call: Future[dict[str, Any]]) -> Any:
        answer = call.result()
        for what, *arguments in answer.get("effects", ()):
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
                case "requestCommit":
                    context.request_commit()
        if "error" in answer:
            raise java_error(answer["error"])
        return answer["value"]

    # The methods below run on the thread that answers questions.

    def _consumer(self) -> TaskConsumer:
        assert isinstance(self.context, WorkerSinkTaskContext)
        return self.context.connected()

    def _committed(self, asked: Mapping[str, Any]) -> list[tuple[str, int, int | None]]:
        partitions = [TopicPartition(*each) for each in asked["partitions"]]
        found = self._consumer().committed(partitions)
        return [(*partition, offset) for partition, offset in found.items()]

    def _report(self, asked: Mapping[str, Any]) -> int:
        """Report a record with the bytes that it had in Kafka."""
        reporter = self.context.errant_record_reporter()
        assert isinstance(reporter, ErrantRecordReporter)
        error = java_error(asked["error"])
        assert isinstance(error, JavaFailure)
        kafka = asked["record"]
        timestamp = kafka["timestamp"]
        fields: tuple[Any, ...] = (
            kafka["topic"],
            kafka["partition"],
            None,
            None,
            None,
            None,
            kafka["offset"],
            None if timestamp < 0 else timestamp,
            TIMESTAMP_TYPES[kafka["type"]],
        )
        record = ConsumedRecord(*fields)
        record.consumed = SerializedRecord(
            SinkRecord(*fields),
            from_base64(kafka["key"]),
            from_base64(kafka["value"]),
            unpack_headers(from_base64(kafka["headers"])),
        )
        report = next(self._report_ids)
        self._reports[report] = reporter.report(record, error)
        return report


def from_base64(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _encoded(messages: Sequence[ConsumedMessage], **columns: Any) -> SinkBatch:
    # Methods are looked up once, as in `MessageRun`.
    kind: Any = type(messages[0]) if messages else ConsumedMessage
    return encode_sink(
        keys=list(map(kind.key, messages)),
        values=list(map(kind.value, messages)),
        headers=list(map(kind.headers, messages)),
        **columns,
    )
