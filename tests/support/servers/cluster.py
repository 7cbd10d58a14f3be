"""Several agents in one group, as an operator and as clients see them.

Also a comparison of statuses, in REST and in the status topic, with the running processes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.core.internal_topics import config_records
from pyconnect_sandbox.connect_worker import AgentProcess
from tests.support.agents.agent import Agent, Agents
from tests.support.agents.rest_client import call_url
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.topics import read_topic

SESSION_MS = 6_000
DELAY_MS = 1_000
SETTLE_S = 60
QUICK_GROUP = {
    "session.timeout.ms": str(SESSION_MS),
    "heartbeat.interval.ms": "500",
    "scheduled.rebalance.max.delay.ms": str(DELAY_MS),
}


class Cluster:
    """Agents that share a group id; the first one started leads it."""

    def __init__(self, agents: Agents, properties: Mapping[str, str] | None = None) -> None:
        self.group_id = unique_name("cluster")
        self.properties = {**QUICK_GROUP, **(properties or {})}
        self.agents: list[Agent] = []
        self._agents = agents

    def add(self, **options: Any) -> Agent:
        """Start one more agent; `options` as of `Agents.process`."""
        agent = self.outsider(**options)
        self.agents.append(agent)
        return agent

    def outsider(
        self, *, properties: Mapping[str, str] | None = None, wait: bool = True, **options: Any
    ) -> Agent:
        """Start an agent of the same group that is not in the list of agents.

        `wait` False: the agent may never become ready.
        """
        settings = {**self.properties, **(properties or {})}
        process = self._agents.process(group_id=self.group_id, properties=settings, **options)
        if wait:
            process.start()
        else:
            process.launch()
        return Agent(process)

    def leader(self) -> Agent:
        """Return the leader: with `forward=false` only a leader accepts a leader's request."""
        return eventually(self._leader, SETTLE_S, "one agent leads")

    def followers(self) -> list[Agent]:
        leader = self.leader()
        return [agent for agent in self.agents if agent is not leader]

    def named(self, worker_id: str) -> Agent:
        return next(agent for agent in self.agents if worker_of(agent) == worker_id)

    def status(self, connector: str) -> dict[str, Any]:
        status: dict[str, Any] = self.agents[0].get(f"/connectors/{connector}/status")
        return status

    def owners(self) -> dict[str, str]:
        """Return the worker id of each connector (by name) and of each task (`name-0`)."""
        listed = self.agents[0].get("/connectors?expand=status")
        owners: dict[str, str] = {}
        for name, found in listed.items():
            owners[name] = found["status"]["connector"]["worker_id"]
            for task in found["status"]["tasks"]:
                owners[f"{name}-{task['id']}"] = task["worker_id"]
        return owners

    def wait_until_running(
        self, connectors: Mapping[str, int], timeout_s: float = SETTLE_S
    ) -> None:
        """Wait until each agent reports these connectors with so many tasks, on live agents."""
        workers = {worker_of(agent) for agent in self.agents}
        for agent in self.agents:
            for name, tasks in connectors.items():
                eventually(
                    lambda agent=agent, name=name, tasks=tasks: _runs(agent, name, tasks, workers),
                    timeout_s,
                    lambda agent=agent, name=name: (
                        agent.call("GET", f"/connectors/{name}/status").text
                    ),
                )

    def delete_all(self) -> None:
        """Delete all connectors, for the next test."""
        answers = []

        def is_gone(name: str) -> bool:
            answers.append(self.agents[0].call("DELETE", f"/connectors/{name}"))
            return answers[-1].status in (204, 404)

        for name in self.agents[0].get("/connectors"):
            eventually(lambda name=name: is_gone(name), SETTLE_S, lambda: answers[-1])
        for agent in self.agents:
            eventually(lambda agent=agent: agent.get("/connectors") == [], SETTLE_S)

    def kill(self, agent: Agent) -> None:
        """Kill worker process and children at once, as the death of a host does."""
        self.agents.remove(agent)
        agent.process.kill()

    def _leader(self) -> Agent | None:
        leading = [
            agent
            for agent in self.agents
            if agent.call("DELETE", "/connectors/nobody?forward=false").status == 404
        ]
        return leading[0] if len(leading) == 1 else None


def worker_of(agent: Agent) -> str:
    """Return the worker id: host and port of the advertised URL."""
    return urlsplit(agent.url).netloc


