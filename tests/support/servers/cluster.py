"""Several agents in one group, as an operator and as clients see them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.agents.agent import Agent, Agents
from tests.support.eventually import eventually
from tests.support.names import unique_name

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
        """Start an agent of the same group that does not count as one of the cluster.

        `wait` False: it may never get ready.
        """
        settings = {**self.properties, **(properties or {})}
        process = self._agents.process(group_id=self.group_id, properties=settings, **options)
        if wait:
            process.start()
        else:
            process.launch()
        return Agent(process)

    def leader(self) -> Agent:
        """Ask each to do what only leaders do; `forward=false` keeps it from asking others."""
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
        """Worker id of each connector (by name) and of each task (`name-0`)."""
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
        """Until each agent says that these connectors run with so many tasks, on live agents."""
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
        """Leave the cluster as the next test wants to find it."""
        answers = []

        def is_gone(name: str) -> bool:
            answers.append(self.agents[0].call("DELETE", f"/connectors/{name}"))
            return answers[-1].status in (204, 404)

        for name in self.agents[0].get("/connectors"):
            eventually(lambda name=name: is_gone(name), SETTLE_S, lambda: answers[-1])
        for agent in self.agents:
            eventually(lambda agent=agent: agent.get("/connectors") == [], SETTLE_S)

    def kill(self, agent: Agent) -> None:
        """As a host dies: worker process and children at once."""
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
    """The worker id: host and port of the advertised URL."""
    return urlsplit(agent.url).netloc


@contextmanager
def cluster_of(
    size: int,
    bootstrap_servers: str,
    directory: Path,
    properties: Mapping[str, str] | None = None,
    **options: Any,
) -> Iterator[Cluster]:
    """Agents of one group; `options` are those of `Cluster.add`."""
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
