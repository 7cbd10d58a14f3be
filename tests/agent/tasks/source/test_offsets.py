"""Offsets of a source connector in its own topic and in the worker's topic."""

import threading
from collections import ChainMap
from collections.abc import Mapping

import pytest

from pyconnect_agent.core.errors import KafkaError, RetriableKafkaError
from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_agent.kafka.log import CompactedLog
from pyconnect_agent.tasks.source import offsets as source_offset_stores
from pyconnect_agent.tasks.source.offsets import (
    COPIED_AT_ONCE,
    OffsetStores,
    OffsetUse,
    OwnCommits,
    OwnOffsetsStore,
    WorkerCopies,
    WorkerOffsets,
    offset_stores,
    own_offset_log,
)
from pyconnect_api import ConfigException, ConnectException
from tests.agent.tasks.source.fake_offsets import FakeWorkerStore
from tests.support.agents.worker_properties import distributed
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fakes.fake_log import FakeLog, FakeTopic

KEY = b'["c",{"a":1,"b":2}]'
SAME = b'["c",{"b":2,"a":1}]'
OTHER = b'["c",{"a":3}]'
GONE = b'["c",{"a":4}]'
WAIT_MS = 30_000

Entries = Mapping[bytes, bytes | None]


def never() -> bool:
    return False


def own(
    worker: FakeWorkerStore, topic: FakeTopic | None = None, *, is_only_task: bool = False
) -> tuple[OwnOffsetsStore, FakeLog]:
    log = FakeLog(topic)
    stores = OwnOffsetsStore("own", log, worker, OwnCommits(active=is_only_task), WAIT_MS)
    assert stores.start(never)
    return stores, log


def copied(stores: OwnOffsetsStore, worker: FakeWorkerStore) -> dict[bytes, bytes | None]:
    stores.close()
    return {key: value for write in worker.writes for key, value in write.items()}


def test_the_own_value_wins_and_the_workers_is_the_fallback() -> None:
    """Each key is looked up in the connector's own topic first, then in the worker's."""
    worker = FakeWorkerStore(entries={KEY: b"old", OTHER: b"theirs"})
    stores, log = own(worker)
    log.topic.append(SAME, b"new")
    assert stores.read((KEY, OTHER), WAIT_MS) == {KEY: b"new", OTHER: b"theirs"}


def test_a_write_goes_to_the_own_topic_and_then_to_the_workers() -> None:
    """A write uses the raw key in use; the copy follows only a successful write."""
    worker = FakeWorkerStore()
    stores, log = own(worker)
    log.topic.append(SAME, b"1")
    stores.read((), WAIT_MS)
    stores.write({KEY: b"2"}, WAIT_MS)
    assert log.topic.live() == {SAME: b"2"}
    assert copied(stores, worker) == {KEY: b"2"}
    worker = FakeWorkerStore()
    stores, log = own(worker)
    log.write_failures.append(RetriableKafkaError("no"))
    with pytest.raises(RetriableKafkaError):
        stores.write({KEY: b"2"}, WAIT_MS)
    assert copied(stores, worker) == {}


def test_tombstones_are_in_the_workers_topic_first() -> None:
    """Reads would find the worker's value, so a failed tombstone there prevents the write."""
    worker = FakeWorkerStore()
    stores, log = own(worker)
    worker.failures.append(KafkaError("no"))
    with pytest.raises(KafkaError):
        stores.write({KEY: None, OTHER: b"1"}, WAIT_MS)
    assert log.writes == []
    stores.write({KEY: None, OTHER: b"1"}, WAIT_MS)
    assert worker.writes[0] == {KEY: None}
    assert set(log.writes[0]) == {LogRecord(KEY, None), LogRecord(OTHER, b"1")}
    assert copied(stores, worker) == {KEY: None, OTHER: b"1"}


