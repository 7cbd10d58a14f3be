"""The agent's and the commands' clients on a real broker: topics, leaders, queues, transactions.

The tests have topics that do not exist on a broker that creates topics when it is asked, leaders
that have moved, more requests at once than kafka-python takes by default, topics that are written
all the time, as busy sources' offsets are, and task counts in a config topic (KIP-618).
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.protocol.metadata import MetadataRequest

from pyconnect_agent.core.clients.configs import kafka_python_config
from pyconnect_agent.core.errors import KafkaError, RetriableKafkaError
from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_agent.kafka.acl_probes import AclProbes
from pyconnect_agent.kafka.admin import Admin
from pyconnect_agent.kafka.producer import LogProducer
from pyconnect_cli.errors import NotFound
from pyconnect_cli.kafka.admin import KafkaAccess, connected
from pyconnect_cli.kafka.reader import task_counts
from pyconnect_cli.kafka.writer import OffsetsTopics
from pyconnect_cli.upgrade.gather import aborted_offsets
from pyconnect_clients.acls.model import (
    Access,
    GrantOperation,
    GrantVerdict,
    Resource,
    ResourceType,
)
from pyconnect_sandbox.broker import KafkaBroker
from pyconnect_sandbox.server import free_port
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import KafkaCluster, Servers, SharedBroker
from tests.support.servers.topics import (
    OffsetTopic,
    aborted_transactions,
    create_topics,
    open_records,
)

pytestmark = pytest.mark.kafka


def test_asking_for_a_topic_does_not_create_it(kafka_broker: SharedBroker) -> None:
    """A request about a topic does not create it with the broker's settings."""
    settings = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    admin = Admin(settings)
    asked_for, produced_to = unique_name("asked-for"), unique_name("produced-to")
    assert admin.partition_count(asked_for, 10_000) == 0
    # The broker does create topics: one that a producer asks for exists in the end.
    Producer(settings).list_topics(produced_to, timeout=400)
    eventually(lambda: produced_to in admin.topic_names(10_000))
    assert asked_for not in admin.topic_names(10_000)


WAIT_S = 150


def leader_of(client: AdminClient, topic: str) -> int:
    """Return the leader; -1 if there is none, or if the asked broker is stopping."""
    try:
        partitions = client.list_topics(topic, timeout=400).topics[topic].partitions
    except KafkaException:
        return -1
    return int(partitions[0].leader) if 0 in partitions else -1


def node(cluster: KafkaCluster, node_id: int) -> KafkaBroker:
    return next(broker for broker in cluster.brokers if broker.config.node_id == node_id)


@pytest.mark.long(only=True)
def test_offsets_are_found_after_the_leader_has_moved(servers: Servers) -> None:
    """Offsets are found before librdkafka's knowledge of the leaders expires.

    The cluster of three goes on without one broker meanwhile; at the end all are up again.
    """
    cluster = servers.cluster(3)
    topic = unique_name("moving")
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    client.create_topics([NewTopic(topic, 1, 3)])[topic].result(30)
    admin = Admin({"bootstrap.servers": cluster.bootstrap_servers})

    def answers() -> bool:
        try:
            return admin.end_offsets(topic, [0], 5_000) == {0: 0}
        except RetriableKafkaError:
            return False

    eventually(answers, WAIT_S)
    before = eventually(lambda: max(leader_of(client, topic), 0), WAIT_S, "a leader")
    node(cluster, before).stop()
    eventually(lambda: leader_of(client, topic) not in (before, -1), WAIT_S)
    node(cluster, before).start()
    eventually(answers)


SMALL_QUEUE = {"queue.buffering.max.messages": 10}
RECORDS = [LogRecord(b"%d" % number, b"1") for number in range(500)]


def test_a_batch_larger_than_the_clients_queue_is_written_whole(kafka_broker: SharedBroker) -> None:
    """A batch larger than the client's queue, as of a large reset, is written whole."""
    topic = OffsetTopic(kafka_broker.bootstrap_servers, unique_name("batches"))
    config = {"bootstrap.servers": kafka_broker.bootstrap_servers, **SMALL_QUEUE}
    producer = LogProducer(topic.name, config, "writes")
    producer.write(RECORDS, 60_000)
    producer.stop(10_000)
    assert len(topic.records()) == len(RECORDS)


def test_a_record_may_be_as_large_as_a_java_workers(kafka_broker: SharedBroker) -> None:
    """A record may be as large as the largest config of a Java worker, and no larger."""
    topic = OffsetTopic(kafka_broker.bootstrap_servers, unique_name("large"))
    producer = LogProducer(
        topic.name, {"bootstrap.servers": kafka_broker.bootstrap_servers}, "writes"
    )
    producer.write([LogRecord(b"key", b"v" * 1_048_000)], 60_000)
    with pytest.raises(KafkaError, match="MSG_SIZE_TOO_LARGE"):
        producer.write([LogRecord(b"key", b"v" * 1_048_576)], 60_000)
    producer.stop(10_000)
    assert len(topic.records()) == 1


def test_a_batch_waits_for_room_until_its_deadline() -> None:
    """A batch larger than the queue fails at its deadline when no record leaves the queue."""
    config = {"bootstrap.servers": f"127.0.0.1:{free_port()}", **SMALL_QUEUE}
    producer = LogProducer("nowhere", config, "writes")
    with pytest.raises(RetriableKafkaError):
        producer.write(RECORDS, 300)
    producer.stop(0)


