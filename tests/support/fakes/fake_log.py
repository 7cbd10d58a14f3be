"""A log in memory with the behaviour of `pyconnect_agent.kafka.log.CompactedLog`, step by step.

Several logs may share one `FakeTopic`, as workers share a topic. A log's reader gets records only
by `tail` or `read_to_end`, and sends end only by `settle` or `flush`.
`tests/kafka/test_stores_log.py` runs the same tests on the fake and the real log.
"""

import zlib
from collections.abc import Sequence

from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_agent.kafka.log import LogReader, ReadRecord
from pyconnect_agent.kafka.producer import OnDelivery


class FakeTopic:
    """Records of a topic in the order of their writing; timestamps count the writes."""

    def __init__(self, partitions: int = 1) -> None:
        self.partitions = partitions
        self.records: list[ReadRecord] = []
        self._ends = [0] * partitions

    def append(self, key: bytes | None, value: bytes | None) -> ReadRecord:
        partition = zlib.crc32(key or b"") % self.partitions
        record = ReadRecord(partition, self._ends[partition], len(self.records), key, value)
        self._ends[partition] += 1
        self.records.append(record)
        return record

    def live(self) -> dict[bytes | None, bytes]:
        """Return the records that compaction would leave."""
        entries: dict[bytes | None, bytes] = {}
        for record in self.records:
            if record.value is None:
                entries.pop(record.key, None)
            else:
                entries[record.key] = record.value
        return entries


class FakeLog:
    """A `pyconnect_agent.kafka.log.Log` in memory."""

    def __init__(self, topic: FakeTopic | None = None) -> None:
        self.topic = topic or FakeTopic()
        self.writes: list[tuple[LogRecord, ...]] = []
        self.write_failures: list[KafkaError] = []
        self.read_failures: list[KafkaError] = []
        self.pending: list[tuple[LogRecord, OnDelivery]] = []
        self.stopped = False
        self._reader: LogReader | None = None
        self._position = 0

    def start(self, reader: LogReader) -> None:
        self._reader = reader
        self.tail()
        reader.caught_up()

    def stop(self) -> None:
        self.settle()
        self.stopped = True

    def tail(self) -> None:
        """Give the reader the records it has not read; only a record that it refuses is lost."""
        if self._reader is None:
            raise KafkaError("The log is not started")
        while self._position < len(self.topic.records):
            record = self.topic.records[self._position]
            self._position += 1
            try:
                self._reader.apply(record)
            except Exception:
                continue
        self._reader.applied()

    def read_to_end(self, timeout_ms: float) -> None:
        if self.read_failures:
            raise self.read_failures.pop(0)
        self.flush(timeout_ms)
        self.tail()

    def write(self, records: Sequence[LogRecord], timeout_ms: float) -> None:
        """Write all records; or write none and raise the next of `write_failures`."""
        if self._reader is None:
            raise KafkaError("The log is not started")
        if self.write_failures:
            raise self.write_failures.pop(0)
        self.writes.append(tuple(records))
        for record in records:
            self.topic.append(record.key, record.value)

    def send(self, record: LogRecord, on_delivery: OnDelivery) -> None:
        """Keep the record until `settle`."""
        if self._reader is None:
            raise KafkaError("The log is not started")
        self.pending.append((record, on_delivery))

    def settle(self, failure: KafkaError | None = None) -> int:
        """End all pending sends, with `failure` if given; return how many there were."""
        pending, self.pending = self.pending, []
        for record, on_delivery in pending:
            if failure is None:
                self.topic.append(record.key, record.value)
            on_delivery(failure)
        return len(pending)

    def flush(self, timeout_ms: float) -> None:
        if self._reader is None:
            raise KafkaError("The log is not started")
        self.settle()