def test_a_transaction_is_prepared_from_the_own_topics_keys() -> None:
    """Other keys of equal content get tombstones; tombstones are also in the worker's topic."""
    worker = FakeWorkerStore()
    stores, log = own(worker)
    log.topic.append(KEY, b"1")
    log.topic.append(SAME, b"2")
    stores.read((), WAIT_MS)
    records = stores.prepare({KEY: b"3", OTHER: None})
    assert set(records) == {LogRecord(KEY, None), LogRecord(SAME, b"3"), LogRecord(OTHER, None)}
    assert worker.writes == [{OTHER: None}]


def test_a_failed_copy_is_only_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A failed copy is logged, and the next offset of the partition is copied again."""
    worker = FakeWorkerStore(failures=[KafkaError("no")])
    stores, _ = own(worker)
    stores.committed({KEY: b"1"})
    assert copied(stores, worker) == {}
    assert "offsets were committed, but not copied" in caplog.text
    stores.committed({KEY: b"2"})
    assert copied(stores, worker) == {KEY: b"2"}


class SlowWrites:
    """Writes that set `begun`, and end when `go_on` is set."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.writes: list[dict[bytes, bytes | None]] = []

    def write(self, entries: dict[bytes, bytes | None], timeout_ms: int) -> None:
        self.begun.set()
        assert self.go_on.wait(WAIT_MS / 1000)
        self.writes.append(entries)


def test_copies_of_one_partition_are_not_piled_up() -> None:
    """While one write is under way, only the newest offset of each partition waits."""
    slow = SlowWrites()
    copies = WorkerCopies(slow.write, WAIT_MS)
    copies.put({KEY: b"1"})
    assert slow.begun.wait(WAIT_MS / 1000)
    for number in range(2, 100):
        copies.put({KEY: b"%d" % number})
    slow.go_on.set()
    assert copies.flush(WAIT_MS / 1000)
    assert slow.writes == [{KEY: b"1"}, {KEY: b"99"}]


def test_very_many_copies_go_out_in_parts() -> None:
    """Very many copies are written in parts, each partition once."""
    writes: list[dict[bytes, bytes | None]] = []
    copies = WorkerCopies(lambda entries, timeout_ms: writes.append(entries), WAIT_MS)
    entries = {b"%d" % number: b"1" for number in range(2 * COPIED_AT_ONCE + 1)}
    copies.put(entries)
    assert copies.flush(WAIT_MS / 1000)
    assert [len(written) for written in writes] == [COPIED_AT_ONCE, COPIED_AT_ONCE, 1]
    assert {key for written in writes for key in written} == entries.keys()


def test_a_tombstone_is_not_overtaken_by_a_copy() -> None:
    """A waiting copy of the key is dropped; a tombstone waits for a copy that is being written."""
    slow = SlowWrites()
    copies = WorkerCopies(slow.write, WAIT_MS)
    copies.put({KEY: b"1"})
    assert slow.begun.wait(WAIT_MS / 1000)
    copies.put({KEY: b"2", OTHER: b"2"})
    burying = threading.Thread(target=copies.bury, args=((KEY,), WAIT_MS))
    burying.start()
    slow.go_on.set()
    burying.join(WAIT_MS / 1000)
    assert copies.flush(WAIT_MS / 1000)
    assert slow.writes[0] == {KEY: b"1"}
    assert dict(ChainMap(*reversed(slow.writes))) == {KEY: None, OTHER: b"2"}


@cases("is_only_task", True, False)
@cases("has_own_topic", True, False)
def test_an_only_task_does_not_read_its_commits(*, is_only_task: bool, has_own_topic: bool) -> None:
    """Keys that an only task has committed, tombstones included, are not read again."""
    worker = FakeWorkerStore(entries={OTHER: b"theirs"})
    own_commits = OwnCommits(active=is_only_task)
    stores: OffsetStores = WorkerOffsets("offsets", worker, own_commits, reads_first=True)
    if has_own_topic:
        stores, _ = own(worker, is_only_task=is_only_task)
    stores.committed({KEY: b"1"})
    stores.committed({SAME: b"2", GONE: None})
    reads = worker.reads
    assert stores.read((KEY, GONE), WAIT_MS) == ({KEY: b"2", GONE: None} if is_only_task else {})
    assert (worker.reads > reads) is not is_only_task
    assert stores.read((KEY, OTHER), WAIT_MS)[OTHER] == b"theirs"


