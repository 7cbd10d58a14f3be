"""A sink task that hangs in `put`, in a cluster of two agents."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.agents.agent import Agent, Agents, append_lines, closing, source_config
from tests.support.audits.sinks import HANGING_SINK
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker

pytestmark = pytest.mark.kafka

WAIT_S = 150
NEIGHBOURS = ("a", "b", "c")
QUICK = {
    # The process ids of connectors are compared.
    "agent.connector.sleep": "false",
    "task.shutdown.graceful.timeout.ms": "500",
    "scheduled.rebalance.max.delay.ms": "0",
    "offset.flush.interval.ms": "500",
    # A killed consumer is missed by its group as soon as a broker allows.
    "consumer.session.timeout.ms": "6000",
    "consumer.heartbeat.interval.ms": "1000",
}


@pytest.fixture
def cluster(kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[tuple[Agent, Agent]]:
    group_id = unique_name("hung")
    for agents in closing(lambda: Agents(kafka_broker.bootstrap_servers, tmp_path)):
        options = {"group_id": group_id, "properties": QUICK}
        yield agents.start(**options), agents.start(**options)


def processes(agent: Agent) -> dict[tuple[str, int | None], int]:
    """Process id of each connector and task but the sink's."""
    return {
        (child["connector"], child["task"]): child["pid"]
        for child in agent.get("/agent/tasks")
        if child["connector"] != "sink"
    }


def owner(agents: tuple[Agent, Agent]) -> str:
    """Worker id of the sink's task."""
    worker: str = agents[0].get("/connectors/sink/status")["tasks"][0]["worker_id"]
    return worker


def of_url(worker_id: str, agents: tuple[Agent, Agent]) -> tuple[Agent, Agent]:
    """Return the agent of that id and the other one."""
    first, second = agents
    return (first, second) if first.url.endswith(worker_id) else (second, first)


def settled(agents: tuple[Agent, Agent]) -> bool:
    """Whether everything runs, both agents have a share of it, and no rebalance is under way."""
    names = ("sink", *NEIGHBOURS)
    running = all(agents[0].states(name) == ("RUNNING", "RUNNING") for name in names)
    about = [agent.get("/agent") for agent in agents]
    return (
        running
        and all(processes(agent) for agent in agents)
        and all(worker["state"] == "active" for worker in about)
        and len({worker["generation"] for worker in about}) == 1
    )


def test_a_hung_put_is_killed_and_its_task_goes_on_without_touching_its_neighbours(
    cluster: tuple[Agent, Agent], kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """In another process after a kill, on the other worker when its own gives its work up."""
    topic, flag, out = unique_name("hung"), tmp_path / "flag", tmp_path / "out"
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})

    def hang(value: str) -> None:
        flag.touch()
        producer.produce(topic, value.encode())
        assert producer.flush(30) == 0
        taken = tmp_path / "flag.taken"
        eventually(taken.exists, WAIT_S)
        taken.unlink()

    def written(*values: str) -> bool:
        # What was not committed yet comes again.
        return out.exists() and list(dict.fromkeys(out.read_text().split())) == list(values)

    append_lines(tmp_path / "lines", 1, 1)
    for name in NEIGHBOURS:
        cluster[0].create(name, source_config(tmp_path / "lines", unique_name(name)))
    sink = {"connector.class": HANGING_SINK, "topics": topic, "file": str(out), "flag": str(flag)}
    cluster[0].create("sink", sink)
    eventually(lambda: settled(cluster), WAIT_S, lambda: str([processes(a) for a in cluster]))
    here, other = of_url(owner(cluster), cluster)
    before = processes(here), processes(other)

    hang("first")
    assert here.call("POST", "/agent/tasks/sink/0/kill", {"force": False}).status == 202
    eventually(lambda: here.states("sink") == ("RUNNING", "FAILED"), WAIT_S)
    restart = "/connectors/sink/tasks/0/restart"
    # 409 while the other worker has not read the newest configs: clients repeat it.
    eventually(
        lambda: other.call("POST", restart).status == 204,
        WAIT_S,
        lambda: str(other.call("POST", restart).body),
    )
    eventually(lambda: written("first"), WAIT_S)
    assert (processes(here), processes(other)) == before

    hang("second")
    assert here.call("POST", "/agent/drain").status == 202
    eventually(lambda: written("first", "second"), WAIT_S)
    assert of_url(owner((other, here)), cluster)[0] is other
    assert before[1].items() <= processes(other).items()
