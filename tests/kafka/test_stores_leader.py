"""The leader's transactional writes to the config topic, and their transactional id.

`agent.leader.transactional.id` replaces Kafka's id if all members have it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyconnect_agent.core.clients.configs import InternalTopic
from pyconnect_agent.core.errors import PrivilegedRecordTooLargeError, PrivilegedWriteError
from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.core.internal_topics import config_records
from pyconnect_agent.kafka.producer import TransactionalLeaderWriter
from pyconnect_agent.stores.config import ConfigStore
from pyconnect_cli.kafka.admin import KafkaAccess, connected
from pyconnect_cli.kafka.transactions import describe_transactions
from pyconnect_cli.rest.endpoint import Endpoint
from pyconnect_cli.settings.given_files import Inventory
from pyconnect_cli.upgrade.observe import Observer, Workers
from tests.support.agents.agent import Agent, sink_config
from tests.support.agents.worker_properties import leader_writer, store_log
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.cluster import Cluster, cluster_of
from tests.support.servers.kafka import SharedBroker

pytestmark = pytest.mark.kafka

TIMEOUT_MS = 60_000


ENABLED = {"exactly.once.source.support": "enabled"}


@pytest.fixture
def open_store(kafka_broker: SharedBroker) -> Iterator[Callable[[], ConfigStore]]:
    """Return a function that opens config stores of one cluster with exactly-once support."""
    bootstrap = kafka_broker.bootstrap_servers
    properties = {**ENABLED, "group.id": unique_name("group")}
    topic = unique_name("configs")
    stores: list[ConfigStore] = []

    def open_one() -> ConfigStore:
        writer = leader_writer(bootstrap, topic, properties)
        store = ConfigStore(store_log(InternalTopic.CONFIGS, bootstrap, topic, properties), writer)
        store.start(lambda snapshot, changes: None)
        stores.append(store)
        return store

    yield open_one
    for store in stores:
        store.stop()


def test_a_leader_must_claim_before_it_writes(open_store: Callable[[], ConfigStore]) -> None:
    """A leader must claim before it writes configs; target states need no claim."""
    store = open_store()
    with pytest.raises(PrivilegedWriteError, match="without claiming write privileges first"):
        store.put_connector_config("c", {}, None)
    store.put_target_state("c", TargetState.PAUSED)
    store.refresh(TIMEOUT_MS)
    assert store.snapshot().target_state("c") is TargetState.PAUSED
    assert not store.snapshot().contains("c")


def test_claimed_writes_are_read_back_over_their_markers(
    open_store: Callable[[], ConfigStore],
) -> None:
    """The snapshot's offset is one after the last record, without the marker behind it."""
    store = open_store()
    store.claim_write_privileges()
    store.claim_write_privileges()
    store.put_connector_config("c", {"a": "1"}, TargetState.STARTED)
    assert store.snapshot().offset == 2
    store.put_task_configs("c", [{}, {}])
    assert store.snapshot().task_count("c") == 2
    assert store.snapshot().offset == 7
    other = open_store()
    assert other.snapshot() == store.snapshot()


def test_a_new_leader_fences_the_old_one(open_store: Callable[[], ConfigStore]) -> None:
    """The zombie's write fails without a trace, and the zombie must claim again."""
    old, new = open_store(), open_store()
    old.claim_write_privileges()
    old.put_connector_config("c", {"by": "old"}, None)
    new.claim_write_privileges()
    with pytest.raises(PrivilegedWriteError) as failure:
        old.put_connector_config("c", {"by": "zombie"}, None)
    assert str(failure.value) == "Failed to perform fencable send to config topic"
    assert failure.value.retriable
    new.put_task_configs("c", [{}])
    assert new.snapshot().connector_config("c") == {"by": "old"}
    with pytest.raises(PrivilegedWriteError, match="without claiming"):
        old.put_connector_config("c", {"by": "zombie"}, None)
    old.claim_write_privileges()
    old.put_connector_config("c", {"by": "leader again"}, None)
    new.refresh(TIMEOUT_MS)
    assert new.snapshot().connector_config("c") == {"by": "leader again"}


@pytest.fixture
def single_writer(
    kafka_broker: SharedBroker,
) -> Iterator[tuple[TransactionalLeaderWriter, ConfigStore]]:
    """A writer of single records to a topic of small ones, with its claim, and a reader."""
    bootstrap = kafka_broker.bootstrap_servers
    # A producer of one record a batch, so that only the large record is refused.
    properties = {**ENABLED, "group.id": unique_name("group"), "batch.size": "1"}
    topic = unique_name("configs")
    writer = leader_writer(bootstrap, topic, properties)
    small = {**properties, "config.storage.max.message.bytes": "1000"}
    store = ConfigStore(store_log(InternalTopic.CONFIGS, bootstrap, topic, small), writer)
    store.start(lambda snapshot, changes: None)
    writer.claim()
    yield writer, store
    store.stop()


def test_a_config_that_the_topic_does_not_take_is_a_wrong_request(
    single_writer: tuple[TransactionalLeaderWriter, ConfigStore],
) -> None:
    """A config that the topic does not take is a wrong request, after which the leader goes on."""
    _, store = single_writer
    with pytest.raises(PrivilegedRecordTooLargeError, match=r"max\.message\.bytes"):
        store.put_connector_config("c", {"too": "large" * 1_000}, TargetState.STOPPED)
    store.claim_write_privileges()
    store.put_connector_config("d", {}, None)
    assert store.snapshot().connectors() == ("d",)


