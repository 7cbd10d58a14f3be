"""Behaviour of internal topics that only a real broker shows.

Cleanup policy, transactions, partitions, and the loss of a broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from pyconnect_agent.core.clients.configs import InternalTopic
from pyconnect_agent.core.errors import RetriableKafkaError, WorkerConfigError, WorkerStartError
from pyconnect_agent.core.ids import State, TargetState
from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_agent.core.reporting import Status
from pyconnect_agent.kafka.admin import Admin, CompactedTopic, TopicSpec
from pyconnect_agent.kafka.log import CompactedLog, LogClients, ReadRecord
from pyconnect_agent.stores.config import ConfigStore
from pyconnect_agent.stores.offset import KafkaOffsetStore
from pyconnect_agent.stores.status import StatusStore
from tests.support.agents.worker_properties import store_log
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import Servers, SharedBroker

pytestmark = pytest.mark.kafka

TIMEOUT_MS = 60_000


CONFIGS, OFFSETS, STATUSES = InternalTopic.CONFIGS, InternalTopic.OFFSETS, InternalTopic.STATUSES


@pytest.fixture
def bootstrap(kafka_broker: SharedBroker) -> str:
    return kafka_broker.bootstrap_servers


@pytest.fixture
def admin(bootstrap: str) -> Admin:
    return Admin({"bootstrap.servers": bootstrap})


@pytest.fixture
def started() -> Iterator[Callable[[CompactedLog], Records]]:
    """Return a function that starts logs with a reader each; the logs stop with the test."""
    logs: list[CompactedLog] = []

    def start(log: CompactedLog) -> Records:
        logs.append(log)
        reader = Records()
        log.start(reader)
        return reader

    yield start
    for log in logs:
        log.stop()


class Records:
    """A reader that keeps its records."""

    def __init__(self) -> None:
        self.read: list[ReadRecord] = []

    def apply(self, record: ReadRecord) -> None:
        self.read.append(record)

    def applied(self) -> None: ...
    def caught_up(self) -> None: ...

    def values(self) -> list[bytes | None]:
        return [record.value for record in self.read]


def test_an_absent_topic_is_created_compacted_with_its_settings(
    bootstrap: str, admin: Admin, started: Callable[[CompactedLog], Records]
) -> None:
    """A new topic has the worker's settings, except for the cleanup policy."""
    name = unique_name("statuses")
    settings = {"partitions": "3", "segment.bytes": "2000000", "cleanup.policy": "delete"}
    properties = {f"status.storage.{key}": value for key, value in settings.items()}
    log = store_log(STATUSES, bootstrap, name, properties)
    started(log)
    assert log.partition_count == 3
    assert admin.topic_setting(name, "cleanup.policy", TIMEOUT_MS) == "compact"
    assert admin.topic_setting(name, "segment.bytes", TIMEOUT_MS) == "2000000"


@cases(
    "kind, key, purpose",
    (CONFIGS, "config.storage.topic", "connector configurations"),
    (OFFSETS, "offset.storage.topic", "source connector offsets"),
    (STATUSES, "status.storage.topic", "connector and task statuses"),
)
def test_a_topic_that_is_not_only_compacted_is_refused(
    bootstrap: str, admin: Admin, kind: InternalTopic, key: str, purpose: str
) -> None:
    """A topic that is not only compacted is refused with Apache's text about the property."""
    name = unique_name("deleting")
    admin.create_topic(
        TopicSpec(name=name, replication_factor=1, settings={"cleanup.policy": "compact,delete"}),
        TIMEOUT_MS,
    )
    log = store_log(kind, bootstrap, name)
    with pytest.raises(WorkerConfigError) as refusal:
        log.start(Records())
    log.stop()
    assert str(refusal.value) == (
        f"Topic '{name}' supplied via the '{key}' property is required to have "
        f"'cleanup.policy=compact' to guarantee consistency and durability of {purpose}, but found "
        "the topic currently has 'cleanup.policy=compact,delete'. Continuing would likely result "
        f"in eventually losing {purpose} and problems restarting this Connect cluster in the "
        f"future. Change the '{key}' property in the Connect worker configurations to use a topic "
        "with 'cleanup.policy=compact'."
    )


def test_a_topic_that_may_not_be_created_has_to_exist(bootstrap: str, admin: Admin) -> None:
    """Without automatic creation a missing topic is refused with Apache's text."""
    name = unique_name("configs")
    no_creation = {"internal.topics.automatic.creation.enable": "false"}
    log = store_log(CONFIGS, bootstrap, name, no_creation)
    with pytest.raises(WorkerConfigError) as refusal:
        log.start(Records())
    log.stop()
    assert str(refusal.value) == (
        f"Topic '{name}' specified via the 'config.storage.topic' property is missing. The config "
        "'internal.topics.automatic.creation.enable' is set to 'false', so automatic creation of "
        "internal topics is disabled. Either enable automatic creation or create the topics "
        "manually."
    )
    assert admin.partition_count(name, TIMEOUT_MS) == 0
    compacted = {"cleanup.policy": "compact"}
    admin.create_topic(TopicSpec(name=name, replication_factor=1, settings=compacted), TIMEOUT_MS)
    log = store_log(CONFIGS, bootstrap, name, no_creation)
    log.start(Records())
    log.stop()
    assert log.partition_count == 1