@contextmanager
def cluster_of(
    size: int,
    bootstrap_servers: str,
    directory: Path,
    properties: Mapping[str, str] | None = None,
    **options: Any,
) -> Iterator[Cluster]:
    """Start agents of one group; `options` are those of `Cluster.add`."""
    agents = Agents(bootstrap_servers, directory)
    try:
        cluster = Cluster(agents, properties)
        for _ in range(size):
            cluster.add(**options)
        yield cluster
    finally:
        agents.close()


def _runs(agent: Agent, name: str, tasks: int, workers: set[str]) -> bool:
    answer = agent.call("GET", f"/connectors/{name}/status")
    if answer.status != 200:
        return False
    status = answer.json()
    parts = [status["connector"], *status["tasks"]]
    return len(parts) == tasks + 1 and all(
        part["state"] == "RUNNING" and part["worker_id"] in workers for part in parts
    )


ACTIVE = ("RUNNING", "PAUSED")

Places = Mapping[str, tuple[str, str]]
"""State and worker of each connector (by name) and task (`name-0`)."""


def status_faults(agents: Sequence[Agent], written: Places | None = None) -> list[str]:
    """Return the faults in the agents' statuses; empty when all are true.

    A status RUNNING or PAUSED needs a living process at its worker, or a connector that is asleep
    there, and each of them needs such a status. `written`: the statuses in the topic, as a new
    worker reads them.
    """
    processes: dict[str, str] = {}
    faults = []
    for agent in agents:
        works = agent.get("/agent/tasks")
        processes |= {item_of(work): worker_of(agent) for work in works if work["asleep"]}
        found = {work["pid"]: item_of(work) for work in works}
        living = {child.pid for child in agent.children() if is_alive(child)}
        unknown = living - found.keys()
        faults += [f"{worker_of(agent)} does not know its process {pid}" for pid in unknown]
        for pid in found.keys() & living:
            item = found[pid]
            if item in processes:
                faults.append(f"{item} runs at {processes[item]} and {worker_of(agent)}")
            processes[item] = worker_of(agent)
    shown = {f"REST of {worker_of(agent)}": statuses_of(agent) for agent in agents}
    if written is not None:
        shown["the status topic"] = written
    for where, statuses in shown.items():
        running = {item: at for item, (state, at) in statuses.items() if state in ACTIVE}
        faults += [
            f"{where} says that {item} runs at {running.get(item)}, but it does at {at}"
            for item in running.keys() | processes.keys()
            if running.get(item) != (at := processes.get(item))
        ]
    return faults


def item_of(work: Mapping[str, object]) -> str:
    name = str(work["connector"])
    return name if work["task"] is None else f"{name}-{work['task']}"


def is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def statuses_of(agent: Agent) -> Places:
    found: dict[str, tuple[str, str]] = {}
    for name, shown in agent.get("/connectors?expand=status").items():
        status = shown["status"]
        found[name] = (status["connector"]["state"], status["connector"]["worker_id"])
        for task in status["tasks"]:
            found[f"{name}-{task['id']}"] = (task["state"], task["worker_id"])
    return found


def statuses_in(bootstrap_servers: str, topic: str) -> Places:
    """Return the last status of each connector and task in the topic."""
    found: dict[str, tuple[str, str]] = {}
    for record in read_topic(bootstrap_servers, topic):
        kind, _, item = (record.key() or b"").decode().partition("-")[2].partition("-")
        if kind not in ("connector", "task"):
            continue
        found.pop(item, None)
        if record.value() is not None:
            status = json.loads(record.value() or b"")
            found[item] = (status["state"], status["worker_id"])
    return found


TIMEOUT_S = 60


def write_stopped_connectors(bootstrap_servers: str, topic: str, count: int) -> None:
    """Create the config topic `topic` with `count` connectors that have no tasks."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    created = admin.create_topics([NewTopic(topic, 1, 1, config={"cleanup.policy": "compact"})])
    created[topic].result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for number in range(count):
        name = f"connector-{number}"
        config = {
            "name": name,
            "connector.class": "FileStreamSource",
            "file": f"/tmp/{name}",
            "topic": name,
        }
        for record in (
            config_records.target_state(name, TargetState.STOPPED),
            config_records.connector_config(name, config),
            config_records.tasks_commit(name, 0),
        ):
            producer.produce(topic, key=record.key, value=record.value)
    producer.flush(TIMEOUT_S)


def stopped(agent: AgentProcess) -> int:
    """Return the number of connectors whose status is STOPPED."""
    listed = call_url(agent.url, "GET", "/connectors?expand=status").json()
    return sum(
        found["status"]["connector"]["state"] == "STOPPED"
        for found in listed.values()
        if "status" in found
    )