MANY = 250


def test_the_ids_of_many_tasks_are_probed(kafka_broker: SharedBroker) -> None:
    """Each of many ids gets an answer, and without an authorizer it is allowed."""
    needs = [
        Access(
            GrantOperation.WRITE, Resource(ResourceType.TRANSACTIONAL_ID, unique_name("never-used"))
        )
        for _ in range(MANY)
    ]
    java = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    with AclProbes(kafka_python_config(java, client_id="probe"), 30_000) as probes:
        answers = probes.ask(needs)
    assert {verdict for verdict, _ in answers.values()} == {GrantVerdict.PROVEN}, answers
    assert len(answers) == MANY


def test_the_command_line_asks_one_broker_much(kafka_broker: SharedBroker) -> None:
    """The answers to many requests at once come in the order of the requests."""
    names = [unique_name("absent") for _ in range(MANY)]
    requests = [
        MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name)],
            allow_auto_topic_creation=False,
            min_version=4,
        )
        for name in names
    ]
    cluster = KafkaAccess(bootstrap=kafka_broker.bootstrap_servers)
    with connected(cluster, lambda: 30.0) as protocol:
        answers = protocol.send_all("list topics", [(request, None) for request in requests])
    assert [topic.name for answer in answers for topic in answer.topics] == names


def test_aborted_transactions_are_counted(kafka_broker: SharedBroker) -> None:
    """Each aborted transaction counts once, with markers in both topics; others do not count."""
    bootstrap, topics = kafka_broker.bootstrap_servers, [unique_name("t"), unique_name("t")]
    create_topics(bootstrap, topics, partitions=2)
    name = unique_name("producer")
    for ending in ("commit", "abort", "commit", "abort", "open"):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
        producer.init_transactions(30)
        producer.begin_transaction()
        for topic in topics:
            producer.produce(topic, b"x", partition=1)
        assert producer.flush(30) == 0
        if ending != "open":
            getattr(producer, f"{ending}_transaction")(30)
    assert aborted_transactions(bootstrap, topics) == 2
    assert open_records(bootstrap, topics[0], 1) == 1
    assert open_records(bootstrap, topics[0], 0) == 0
    producer.abort_transaction(30)
    assert aborted_transactions(bootstrap, topics) == 3


@contextmanager
def steady_writer(bootstrap_servers: str, topic: str, key: bytes, value: bytes) -> Iterator[None]:
    """Commit one record after another while the block runs, the first one before the block."""
    producer = Producer(
        {"bootstrap.servers": bootstrap_servers, "transactional.id": unique_name("steady")}
    )
    producer.init_transactions(30)
    enough = threading.Event()

    def commit_one() -> None:
        producer.begin_transaction()
        producer.produce(topic, value, key)
        producer.commit_transaction(30)

    def commit_on() -> None:
        while not enough.is_set():
            commit_one()

    commit_one()
    thread = threading.Thread(target=commit_on)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


KEY = b'["busy",{"file":"a"}]'


@pytest.fixture
def busy_topic(kafka_broker: SharedBroker) -> Iterator[str]:
    topic = unique_name("offsets")
    with steady_writer(kafka_broker.bootstrap_servers, topic, KEY, b'{"position":1}'):
        yield topic


def test_offsets_of_a_running_source_are_not_taken_for_aborted(
    kafka_broker: SharedBroker, busy_topic: str
) -> None:
    """An offset in an open transaction is not aborted, nor is one committed during the read."""
    settings = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    assert [aborted_offsets(settings, busy_topic) for _ in range(3)] == [()] * 3


def test_stored_offsets_are_read_while_sources_write(
    kafka_broker: SharedBroker, busy_topic: str
) -> None:
    """A read of a busy topic ends where the topic ended at its beginning."""
    topics = OffsetsTopics({"bootstrap.servers": kafka_broker.bootstrap_servers}, lambda: 60.0)
    assert [place.key for place in topics.read([busy_topic])] == [KEY]


def test_the_last_committed_count_of_each_connector(kafka_broker: SharedBroker) -> None:
    """A deleted connector keeps its count; aborted and unreadable records do not count."""
    topic = unique_name("configs")
    settings = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    producer = Producer({**settings, "transactional.id": unique_name("t")})
    producer.init_transactions(30)
    transactions: list[list[tuple[str, str | None]]] = [
        [
            ("tasks-fencing-shrunk", '{"task-count":10}'),
            ("tasks-fencing-deleted", '{"task-count":3}'),
            ("connector-deleted", None),
            ("tasks-fencing-torn", '{"task-'),
            ("connector-shrunk", "{}"),
        ],
        [("tasks-fencing-shrunk", '{"task-count":99}')],
        [("tasks-fencing-other", '{"task-count":1}')],
    ]
    for number, records in enumerate(transactions):
        producer.begin_transaction()
        for key, value in records:
            producer.produce(topic, value, key)
        producer.flush(30)
        if number == 1:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    eventually(lambda: open_records(kafka_broker.bootstrap_servers, topic) == 0)
    assert task_counts(settings, topic) == {"shrunk": 10, "deleted": 3, "other": 1}
    with pytest.raises(NotFound):
        task_counts(settings, unique_name("none"))