def test_a_config_topic_with_several_partitions_is_refused(bootstrap: str, admin: Admin) -> None:
    """A config topic with several partitions is refused: their order would be undefined."""
    name = unique_name("configs")
    compacted = {"cleanup.policy": "compact"}
    admin.create_topic(
        TopicSpec(name=name, partitions=2, replication_factor=1, settings=compacted), TIMEOUT_MS
    )
    log = store_log(CONFIGS, bootstrap, name)
    with pytest.raises(WorkerConfigError) as refusal:
        log.start(Records())
    log.stop()
    assert str(refusal.value) == (
        f"Topic '{name}' supplied via the 'config.storage.topic' property is required to have a "
        "single partition in order to guarantee consistency of connector configurations, but "
        "found 2 partitions."
    )


def test_topics_that_cannot_be_created_fail_the_start(bootstrap: str) -> None:
    """A creation that fails is repeated until its timeout, and then the start fails."""
    properties = {
        "status.storage.replication.factor": "3",
        "default.api.timeout.ms": "3000",
        "request.timeout.ms": "3000",
    }
    log = store_log(STATUSES, bootstrap, unique_name("statuses"), properties)
    with pytest.raises(WorkerStartError, match="replication factor"):
        log.start(Records())
    log.stop()


def test_an_unreachable_broker_fails_the_start() -> None:
    """Without a broker the start fails after `default.api.timeout.ms`."""
    timeouts = {"default.api.timeout.ms": "1500", "request.timeout.ms": "1500"}
    log = store_log(CONFIGS, "127.0.0.1:1", "configs", timeouts)
    with pytest.raises(WorkerStartError):
        log.start(Records())
    log.stop()


def test_a_misspelt_client_property_is_a_configuration_error() -> None:
    """A misspelt client property is a configuration error that names it."""
    topic = CompactedTopic(
        name="t", worker_key="k", purpose="p", partitions=1, replication_factor=1
    )
    servers = {"bootstrap.servers": "127.0.0.1:1"}
    broken = LogClients(
        producer=servers, consumer=servers, admin={**servers, "no.such.property": "x"}
    )
    with pytest.raises(WorkerConfigError, match=r"no\.such\.property"):
        CompactedLog(topic, broken, "thread").start(Records())


def exactly_once(support: str) -> dict[str, str]:
    return {"exactly.once.source.support": support}


def transactional_producer(bootstrap: str) -> Producer:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": unique_name("transaction")}
    )
    producer.init_transactions(TIMEOUT_MS / 1000)
    return producer


@cases("support", "disabled", "preparing", "enabled")
def test_reading_to_the_end_passes_transaction_markers(
    bootstrap: str, started: Callable[[CompactedLog], Records], support: str
) -> None:
    """A read to the end passes markers of transactions, which no consumer gets."""
    name = unique_name("configs")
    log = store_log(CONFIGS, bootstrap, name, exactly_once(support))
    reader = started(log)
    producer = transactional_producer(bootstrap)
    for value, commit in ((b"committed", True), (b"aborted", False)):
        producer.begin_transaction()
        producer.produce(name, key=b"k", value=value)
        producer.flush(TIMEOUT_MS / 1000)
        if commit:
            producer.commit_transaction(TIMEOUT_MS / 1000)
        else:
            producer.abort_transaction(TIMEOUT_MS / 1000)
        log.read_to_end(TIMEOUT_MS)
    expected = [b"committed"] if support == "enabled" else [b"committed", b"aborted"]
    assert reader.values() == expected
    late = started(store_log(CONFIGS, bootstrap, name, exactly_once(support)))
    assert late.values() == expected


def test_an_open_transaction_holds_read_committed_readers_back(
    bootstrap: str, started: Callable[[CompactedLog], Records]
) -> None:
    """A read to the end waits for an open transaction, whose records may be committed."""
    name = unique_name("configs")
    committed = store_log(CONFIGS, bootstrap, name, exactly_once("enabled"))
    uncommitted = store_log(CONFIGS, bootstrap, name)
    careful, careless = started(committed), started(uncommitted)
    producer = transactional_producer(bootstrap)
    producer.begin_transaction()
    producer.produce(name, key=b"k", value=b"v")
    producer.flush(TIMEOUT_MS / 1000)
    uncommitted.read_to_end(TIMEOUT_MS)
    assert careless.values() == [b"v"]
    with pytest.raises(RetriableKafkaError, match="timed out"):
        committed.read_to_end(500)
    assert careful.values() == []
    producer.commit_transaction(TIMEOUT_MS / 1000)
    committed.read_to_end(TIMEOUT_MS)
    assert careful.values() == [b"v"]


