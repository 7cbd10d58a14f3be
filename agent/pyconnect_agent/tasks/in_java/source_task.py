"""A source task in a Java process.

The Java process polls ahead, two batches at most: it makes one while another is sent. With
exactly-once support a task with a `commit` of its own may understand a commit as "all that I have
returned so far". The Java process then polls only when it is asked, and the loop waits for the
poll, as Kafka's worker does. A batch comes in parts: one is sent to Kafka while the Java process
converts the next.
"""

import queue
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from pyconnect_agent.java_processes.frames import (
    FrameKind,
    JavaSourceRecord,
    JavaSourceRecords,
    decode_source,
    json_bytes,
)
from pyconnect_agent.java_processes.link import Answer, JavaLink, java_error
from pyconnect_agent.tasks.in_java.segments import PythonSegments
from pyconnect_api import (
    ConnectException,
    OffsetStorageReader,
    RecordMetadata,
    RetriableException,
    SourceRecord,
    SourceTask,
)


def read_offsets(
    reader: OffsetStorageReader, asked: Mapping[str, Any]
) -> list[Mapping[str, object] | None]:
    """Return the offset of each partition in the question, in its order.

    None means no offset, or an offset that cannot be decoded: the reader leaves that out.
    """
    partitions = asked["partitions"]
    found = {id(partition): offset for partition, offset in reader.offsets(partitions)}
    return [found.get(id(partition)) for partition in partitions]


AHEAD = 2
"""How many batches the Java process may have ready."""
WAIT_S = 0.2
"""How long `poll` waits for a batch that is made ahead; the loop has other things to do too."""
RESULTS = 500
"""How many results of records wait at most until all are sent to the Java process."""


class JavaSourceTask(SourceTask):
    """A source task in Java; `facts`: the Java process's answer to its job."""

    segments: PythonSegments | None = None

    def __init__(self, link: JavaLink, facts: Mapping[str, Any], *, exactly_once: bool) -> None:
        self._link = link
        self._version = facts["version"]
        self._hears_of_commits = facts["hearsOfCommits"]
        self._in_turn = exactly_once and self._hears_of_commits
        self._asked = 0
        self._is_whole = True
        self.is_waiting = False
        self.answers: Mapping[str, Answer] = {
            "configs": lambda _: dict(self.context.configs()),
            "readOffsets": lambda asked: read_offsets(self.context.offset_storage_reader, asked),
        }

    def version(self) -> str:
        version: str = self._version
        return version

    def start(self, props: Mapping[str, str]) -> None:
        self._link.call("start", config=dict(props))

    def poll(self) -> Sequence[SourceRecord]:
        while self._asked < (1 if self._in_turn else AHEAD):
            self._asked += 1
            self._link.tell(FrameKind.CREDIT)
        try:
            # Without the wait a commit would reach the task after a poll that the commit does not
            # cover.
            received = self._received(timeout_s=None if self._in_turn else WAIT_S)
        except queue.Empty:
            self.is_waiting = True
            return ()
        self.is_waiting = False
        return received

    def next_part(self) -> Sequence[SourceRecord]:
        """See `source.loop.PollsInParts`."""
        if self._is_whole:
            return ()
        try:
            return self._received(timeout_s=None)
        except RetriableException as exc:
            # The rest of the batch is lost: the Java process cannot return it again.
            raise ConnectException(str(exc)) from exc

    def check_process(self) -> None:
        """See `source.loop.RunsInProcess`."""
        if self._link.has_ended:
            raise self._link.ended()

    def commit(self) -> None:
        if self._hears_of_commits:
            self._link.tell(FrameKind.CALL, json_bytes({"method": "commit"}))

    def stop(self) -> None:
        try:
            self._link.stop()
        finally:
            if self.segments is not None:
                self.segments.close()

    def _received(self, timeout_s: float | None) -> JavaSourceRecords:
        payload = self._link.batches.get(timeout=timeout_s)
        if payload is None:
            # The next poll gets None again.
            self._link.batches.put(None)
            raise self._link.ended()
        records = JavaSourceRecords.of(decode_source(payload))
        facts = records.batch.facts
        if self.segments is not None:
            self.segments.take(facts)
        self._is_whole = facts["last"]
        if self._is_whole:
            self._asked -= 1
        transactions = self.context.transaction_context
        if transactions is not None:
            for place in facts.get("commitsAfter", ()):
                transactions.commit_transaction(records[place])
            for place in facts.get("abortsAfter", ()):
                transactions.abort_transaction(records[place])
            if facts.get("commit"):
                transactions.commit_transaction()
            if facts.get("abort"):
                transactions.abort_transaction()
        if "error" in facts:
            raise java_error(facts["error"])
        return records


class ListeningJavaSourceTask(JavaSourceTask):
    """A task that overrides `commitRecord`: the Java process keeps its records for that call."""

    def __init__(self, link: JavaLink, facts: Mapping[str, Any], *, exactly_once: bool) -> None:
        super().__init__(link, facts, exactly_once=exactly_once)
        self._exactly_once = exactly_once
        self._lock = threading.Lock()
        self._results: list[tuple[object, ...]] = []
        self._first = 0

    def poll(self) -> Sequence[SourceRecord]:
        self._send_results()
        records = super().poll()
        if isinstance(records, JavaSourceRecords):
            self._first = records.numbers[0] if records else 0
        return records

    def numbers(self, records: Sequence[SourceRecord]) -> Sequence[int]:
        """See `source.loop.NumbersItsRecords`."""
        if isinstance(records, JavaSourceRecords):
            return records.numbers
        return [record.number for record in records if isinstance(record, JavaSourceRecord)]

    def commit_number(self, number: int, metadata: RecordMetadata | None) -> None:
        """See `source.loop.NumbersItsRecords`."""
        with self._lock:
            # A result without fields means that the record was dropped.
            fields = (
                ()
                if metadata is None
                else (metadata.topic, metadata.partition, metadata.offset, metadata.timestamp)
            )
            self._results.append((number, *fields))
            is_full = len(self._results) >= RESULTS
        if is_full:
            self._send_results()

    def commit(self) -> None:
        # Records that an aborted transaction has dropped never get a result.
        self._send_results(forget_before=self._first if self._exactly_once else 0)
        super().commit()

    def stop(self) -> None:
        if not self._link.has_ended:
            self._send_results()
        super().stop()

    def _send_results(self, forget_before: int = 0) -> None:
        # The lock keeps the results in their order.
        with self._lock:
            results, self._results = self._results, []
            if results or forget_before:
                told: dict[str, object] = {"results": results}
                if forget_before:
                    told["forgetBefore"] = forget_before
                # The next poll reports the end of the process; a callback must not raise.
                with suppress(ConnectException):
                    self._link.tell(FrameKind.ACKS, json_bytes(told))
