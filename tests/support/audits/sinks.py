"""Sink connectors of the tests, which run in real child processes."""

import json
import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from pyconnect_api import ConnectException, SinkRecord, SinkTask, TopicPartition
from tests.support.plugins.plain_connectors import PlainSink, PlainSinkTask


class ReportingTask(PlainSinkTask):
    """A task that writes values to `file`, one a line, but reports those that begin with `errant`.

    `report`: `wait` waits for each report, `hide` catches the exception of the report, `changed`
    reports a record that the task made, otherwise plain reports. With `notes` each `put` requests a
    commit, and each commit appends `<offset> <reports so far> <reports that are not done>` there.
    """

    def start(self, props: Mapping[str, str]) -> None:
        self._file, self._how = Path(props["file"]), props.get("report", "")
        self._notes = Path(props["notes"]) if "notes" in props else None
        self._reports: list[Future[None]] = []

    def put(self, records: Sequence[SinkRecord]) -> None:
        if records and self._notes is not None:
            self.context.request_commit()
        for record in records:
            if str(record.value).startswith("errant"):
                self._report(record)
            else:
                with self._file.open("a") as out:
                    out.write(f"{record.value}\n")

    def pre_commit(
        self, current_offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        if self._notes is not None:
            unfinished = sum(not report.done() for report in self._reports)
            with self._notes.open("a") as out:
                out.writelines(
                    f"{offset} {len(self._reports)} {unfinished}\n"
                    for offset in current_offsets.values()
                )
        return current_offsets

    def _report(self, record: SinkRecord) -> None:
        reporter = self.context.errant_record_reporter()
        assert reporter is not None
        offset = record.original_kafka_offset
        if self._how == "changed":
            record = SinkRecord(
                record.topic, record.kafka_partition, None, "new key", None, "new value", offset
            )
        try:
            future = reporter.report(record, ValueError(f"no place for offset {offset}"))
        except ConnectException:
            if self._how != "hide":
                raise
            return
        self._reports.append(future)
        if self._how == "wait":
            future.result(30)


class ReportingSink(PlainSink):
    def task_class(self) -> type[SinkTask]:
        return ReportingTask


class BufferingTask(PlainSinkTask):
    """A task that writes files of `records.per.file` records of a partition into `directory`.

    A file is `<topic>-<partition>-<first offset>.json` with the list of its values; only records in
    files are committed. `finish.when.closing`: whether a smaller file is written when the partition
    is about to be closed; otherwise the buffer is dropped. Values are also appended to
    `directory/put` as they come.
    """

    def start(self, props: Mapping[str, str]) -> None:
        self._directory = Path(props["directory"])
        self._records_per_file = int(props["records.per.file"])
        self._finish_when_closing = props["finish.when.closing"] == "true"
        self._buffers: dict[TopicPartition, list[SinkRecord]] = {}
        self._written: dict[TopicPartition, int] = {}

    def put(self, records: Sequence[SinkRecord]) -> None:
        with (self._directory / "put").open("a") as out:
            out.writelines(f"{record.value}\n" for record in records)
        for record in records:
            partition = TopicPartition(record.original_topic, record.original_kafka_partition)
            buffer = self._buffers.setdefault(partition, [])
            buffer.append(record)
            if len(buffer) == self._records_per_file:
                self._write(partition)

    def pre_commit(
        self, current_offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        if self._finish_when_closing and self.context.is_closing:
            for partition in current_offsets:
                if self._buffers.get(partition):
                    self._write(partition)
        return {p: self._written[p] for p in current_offsets if p in self._written}

    def close(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self._buffers.pop(partition, None)
            self._written.pop(partition, None)

    def _write(self, partition: TopicPartition) -> None:
        records = self._buffers.pop(partition)
        first = records[0].original_kafka_offset
        path = self._directory / f"{partition}-{first}.json"
        path.write_text(json.dumps([record.value for record in records]))
        self._written[partition] = records[-1].original_kafka_offset + 1


class BufferingSink(PlainSink):
    def task_class(self) -> type[SinkTask]:
        return BufferingTask


class HangingTask(PlainSinkTask):
    """A task that writes values to `file`, one a line; `put` hangs when the file `flag` exists.

    `put` removes the flag first, so that its successor continues, and leaves `flag.taken`.
    """

    def start(self, props: Mapping[str, str]) -> None:
        self._file, self._flag = Path(props["file"]), Path(props["flag"])

    def put(self, records: Sequence[SinkRecord]) -> None:
        if records and self._flag.exists():
            self._flag.rename(f"{self._flag}.taken")
            threading.Event().wait()
        with self._file.open("a") as out:
            out.writelines(f"{record.value}\n" for record in records)


class HangingSink(PlainSink):
    def task_class(self) -> type[SinkTask]:
        return HangingTask


class UnstoppableTask(PlainSinkTask):
    """A task that takes records and forgets them; `stop` never returns."""

    def start(self, props: Mapping[str, str]) -> None:
        """Nothing to start."""

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Nothing to do."""

    def stop(self) -> None:
        threading.Event().wait()


class UnstoppableSink(PlainSink):
    def task_class(self) -> type[SinkTask]:
        return UnstoppableTask


REPORTING_SINK = f"{__name__}.ReportingSink"
BUFFERING_SINK = f"{__name__}.BufferingSink"
HANGING_SINK = f"{__name__}.HangingSink"
UNSTOPPABLE_SINK = f"{__name__}.UnstoppableSink"
