"""Exactly-once sources while brokers restart, move and refuse, and networks are cut (KIP-618)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from pyconnect_cli.acls.plan.grants import Grant
from pyconnect_clients.acls.model import GrantOperation, Pattern, Resource, ResourceType
from pyconnect_sandbox.broker import BrokerConfig, BrokerSecurity, KafkaBroker
from pyconnect_sandbox.runtime import KafkaRuntime
from pyconnect_sandbox.server import LOOPBACK
from tests.support.agents.agent import Agent, Agents, closing
from tests.support.audits.sequences import WAIT_S, Sequences
from tests.support.eventually import eventually
from tests.support.seeds import LONG
from tests.support.servers.cluster import Cluster, cluster_of, worker_of
from tests.support.servers.kafka import KafkaCluster, Servers, free_ports
from tests.support.servers.proxy import Proxy
from tests.support.servers.secured import SecuredBroker, overrides, sasl
from tests.support.servers.topics import coordinator_partition

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

ENABLED = {"exactly.once.source.support": "enabled", "task.shutdown.graceful.timeout.ms": "2000"}
EACH = {"batch": "1", "pause.ms": "5"}
"""Each number has a transaction of its own, which is more than half of the time in its commit."""
NEVER = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "3600000"}
INTERNAL_TOPICS = ("config", "offset", "status")
TRANSACTION_LOG = "__transaction_state"


def running(agent: Agent, name: str = "numbers") -> bool:
    """Return whether a connector and its tasks run; restart what has failed, as a client would."""
    states = agent.states(name)
    if "FAILED" in states:
        agent.call("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true")
    return bool(states) and set(states) == {"RUNNING"}


def go_on(sequences: Sequences, agent: Agent | None = None) -> None:
    """Wait until readers have seen twenty more numbers of the first task.

    With `agent`, tasks that fail meanwhile are restarted.
    """

    def count() -> int:
        if agent is not None:
            running(agent)
        return len(sequences.seen()["0"])

    before = eventually(lambda: count() + 1, WAIT_S)
    eventually(lambda: count() > before + 20, WAIT_S, lambda: agent and agent.states("numbers"))


def make_agent(
    bootstrap_servers: str, directory: Path, properties: Mapping[str, str] | None = None
) -> Iterator[Agent]:
    for agents in closing(lambda: Agents(bootstrap_servers, directory)):
        yield agents.start(properties={**ENABLED, **(properties or {})})


# Restarts of a broker


@pytest.fixture
def broker(servers: Servers) -> KafkaBroker:
    """A broker for this test alone, because the test kills it."""
    return servers.broker()


@pytest.mark.long
def test_broker_restart_during_commit(broker: KafkaBroker, tmp_path: Path) -> None:
    """No record is seen twice although the broker is killed while each poll is committed.

    A single broker that is stopped in order may complete a transaction without its markers (seen
    with 4.3.1), so that readers wait for ever. `test_coordinator_move` stops one of several.
    """
    sequences = Sequences(broker.bootstrap_servers, tmp_path)
    for agent in make_agent(broker.bootstrap_servers, tmp_path):
        agent.create("numbers", sequences.config(2) | EACH)
        sequences.allow(1_000_000)
        for _ in range(5 if LONG else 1):
            go_on(sequences)
            broker.kill()
            broker.start()
            eventually(lambda: running(agent), WAIT_S, lambda: agent.states("numbers"))  # noqa: B023
            # A task may fail by the outage after its broker is back.
            go_on(sequences, agent)
        agent.do("PUT", "/connectors/numbers/stop")
        agent.wait_for_states("numbers", "STOPPED")
        for values in sequences.seen().values():
            assert values == list(range(1, len(values) + 1))


# Moves of a coordinator


def transaction_leader(bootstrap_servers: str, transactional_id: str) -> int:
    metadata = AdminClient({"bootstrap.servers": bootstrap_servers}).list_topics(TRANSACTION_LOG)
    partitions = metadata.topics[TRANSACTION_LOG].partitions
    found = partitions[coordinator_partition(transactional_id, len(partitions))]
    return int(found.leader)


def living_leader(cluster: KafkaCluster, transactional_id: str) -> int:
    """Wait for a leader and return its node id; ids begin at 1."""
    servers = cluster.bootstrap_servers
    return eventually(
        lambda: max(transaction_leader(servers, transactional_id), 0), WAIT_S, "a leader"
    )


def node(cluster: KafkaCluster, node_id: int) -> KafkaBroker:
    return next(broker for broker in cluster.brokers if broker.config.node_id == node_id)


@pytest.mark.long(only=True)
def test_coordinator_move(servers: Servers, tmp_path: Path) -> None:
    """A task goes on when its transaction coordinator moves to another broker."""
    cluster = servers.cluster(3)
    sequences = Sequences(cluster.bootstrap_servers, tmp_path)
    replicated = {f"{kind}.storage.replication.factor": "3" for kind in INTERNAL_TOPICS}
    for agent in make_agent(cluster.bootstrap_servers, tmp_path, replicated):
        transactional_id = f"{agent.process.config.properties['group.id']}-numbers-0"
        agent.create("numbers", sequences.config() | EACH | {"pause.ms": "25"})
        sequences.allow(1_000_000)
        go_on(sequences)
        for end in (KafkaBroker.kill, KafkaBroker.stop):
            before = living_leader(cluster, transactional_id)
            end(node(cluster, before))

            def moved(before: int = before, transactional_id: str = transactional_id) -> bool:
                now = transaction_leader(cluster.bootstrap_servers, transactional_id)
                return now not in (before, -1)

            eventually(moved, WAIT_S)
            eventually(lambda: running(agent), WAIT_S, lambda: agent.states("numbers"))  # noqa: B023
            go_on(sequences)
            node(cluster, before).start()
        agent.do("PUT", "/connectors/numbers/stop")
        agent.wait_for_states("numbers", "STOPPED")
        seen = sequences.seen()["0"]
        assert seen == list(range(1, len(seen) + 1))


# Refusals of a broker


@pytest.mark.long(only=True)
def test_fencing_with_an_unauthorized_id(secured: SecuredBroker, tmp_path: Path) -> None:
    """The first task set needs no fencing; the second one fails until the ids are granted."""
    users = secured.client_users()
    sequences = Sequences(secured.plaintext, tmp_path)
    secured.create_topics(sequences.topic)
    servers = {f"{client}.override.bootstrap.servers": secured.sasl for client in users}
    settings = overrides(users) | servers

    def grant(client: str, kind: ResourceType, name: str, *operations: GrantOperation) -> None:
        principal, resource = f"User:{users[client]}", Resource(kind, name)
        secured.grant(Grant("", principal, resource, Pattern.LITERAL, each) for each in operations)

    def grant_ids(client: str) -> None:
        for number in range(2):
            name = f"{group_id}-numbers-{number}"
            used = (GrantOperation.WRITE, GrantOperation.DESCRIBE)
            grant(client, ResourceType.TRANSACTIONAL_ID, name, *used)

    for agent in make_agent(secured.plaintext, tmp_path, {"agent.restart.policy": "on-failure"}):
        group_id = agent.process.config.properties["group.id"]
        for topic in (sequences.topic, f"{group_id}-offsets"):
            grant("producer", ResourceType.TOPIC, topic, GrantOperation.WRITE)
            grant("consumer", ResourceType.TOPIC, topic, GrantOperation.READ)
            grant("admin", ResourceType.TOPIC, topic, GrantOperation.DESCRIBE)
        grant_ids("producer")
        agent.create("numbers", {**sequences.config(2), **settings})
        sequences.allow(20)
        sequences.check(20, 2)
        changed = {**sequences.config(2, batch="5"), **settings}
        assert agent.call("PUT", "/connectors/numbers/config", changed).status == 200
        agent.wait_for_states("numbers", "RUNNING", "FAILED", "FAILED")
        for task in agent.get("/connectors/numbers/status")["tasks"]:
            assert task["trace"].startswith(
                "Failed to perform zombie fencing: AuthorizationError: "
            )
            assert f"transactional id '{group_id}-numbers-" in task["trace"]
            assert "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" in task["trace"]
            assert "not restarted automatically" in task["trace"]
        grant_ids("admin")
        eventually(lambda: running(agent), WAIT_S, lambda: agent.states("numbers"))  # noqa: B023
        sequences.allow(40)
        sequences.check(40, 2)


# Partitions of a network


def sasl_everywhere(user: str) -> dict[str, str]:
    """Return SASL settings for all clients of a worker and of its connectors."""
    prefixes = ("", "producer.", "consumer.", "admin.")
    return {key: value for prefix in prefixes for key, value in sasl(user, prefix).items()}


def test_zombie_tasks_after_a_partition(kafka_runtime: KafkaRuntime, tmp_path: Path) -> None:
    """A worker cut off from Kafka is replaced by another; when it is back its tasks are fenced.

    One connector commits each poll; the transactions of the other one stay open.
    """
    port, sasl_port = free_ports(2)
    with Proxy(sasl_port) as proxy:
        config = BrokerConfig(
            runtime=kafka_runtime,
            directory=tmp_path / "broker",
            port=port,
            sasl_port=sasl_port,
            security=BrokerSecurity(sasl_users={"far": "secret"}),
            # Clients that come through the proxy get the proxy's address from the broker.
            properties={
                "advertised.listeners": (
                    f"PLAINTEXT://{LOOPBACK}:{port},SASL://{LOOPBACK}:{proxy.port}"
                )
            },
            hold_file=tmp_path / "broker.hold",
        )
        with (
            KafkaBroker(config) as broker,
            cluster_of(1, broker.bootstrap_servers, tmp_path, ENABLED) as cluster,
        ):
            far = cluster.add(
                properties={
                    "bootstrap.servers": f"{LOOPBACK}:{proxy.port}",
                    **sasl_everywhere("far"),
                }
            )
            found = []
            for name, settings in (("numbers", {}), ("open", NEVER)):
                directory = tmp_path / name
                directory.mkdir()
                sequences = Sequences(broker.bootstrap_servers, directory)
                found.append(Divided(name, sequences, settings))
            cut_off_and_take_over(cluster, far, proxy, found)


@dataclass(frozen=True)
class Divided:
    """A connector with one task on each side of the network."""

    name: str
    sequences: Sequences
    settings: Mapping[str, str]

    def wait_for(self, last: int) -> None:
        self.sequences.wait_for(last, 2, committed=not self.settings)

    def wait_until_taken_over(self, agent: Agent, task: int) -> None:
        def is_at_agent() -> bool:
            status = agent.get(f"/connectors/{self.name}/status")
            return bool(status["tasks"][task]["worker_id"] == worker_of(agent))

        eventually(is_at_agent, WAIT_S)
        eventually(lambda: running(agent, self.name), WAIT_S, lambda: agent.states(self.name))
        eventually(lambda: 80 in self.sequences.seen(committed=False)[str(task)], WAIT_S)


def cut_off_and_take_over(cluster: Cluster, far: Agent, proxy: Proxy, found: list[Divided]) -> None:
    near = cluster.agents[0]
    names = {each.name: 2 for each in found}
    for each in found:
        near.create(each.name, {**each.sequences.config(2), **each.settings})
    cluster.wait_until_running(names, WAIT_S)
    owners = cluster.owners()
    tasks = {
        each.name: next(n for n in range(2) if owners[f"{each.name}-{n}"] == worker_of(far))
        for each in found
    }
    for each in found:
        each.sequences.allow(40)
        each.wait_for(40)
    proxy.cut()
    for each in found:
        each.sequences.allow(80)
    for each in found:
        each.wait_until_taken_over(near, tasks[each.name])
    proxy.mend()
    cluster.wait_until_running(names, WAIT_S)
    for each in found:
        each.sequences.allow(120)
        each.wait_for(120)
        near.do("PUT", f"/connectors/{each.name}/stop")
        each.sequences.check(120, 2)
