"""`agent.leader.transactional.id`: another id for the leader, as long as all members have it."""

from pathlib import Path

import pytest

from pyconnect_cli.kafka.admin import KafkaAccess, connected
from pyconnect_cli.kafka.transactions import describe_transactions
from pyconnect_cli.rest.endpoint import Endpoint
from pyconnect_cli.settings.inventory import Inventory
from pyconnect_cli.upgrade.cluster.observe import Observer, Workers
from tests.support.agents.agent import Agent, sink_config
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.cluster import Cluster, cluster_of
from tests.support.servers.kafka import SharedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

KEY = "agent.leader.transactional.id"
PREPARING = {"exactly.once.source.support": "preparing"}
WAIT_S = 150


def known_ids(broker: SharedBroker, *transactional_ids: str) -> list[str]:
    """Those of the ids that a producer has initialised."""
    cluster = KafkaAccess(bootstrap=broker.bootstrap_servers)
    with connected(cluster, lambda: WAIT_S) as protocol:
        found = describe_transactions(protocol, transactional_ids)
    return [transaction.transactional_id for transaction in found]


def leader_claims(broker: SharedBroker, cluster: Cluster) -> bool | None:
    """Return the claims of the leader's id that an upgrade sees; None without a claim."""
    brokers = KafkaAccess(bootstrap=broker.bootstrap_servers)
    workers = Workers(Endpoint(urls=(cluster.agents[0].url,)), Inventory())
    with connected(brokers, lambda: WAIT_S) as protocol:
        try:
            return Observer(workers, protocol, cluster.group_id).look().leader_writes
        finally:
            workers.close()


def create(agent: Agent, name: str, directory: Path) -> tuple[int, str]:
    """Status and text of the answer."""
    config = sink_config(directory / f"{name}.txt", unique_name("lines"))
    answer = agent.call("POST", "/connectors", {"name": name, "config": config})
    return answer.status, answer.text


def test_the_leader_writes_under_its_own_id(kafka_broker: SharedBroker, tmp_path: Path) -> None:
    """The id of the key is initialised and written under, Kafka's is not known to the broker."""
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
    """Through either worker; what runs goes on; a member that agrees makes it write again."""
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