def murmur2(data: bytes) -> int:
    """Return Kafka's Utils.murmur2 as an unsigned number, checked below with Kafka's examples."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = (0x9747B28C ^ len(data)) & mask
    for i in range(0, len(data) - len(data) % 4, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & mask
        h = (h * m & mask) ^ ((k ^ k >> 24) * m & mask)
    tail = data[len(data) - len(data) % 4 :]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


@cases("kind", OFFSETS, STATUSES)
def test_keys_are_placed_where_java_workers_look(
    bootstrap: str, started: Callable[[CompactedLog], Records], kind: InternalTopic
) -> None:
    """Keys are placed as Java places them, so that each key has one live record."""
    assert murmur2(b"21") == -973932308 & 0xFFFFFFFF
    assert murmur2(b"foobar") == -790332482 & 0xFFFFFFFF
    partitions = {"offset.storage.partitions": "7", "status.storage.partitions": "7"}
    log = store_log(kind, bootstrap, unique_name("placed"), partitions)
    reader = started(log)
    keys = [b"status-connector-c%d" % n for n in range(40)]
    log.write([LogRecord(key, b"v") for key in keys], TIMEOUT_MS)
    log.read_to_end(TIMEOUT_MS)
    assert {record.key: record.partition for record in reader.read} == {
        key: (murmur2(key) & 0x7FFFFFFF) % 7 for key in keys
    }


def test_committed_offsets_of_the_group_id_are_not_used(
    bootstrap: str, started: Callable[[CompactedLog], Records]
) -> None:
    """The whole log is read although another client has committed offsets in the same group."""
    name = unique_name("configs")
    log = store_log(CONFIGS, bootstrap, name)
    started(log)
    log.write([LogRecord(b"k", b"v")], TIMEOUT_MS)
    group = {"group.id": unique_name("group")}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            **group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([name])
    eventually(lambda: (found := consumer.poll(0.1)) is not None and found.error() is None)
    consumer.commit(asynchronous=False)
    consumer.close()
    assert started(store_log(CONFIGS, bootstrap, name, group)).values() == [b"v"]


def test_stores_share_their_topics_with_other_workers(bootstrap: str) -> None:
    """Each worker reads the configs, statuses and offsets that another worker writes."""
    names = {kind: unique_name(kind) for kind in ("configs", "statuses", "offsets")}
    changes: list[object] = []

    def open_stores() -> tuple[ConfigStore, StatusStore, KafkaOffsetStore]:
        stores = (
            ConfigStore(store_log(CONFIGS, bootstrap, names["configs"])),
            StatusStore(store_log(STATUSES, bootstrap, names["statuses"])),
            KafkaOffsetStore(store_log(OFFSETS, bootstrap, names["offsets"])),
        )
        stores[0].start(changes.extend)
        stores[1].start()
        stores[2].start()
        return stores

    workers = [open_stores(), open_stores()]
    try:
        (configs, statuses, offsets), (other_configs, other_statuses, other_offsets) = workers
        configs.put_connector_config("c", {"name": "c"}, TargetState.PAUSED)
        configs.put_task_configs("c", [{"t": "0"}, {"t": "1"}])
        configs.put_target_state("c", TargetState.STOPPED)
        other_configs.refresh(TIMEOUT_MS)
        assert other_configs.snapshot().connector_config("c") == {"name": "c"}
        assert other_configs.snapshot().task_count("c") == 2
        assert other_configs.snapshot().target_state("c") is TargetState.STOPPED
        running = Status(state=State.RUNNING, worker_id="w:1", generation=1)
        statuses.put("c", running)
        statuses.flush(TIMEOUT_MS)
        eventually(lambda: other_statuses.connector("c") == running)
        offsets.write({b'["c",{"f":"x"}]': b'{"p":1}'}, TIMEOUT_MS)
        assert other_offsets.read([b'["c",{"f":"x"}]'], TIMEOUT_MS) == {
            b'["c",{"f":"x"}]': b'{"p":1}'
        }
        configs.remove_connector_config("c")
        other_configs.refresh(TIMEOUT_MS)
        assert not other_configs.snapshot().contains("c")
    finally:
        for stores in workers:
            for store in stores:
                store.stop()


def test_a_log_survives_the_death_of_its_broker(servers: Servers, tmp_path: Path) -> None:
    """Writes and reads to the end fail at their deadline; afterwards both work again."""
    broker = servers.broker()
    bootstrap = broker.bootstrap_servers
    log = store_log(CONFIGS, bootstrap, "configs")
    reader = Records()
    log.start(reader)
    try:
        log.write([LogRecord(b"k", b"before")], TIMEOUT_MS)
        broker.kill()
        with pytest.raises(RetriableKafkaError):
            log.write([LogRecord(b"k", b"during")], 500)
        with pytest.raises(RetriableKafkaError):
            log.read_to_end(500)
        broker.start()
        log.write([LogRecord(b"k", b"after")], 60_000)
        log.read_to_end(60_000)
        # The record of the failed write is delivered later, as in Kafka.
        assert reader.values() == [b"before", b"during", b"after"]
    finally:
        log.stop()
