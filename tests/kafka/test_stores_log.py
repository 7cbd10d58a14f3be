"""The contract of a log, tested with the fake and with a real topic."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyconnect_agent.core.errors import KafkaError, WorkerStartError
from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_agent.kafka.admin import CompactedTopic
from pyconnect_agent.kafka.log import CompactedLog, Log, LogClients, ReadRecord
from tests.support.eventually import eventually
from tests.support.fakes.fake_log import FakeLog, FakeTopic
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker

TIMEOUT_MS = 60_000
PARTITIONS = 3


class Reader:
    """A reader that keeps its records and refuses one value."""

    def __init__(self) -> None:
        self.records: list[ReadRecord] = []
        self.shown = 0
        self.shown_when_caught_up: int | None = None
        self.refuse: bytes | None = None

    def apply(self, record: ReadRecord) -> None:
        if record.value is not None and record.value == self.refuse:
            raise ValueError("refused")
        self.records.append(record)

    def applied(self) -> None:
        self.shown = len(self.records)

    def caught_up(self) -> None:
        assert self.shown_when_caught_up is None
        self.shown_when_caught_up = len(self.records)

    def entries(self) -> set[tuple[bytes | None, bytes | None]]:
        return {(record.key, record.value) for record in self.records}


Opener = Callable[[], tuple[Log, Reader]]


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.kafka)])
def open_log(request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Return a function that opens logs of one topic, each as a worker of its own."""
    opened: list[Log] = []
    new_log: Callable[[], Log]
    if request.param == "fake":
        topic = FakeTopic(PARTITIONS)
        new_log = lambda: FakeLog(topic)  # noqa: E731
    else:
        broker: SharedBroker = request.getfixturevalue("kafka_broker")
        name = unique_name("log")
        new_log = lambda: real_log(broker, name)  # noqa: E731

    def open_one() -> tuple[Log, Reader]:
        log, reader = new_log(), Reader()
        opened.append(log)
        log.start(reader)
        return log, reader

    yield open_one
    for log in opened:
        log.stop()


def real_log(broker: SharedBroker, topic: str) -> CompactedLog:
    base = {"bootstrap.servers": broker.bootstrap_servers}
    return CompactedLog(
        CompactedTopic(
            name=topic,
            worker_key="test.storage.topic",
            purpose="test records",
            partitions=PARTITIONS,
            replication_factor=1,
        ),
        LogClients(producer=base, consumer=base, admin=base),
        "test-log",
    )


def batch(count: int, start: int = 0) -> list[LogRecord]:
    return [LogRecord(b"k%d" % n, b"v%d" % n) for n in range(start, start + count)]


def test_a_write_is_visible_after_reading_to_the_end(open_log: Opener) -> None:
    """A write, with tombstones and empty values, is visible after reading to the end."""
    log, reader = open_log()
    records = [*batch(20), LogRecord(b"gone", None), LogRecord(b"empty", b"")]
    log.write(records, TIMEOUT_MS)
    log.read_to_end(TIMEOUT_MS)
    assert reader.entries() == set(records)
    assert reader.shown == len(records)


def test_reading_to_the_end_sees_records_of_other_workers(open_log: Opener) -> None:
    """A read to the end includes each record that any worker's write has acknowledged."""
    (writer, _), (log, reader) = open_log(), open_log()
    writer.write(batch(5), TIMEOUT_MS)
    log.read_to_end(TIMEOUT_MS)
    assert reader.entries() == set(batch(5))


def test_existing_records_are_read_before_the_start_returns(open_log: Opener) -> None:
    """A later reader gets every existing record once."""
    writer, first = open_log()
    assert first.shown_when_caught_up == 0
    writer.write(batch(50), TIMEOUT_MS)
    _, reader = open_log()
    assert reader.shown_when_caught_up == 50
    assert reader.entries() == set(batch(50))


def test_each_partition_is_read_in_order_without_gaps(open_log: Opener) -> None:
    """The records of a key share a partition and keep their order."""
    log, reader = open_log()
    for version in range(4):
        log.write([LogRecord(b"a", b"%d" % version), LogRecord(b"b", b"x")], TIMEOUT_MS)
    log.read_to_end(TIMEOUT_MS)
    assert [r.value for r in reader.records if r.key == b"a"] == [b"0", b"1", b"2", b"3"]
    assert len({r.partition for r in reader.records if r.key == b"a"}) == 1
    for partition in {record.partition for record in reader.records}:
        offsets = [record.offset for record in reader.records if record.partition == partition]
        assert offsets == list(range(len(offsets)))


def test_a_record_that_its_reader_refuses_is_lost_alone(open_log: Opener) -> None:
    """A record that the reader refuses is skipped, and the read reaches the end."""
    log, reader = open_log()
    reader.refuse = b"v3"
    log.write(batch(10), TIMEOUT_MS)
    log.read_to_end(TIMEOUT_MS)
    assert reader.entries() == set(batch(10)) - {LogRecord(b"k3", b"v3")}


def test_a_send_reports_its_delivery_and_is_then_readable(open_log: Opener) -> None:
    """A sent record is reported by `flush`, and a read to the end flushes first."""
    log, reader = open_log()
    reports: list[KafkaError | None] = []
    log.send(LogRecord(b"k", b"1"), reports.append)
    log.flush(TIMEOUT_MS)
    eventually(lambda: reports == [None])
    log.send(LogRecord(b"k", b"2"), reports.append)
    log.read_to_end(TIMEOUT_MS)
    assert [record.value for record in reader.records] == [b"1", b"2"]


def test_an_empty_write_is_done_at_once(open_log: Opener) -> None:
    """An empty write returns at once."""
    log, reader = open_log()
    log.write([], TIMEOUT_MS)
    log.read_to_end(TIMEOUT_MS)
    assert reader.records == []


@pytest.mark.parametrize("kind", ["fake", pytest.param("real", marks=pytest.mark.kafka)])
def test_a_log_that_is_not_started_refuses_writes(
    kind: str, request: pytest.FixtureRequest
) -> None:
    """A log that is not started refuses writes, because it has no producer."""
    log: Log = FakeLog()
    if kind == "real":
        log = real_log(request.getfixturevalue("kafka_broker"), unique_name("log"))
    with pytest.raises(KafkaError):
        log.write(batch(1), TIMEOUT_MS)


@pytest.mark.kafka
def test_a_reader_that_cannot_take_the_end_of_the_first_read_ends_the_process(
    kafka_broker: SharedBroker, deaths: list[BaseException]
) -> None:
    """The process ends if the reader fails after the first read: the start would wait forever."""
    log, reader, error = real_log(kafka_broker, unique_name("log")), Reader(), RuntimeError()

    def caught_up() -> None:
        raise error

    reader.caught_up = caught_up  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(log.start, reader)
        eventually(lambda: deaths == [error])
        log.stop()
        with pytest.raises(WorkerStartError, match="the worker is stopping"):
            starting.result()
