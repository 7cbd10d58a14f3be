"""The REST API of a worker of either kind, as tests use it."""

import json
from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

from tests.support.agents.rest_client import Answer, call_url
from tests.support.eventually import eventually

JSON = {"Content-Type": "application/json"}
WAIT_S = 150


def is_momentary(answer: Answer) -> bool:
    """Tell whether it refuses what is impossible during a rebalance only: clients should repeat it.

    Reads have no 409 of their own in Apache's worker: theirs is a 500.
    """
    return (answer.status == 409 and "momentarily" in answer.text) or (
        answer.status in (409, 500) and "a rebalance is expected" in answer.text
    )


class Addressed(Protocol):
    """A worker's process, or what is known of a shared one."""

    @property
    def url(self) -> str: ...


Process = TypeVar("Process", bound=Addressed)


class WorkerRest(Generic[Process]):
    """A worker, addressed as a client would; its URL is looked up at each request."""

    def __init__(self, process: Process) -> None:
        self.process = process

    @property
    def url(self) -> str:
        return self.process.url

    def call(self, method: str, path: str, body: object = None) -> Answer:
        text = None if body is None else json.dumps(body)
        headers = JSON if body is not None else {}
        return call_url(self.url, method, path, text, headers)

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """Send a request, again as long as it is only momentarily impossible."""
        return eventually(
            lambda: None if is_momentary(found := self.call(method, path, body)) else found,
            WAIT_S,
            lambda: f"{method} {path}: {self.call(method, path, body).text}",
        )

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status == 200, answer.text
        return answer.json()

    def do(self, method: str, path: str, body: object = None) -> None:
        """Send a request that must succeed."""
        answer = self.ask(method, path, body)
        assert answer.status < 300, answer.text

    def create(self, name: str, config: Mapping[str, str], **members: str) -> Answer:
        body = {"name": name, "config": dict(config), **members}
        answer = self.ask("POST", "/connectors", body)
        assert answer.status == 201, answer.text
        return answer

    def states(self, name: str) -> tuple[str, ...]:
        """States of the connector and of its tasks; empty while there is no status."""
        answer = self.call("GET", f"/connectors/{name}/status")
        if answer.status in (404, 409):
            return ()
        status = answer.json()
        return (status["connector"]["state"], *(task["state"] for task in status["tasks"]))

    def wait_for_states(self, name: str, *states: str, timeout_s: float = WAIT_S) -> None:
        eventually(
            lambda: self.states(name) == states,
            timeout_s,
            lambda: f"{states}: {self.call('GET', f'/connectors/{name}/status').text}",
        )

    def start_with(self, name: str, config: Mapping[str, str], *states: str) -> None:
        """Stop a connector in order, and start it with another configuration.

        No task of the former configuration is left when the first of the new one starts.
        """
        self.do("PUT", f"/connectors/{name}/stop")
        self.wait_for_states(name, "STOPPED")
        self.do("PUT", f"/connectors/{name}/config", dict(config))
        self.do("PUT", f"/connectors/{name}/resume")
        self.wait_for_states(name, *states)