def test_in_the_workers_topic_a_partition_keeps_its_raw_key() -> None:
    """The raw key is looked up once for any order of members, as the first write leaves one key."""
    worker = FakeWorkerStore(used={KEY: (SAME, KEY)})
    stores = WorkerOffsets("offsets", worker, OwnCommits(), reads_first=True)
    expected = {LogRecord(SAME, b"1"), LogRecord(KEY, None), LogRecord(OTHER, b"1")}
    assert set(stores.prepare({KEY: b"1", OTHER: b"1"})) == expected
    assert stores.prepare({KEY: b"2"}) == [LogRecord(SAME, b"2")]
    assert stores.prepare({SAME: b"3"}) == [LogRecord(SAME, b"3")]
    assert worker.asked == [(KEY, OTHER)]


def test_a_copy_that_waits_is_the_newest_of_its_partition() -> None:
    """Raw keys that differ in the order of members count as one partition."""
    slow = SlowWrites()
    copies = WorkerCopies(slow.write, WAIT_MS)
    copies.put({OTHER: b"1"})
    copies.put({KEY: b"1"})
    copies.put({SAME: b"2"})
    slow.go_on.set()
    assert copies.flush(WAIT_MS / 1000)
    assert dict(ChainMap(*slow.writes)) == {OTHER: b"1", SAME: b"2"}


def test_so_many_partitions_are_remembered_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of partitions is limited, so that a task of ever new partitions does not grow."""
    monkeypatch.setattr(source_offset_stores, "KNOWN_KEYS", 2)
    worker = FakeWorkerStore()
    stores = WorkerOffsets("offsets", worker, OwnCommits(), reads_first=True)
    stores.prepare({b"1": b"", b"2": b""})
    stores.prepare({b"2": b"", b"3": b""})
    stores.prepare({b"2": b""})
    assert worker.asked == [(b"1", b"2"), (b"2", b"3")]


def test_so_many_own_commits_are_remembered_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_offset_stores, "KNOWN_KEYS", 2)
    own_commits = OwnCommits(active=True)
    for key in (b"1", b"2", b"3"):
        own_commits.add({key: b""})
    assert own_commits.lookup((b"1",)) is None
    assert own_commits.lookup((b"3",)) == {b"3": b""}


def test_exactly_once_reads_the_workers_store_to_its_end_first() -> None:
    """The store is read to the end, as an older task may have committed raw keys."""
    worker = FakeWorkerStore(failures=[RetriableKafkaError("not yet")])
    assert WorkerOffsets("offsets", worker, OwnCommits(), reads_first=True).start(never)
    assert worker.reads == 2
    assert WorkerOffsets("offsets", worker, OwnCommits(), reads_first=False).start(never)
    assert worker.reads == 2


def test_a_start_that_fails_says_of_which_topic() -> None:
    """The error names the topic; a start is given up when it is no longer wanted."""
    worker = FakeWorkerStore(failures=[KafkaError("no")])
    with pytest.raises(ConnectException, match="read to the end"):
        WorkerOffsets("offsets", worker, OwnCommits(), reads_first=True).start(never)
    assert not WorkerOffsets("offsets", worker, OwnCommits(), reads_first=True).start(lambda: True)

    class Unreadable(FakeLog):
        def start(self, reader: object) -> None:
            raise KafkaError("no")

    with pytest.raises(ConnectException, match="offsets topic 'own'"):
        OwnOffsetsStore("own", Unreadable(), worker, OwnCommits(), WAIT_MS).start(never)


def test_an_unforeseen_failure_to_copy_ends_the_task(deaths: list[BaseException]) -> None:
    """A failure other than of the store ends the task, as later copies would wait for ever."""
    error = RuntimeError("unforeseen")

    def write(entries: dict[bytes, bytes | None], timeout_ms: int) -> None:
        raise error

    copies = WorkerCopies(write, WAIT_MS)
    copies.put({KEY: b"1"})
    eventually(lambda: deaths == [error])


OWN = {"offsets.storage.topic": "mine"}
ELSEWHERE = {
    f"{client}.override.bootstrap.servers": f"{client}:1"
    for client in ("producer", "consumer", "admin")
}


def log_of(writes: bool, config: dict[str, str], **properties: str) -> CompactedLog:
    worker = distributed(**properties)
    found = own_offset_log(worker, "c", config, client="c-0", writes=writes)
    assert found is not None
    assert found[0] == "mine"
    return found[1]


def test_the_topic_is_made_as_the_workers_settings_say() -> None:
    """The topic has the worker's settings, and is created only if the worker may create topics."""
    topic = log_of(
        writes=False,
        config=OWN,
        offset_storage_partitions="7",
        offset_storage_replication_factor="2",
        offset_storage_segment_ms="5",
    )._topic
    assert (topic.name, topic.partitions) == ("mine", 7)
    assert topic.settings == {"segment.ms": "5"}
    assert topic.worker_key == "offsets.storage.topic"
    assert topic.create
    disabled = {"internal_topics_automatic_creation_enable": "false"}
    assert not log_of(writes=False, config=OWN, **disabled)._topic.create


