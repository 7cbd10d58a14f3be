"""A Java worker and an agent in one group, on the same internal topics."""

from collections.abc import Callable, Mapping
from typing import Any

from pyconnect_sandbox.connect_worker import AgentProcess, ConnectWorker
from tests.support.agents.agent import STRING_CONVERTER
from tests.support.agents.rest_client import WorkerRest
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.cluster import QUICK_GROUP
from tests.support.servers.kafka import Servers, SharedBroker

WAIT_S = 150

MixedWorker = WorkerRest[ConnectWorker]


class MixedGroup:
    """A group of two workers; `leader` was started first, and `start(kind)` makes either kind."""

    def __init__(
        self,
        servers: Servers,
        broker: SharedBroker,
        leader: str,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.group_id = unique_name("mixed")
        self._properties = properties or {}
        self._servers = servers
        self._broker = broker
        self._kinds = (leader, "agent" if leader == "java" else "java")
        self.leader = self.start(self._kinds[0])
        self.follower: MixedWorker | None = None

    def start(self, kind: str) -> MixedWorker:
        make: Callable[..., ConnectWorker] = (
            self._servers.java_worker if kind == "java" else self._servers.agent
        )
        properties = {
            **QUICK_GROUP,
            "key.converter": STRING_CONVERTER,
            "value.converter": STRING_CONVERTER,
            **self._properties,
        }
        worker = make(self._broker.bootstrap_servers, self.group_id, properties=properties)
        return WorkerRest(worker)

    def join(self) -> MixedWorker:
        """Start the second worker, unless it runs."""
        if self.follower is None:
            self.follower = self.start(self._kinds[1])
        return self.follower

    @property
    def both(self) -> tuple[MixedWorker, MixedWorker]:
        return self.leader, self.join()

    def agree(self, path: str) -> Any:
        """Return the answer of both workers once it is the same; names are sorted."""

        def answers() -> list[Any]:
            found = [worker.call("GET", path) for worker in self.both]
            assert [answer.status for answer in found] == [200, 200]
            bodies = [answer.json() for answer in found]
            return [sorted(body) if path == "/connectors" else body for body in bodies]

        def agreed() -> list[Any] | None:
            first, second = answers()
            return [first] if first == second else None

        return eventually(agreed, WAIT_S, answers)[0]

    def owners(self, connector: str) -> list[str]:
        """Return the worker of the connector and of each task, as both workers report them."""
        status = self.agree(f"/connectors/{connector}/status")
        return [part["worker_id"] for part in (status["connector"], *status["tasks"])]

    def wait_for_states(self, connector: str, *states: str) -> None:
        for worker in self.both:
            worker.wait_for_states(connector, *states, timeout_s=WAIT_S)

    def delete_all(self) -> None:
        for name in self.leader.get("/connectors"):
            eventually(
                lambda name=name: (
                    self.leader.call("DELETE", f"/connectors/{name}").status in (204, 404)
                ),
                WAIT_S,
            )
        eventually(lambda: self.leader.get("/connectors") == [], WAIT_S)


def java_and_agent(group: MixedGroup) -> tuple[MixedWorker, MixedWorker]:
    first, second = sorted(group.both, key=lambda w: isinstance(w.process, AgentProcess))
    return first, second
