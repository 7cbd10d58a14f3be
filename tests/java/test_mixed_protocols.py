"""Java workers and agents in a group: older protocols, leaders' transactional ids, offset keys."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.agents.agent import Agent, sink_config
from tests.support.agents.mixed_group import WAIT_S, MixedGroup, MixedWorker
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.java_jars import test_connectors as compiled_connectors
from tests.support.seeds import chosen
from tests.support.servers.cluster import worker_of
from tests.support.servers.kafka import Servers, SharedBroker
from tests.support.servers.topics import create_topics, read_topic

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]


# The agent's own id is in its subscription, and a Java worker that leads ignores it.
OWN_ID = {"exactly.once.source.support": "preparing", "agent.leader.transactional.id": "own-id"}


@cases(
    "leader, properties",
    pytest.param(
        "java",
        {"connect.protocol": "eager", **OWN_ID},
        id="java-eager",
        marks=pytest.mark.long(only=True),
    ),
    pytest.param("agent", {"connect.protocol": "compatible"}, id="agent-compatible"),
)
def test_work_is_shared_and_taken_over(
    module_servers: Servers,
    kafka_broker: SharedBroker,
    tmp_path: Path,
    leader: str,
    properties: dict[str, str],
) -> None:
    """Work is spread evenly, stopped and resumed through the follower, and survives the leader."""
    group = MixedGroup(module_servers, kafka_broker, leader, properties)
    for number, worker in enumerate(reversed(group.both)):
        config = sink_config(tmp_path / "out.txt", unique_name("lines"), tasks_max="2")
        create(worker, f"c{number}", config)
    for name in ("c0", "c1"):
        group.wait_for_states(name, *["RUNNING"] * 3)
    owners = Counter(owner for name in ("c0", "c1") for owner in group.owners(name))
    assert owners == {worker_of(worker): 3 for worker in group.both}
    survivor = group.both[1]
    assert survivor.call("PUT", "/connectors/c0/stop").status == 204
    group.wait_for_states("c0", "STOPPED")
    assert survivor.call("PUT", "/connectors/c0/resume").status == 202
    group.wait_for_states("c0", *["RUNNING"] * 3)
    group.leader.process.kill()
    for name in ("c0", "c1"):
        eventually(lambda name=name: runs_at(survivor, name), WAIT_S)
    survivor.process.stop()


def create(worker: Agent, name: str, config: dict[str, str]) -> None:
    """Create a connector; repeat a 409, which every worker answers during a rebalance."""
    body = {"name": name, "config": config}
    eventually(lambda: worker.call("POST", "/connectors", body).status == 201, WAIT_S)


def runs_at(worker: Agent, name: str) -> bool:
    status = worker.get(f"/connectors/{name}/status")
    parts = [status["connector"], *status["tasks"]]
    return len(parts) == 3 and all(
        (part["worker_id"], part["state"]) == (worker_of(worker), "RUNNING") for part in parts
    )


KEY = "agent.leader.transactional.id"
MakeGroup = Callable[..., MixedGroup]


@pytest.fixture
def make_group(module_servers: Servers, kafka_broker: SharedBroker) -> Iterator[MakeGroup]:
    """Make a group of both kinds at `preparing`; only the agent understands the key."""
    made: list[MixedGroup] = []

    def make(leader: str) -> MixedGroup:
        settings = {"exactly.once.source.support": "preparing", KEY: unique_name("leader-id")}
        made.append(MixedGroup(module_servers, kafka_broker, leader, settings))
        return made[-1]

    yield make
    for group in made:
        for worker in group.both:
            worker.process.stop()


def test_a_java_leader_reads_the_agents_subscription(make_group: MakeGroup, tmp_path: Path) -> None:
    """The Java leader ignores the agent's id and assigns the agent its share of the work."""
    group = make_group("java")
    leader, agent = group.both
    leader.create("lines", sink_config(tmp_path / "out.txt", unique_name("t"), tasks_max="3"))
    group.wait_for_states("lines", "RUNNING", "RUNNING", "RUNNING", "RUNNING")
    assert set(group.owners("lines")) == {worker_of(leader), worker_of(agent)}