def test_each_client_has_the_connectors_overrides() -> None:
    """The consumer's settings read the topic, the admin's find it, the producer's write it."""
    clients = log_of(writes=True, config={**OWN, **ELSEWHERE})._clients
    assert clients.producer is not None
    servers = [
        config["bootstrap.servers"]
        for config in (clients.producer, clients.consumer, clients.admin)
    ]
    assert servers == ["producer:1", "consumer:1", "admin:1"]


@cases(
    "support, override, level",
    ("disabled", None, "read_committed"),
    ("disabled", "read_uncommitted", "read_uncommitted"),
    ("enabled", "read_uncommitted", "read_committed"),
)
def test_uncommitted_offsets_are_not_read(support: str, override: str | None, level: str) -> None:
    """Only exactly-once support enforces read_committed; otherwise overrides can change it."""
    config = {**OWN, **({"consumer.override.isolation.level": override} if override else {})}
    clients = log_of(writes=False, config=config, exactly_once_source_support=support)._clients
    assert clients.consumer["isolation.level"] == level
    assert clients.producer is None


@cases("client", "producer", "consumer", "admin")
def test_a_forbidden_override_is_refused_again_at_start(client: str) -> None:
    """The override policy may have changed since the connector was created."""
    config = {**OWN, f"{client}.override.client.rack": "r"}
    with pytest.raises(ConfigException, match="Client Config Overrides not allowed"):
        log_of(writes=True, config=config, connector_client_config_override_policy="None")


@pytest.mark.parametrize("use", list(OffsetUse))
def test_a_task_without_its_own_offsets_topic_asks_the_worker(use: OffsetUse) -> None:
    """Only an exactly-once task has the worker's topic read to its end first."""
    worker = distributed(exactly_once_source_support="enabled")
    store = FakeWorkerStore()
    stores = offset_stores(worker, "c", {}, store, client="c-0", use=use)
    assert isinstance(stores, WorkerOffsets)
    assert stores.topic == worker.offset_storage_topic
    assert stores.start(lambda: False)
    assert store.reads == (1 if use is OffsetUse.EXACTLY_ONCE else 0)
    own = offset_stores(worker, "c", OWN, store, client="c-0", use=use)
    assert isinstance(own, OwnOffsetsStore)
    assert own.topic == "mine"