def test_a_failed_write_is_aborted(
    single_writer: tuple[TransactionalLeaderWriter, ConfigStore],
) -> None:
    """A failed write is aborted at once, so that reads to the end need not wait."""
    writer, store = single_writer
    accepted = config_records.connector_config("c", {})
    refused = config_records.connector_config("c", {"too": "large" * 1_000})
    with pytest.raises(PrivilegedRecordTooLargeError):
        writer.write([accepted, refused], TIMEOUT_MS)
    store.refresh(TIMEOUT_MS)
    assert store.snapshot().connectors() == ()


def test_a_write_that_timed_out_can_be_claimed_and_done_again(
    single_writer: tuple[TransactionalLeaderWriter, ConfigStore],
) -> None:
    """A write that timed out leaves no record and can be repeated after a claim."""
    writer, store = single_writer
    records = [config_records.connector_config(f"c{n}", {}) for n in range(100)]
    with pytest.raises(PrivilegedWriteError):
        writer.write(records, 0)
    store.refresh(TIMEOUT_MS)
    writer.claim()
    writer.write(records[:1], TIMEOUT_MS)
    store.refresh(TIMEOUT_MS)
    assert store.snapshot().connectors() == ("c0",)


def test_relinquished_privileges_must_be_claimed_again(
    open_store: Callable[[], ConfigStore],
) -> None:
    """A worker that gave up its claim must claim again, because it may have been fenced."""
    store = open_store()
    store.claim_write_privileges()
    store.put_connector_config("c", {}, None)
    store.relinquish_write_privileges()
    with pytest.raises(PrivilegedWriteError, match="without claiming"):
        store.remove_connector_config("c")


KEY = "agent.leader.transactional.id"
PREPARING = {"exactly.once.source.support": "preparing"}
WAIT_S = 150


def known_ids(broker: SharedBroker, *transactional_ids: str) -> list[str]:
    """Return the ids that a producer has initialised."""
    cluster = KafkaAccess(bootstrap=broker.bootstrap_servers)
    with connected(cluster, lambda: WAIT_S) as protocol:
        found = describe_transactions(protocol, transactional_ids)
    return [transaction.transactional_id for transaction in found]


def leader_claims(broker: SharedBroker, cluster: Cluster) -> bool | None:
    """Return what an upgrade sees of the leader's claim; None without a claim."""
    brokers = KafkaAccess(bootstrap=broker.bootstrap_servers)
    workers = Workers(Endpoint(urls=(cluster.agents[0].url,)), Inventory())
    with connected(brokers, lambda: WAIT_S) as protocol:
        try:
            return Observer(workers, protocol, cluster.group_id).look().leader_writes
        finally:
            workers.close()


def create(agent: Agent, name: str, directory: Path) -> tuple[int, str]:
    """Return status and text of the answer."""
    config = sink_config(directory / f"{name}.txt", unique_name("lines"))
    answer = agent.call("POST", "/connectors", {"name": name, "config": config})
    return answer.status, answer.text


def test_the_leader_writes_under_its_own_id(kafka_broker: SharedBroker, tmp_path: Path) -> None:
    """The leader initialises the configured id and writes with it; Kafka's id stays unknown."""
    own = unique_name("leader-id")
    properties = {**PREPARING, KEY: own}
    with cluster_of(1, kafka_broker.bootstrap_servers, tmp_path, properties) as cluster:
        [agent] = cluster.agents
        assert create(agent, "kept", tmp_path)[0] == 201
        agent.wait_for_states("kept", "RUNNING", "RUNNING")
        kafkas = f"connect-cluster-{cluster.group_id}"
        assert known_ids(kafka_broker, own, kafkas) == [own]
        assert leader_claims(kafka_broker, cluster)


def test_a_leader_refuses_to_write_until_all_members_have_its_id(
    kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """Both workers refuse while tasks go on; the leader writes again once a member agrees."""
    own = unique_name("leader-id")
    properties = {**PREPARING, KEY: own}
    with cluster_of(1, kafka_broker.bootstrap_servers, tmp_path, properties) as cluster:
        [leader] = cluster.agents
        assert create(leader, "kept", tmp_path)[0] == 201
        leader.wait_for_states("kept", "RUNNING", "RUNNING")
        other = cluster.add(properties={KEY: f"{own}-2"})
        for agent in (leader, other):
            eventually(
                lambda agent=agent: create(agent, "new", tmp_path)[0] == 503,
                WAIT_S,
                "a refused request",
            )
            _, text = create(agent, "new", tmp_path)
            for part in (KEY, own, f"{other.url.rstrip('/')}/ ({own}-2)"):
                assert part in text, text
            assert agent.get("/connectors") == ["kept"]
        assert "members would lead under another transactional id" in leader.log()
        cluster.wait_until_running({"kept": 1}, WAIT_S)

        cluster.agents.remove(other)
        other.process.stop()
        cluster.add()
        eventually(lambda: create(cluster.agents[1], "new", tmp_path)[0] == 201, WAIT_S)
        cluster.wait_until_running({"kept": 1, "new": 1}, WAIT_S)
        assert known_ids(kafka_broker, own, f"{own}-2") == [own]