def test_an_agent_that_leads_a_java_worker_refuses_to_write(
    make_group: MakeGroup, tmp_path: Path
) -> None:
    """A Java worker would lead with Kafka's own id; without it the agent writes again."""
    group = make_group("agent")
    leader, java = group.both
    body = {"name": "lines", "config": sink_config(tmp_path / "out.txt", unique_name("t"))}
    for worker in (leader, java):
        eventually(
            lambda worker=worker: worker.call("POST", "/connectors", body).status == 503, WAIT_S
        )
    text = leader.call("POST", "/connectors", body).text
    for part in (KEY, java.url, f"(connect-cluster-{group.group_id})"):
        assert part in text, text
    java.process.stop()
    eventually(lambda: leader.call("POST", "/connectors", body).status == 201, WAIT_S)
    leader.wait_for_states("lines", "RUNNING", "RUNNING")


LIVE_KEY = b'["numbers",{"zone":"z","place":"here"}]'
"""The members are in the plugin's order, which is not alphabetical."""


class Numbers:
    """A Java source of numbers in a group whose workers change."""

    def __init__(self, group: MixedGroup, broker: SharedBroker) -> None:
        self.group = group
        self.servers = broker.bootstrap_servers
        self.topic = unique_name("numbers")
        create_topics(self.servers, [self.topic])

    def go_on(self, worker: MixedWorker, limit: int) -> None:
        """Let the task run here to the number before `limit`; check that each came once."""
        config = {
            "connector.class": "io.pyconnect.tests.NumberSource",
            "tasks.max": "1",
            "topic": self.topic,
            "zone": "z",
            "limit": str(limit),
        }
        eventually(
            lambda: worker.call("PUT", "/connectors/numbers/config", config).status in (200, 201),
            WAIT_S,
        )
        eventually(lambda: len(self.seen()) >= limit, WAIT_S, self.seen)
        eventually(lambda: self.offset_keys() == {LIVE_KEY}, WAIT_S, self.offset_keys)
        assert self.seen() == list(range(limit))

    def seen(self) -> list[int]:
        values = [record.value() for record in read_topic(self.servers, self.topic, committed=True)]
        return [int((value or b"").decode().split()[1]) for value in values]

    def offset_keys(self) -> set[bytes]:
        """Return the keys in the offsets topic that have a value."""
        live: dict[bytes, bytes | None] = {}
        for record in read_topic(self.servers, f"{self.group.group_id}-offsets", committed=True):
            live[record.key() or b""] = record.value()
        return {key for key, value in live.items() if value is not None}


@pytest.fixture(params=chosen(["enabled"], long=["disabled"]))
def numbers(
    request: pytest.FixtureRequest,
    servers: Servers,
    kafka_broker: SharedBroker,
    kafka_runtime: KafkaRuntime,
    tmp_path: Path,
) -> Numbers:
    """A source with at-least-once or exactly-once delivery; the agent is alone in the group."""
    plugin_path = tmp_path / "plugins"
    plugin_path.mkdir()
    compiled_connectors(kafka_runtime, plugin_path)
    properties = {
        "plugin.path": str(plugin_path),
        "exactly.once.source.support": request.param,
        "offset.flush.interval.ms": "500",
    }
    return Numbers(MixedGroup(servers, kafka_broker, "agent", properties), kafka_broker)


def test_a_task_goes_on_at_a_java_worker_and_back(numbers: Numbers) -> None:
    """The agent writes first, and both workers are members while the task moves."""
    agent = numbers.group.leader
    numbers.go_on(agent, 10)
    java = numbers.group.join()
    agent.process.stop()
    numbers.go_on(java, 20)
    agent.process.start()
    java.process.stop()
    numbers.go_on(agent, 30)


@pytest.mark.long(only=True)
def test_changed_offsets_are_found_by_a_java_worker(numbers: Numbers) -> None:
    """Clients may name the fields of a partition in any order, with or without a stored offset."""
    agent = numbers.group.leader
    numbers.go_on(agent, 10)
    for reset in (False, True):
        agent.do("PUT", "/connectors/numbers/stop")
        agent.wait_for_states("numbers", "STOPPED")
        if reset:
            agent.do("DELETE", "/connectors/numbers/offsets")
        change = {"partition": {"place": "here", "zone": "z"}, "offset": {"number": 9}}
        agent.do("PATCH", "/connectors/numbers/offsets", {"offsets": [change]})
        assert numbers.offset_keys() == {LIVE_KEY}
    java = numbers.group.join()
    agent.process.stop()
    assert java.get("/connectors/numbers/offsets")["offsets"][0]["offset"] == {"number": 9}
    java.do("PUT", "/connectors/numbers/resume")
    numbers.go_on(java, 20)
