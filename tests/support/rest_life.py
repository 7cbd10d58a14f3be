"""The life of a connector over REST, told so that two workers can be compared.

Each step is a request and, where a worker needs a moment, a condition to wait for. What differs
from worker to worker by nature (addresses, versions, this run's names) is masked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.eventually import eventually
from tests.support.rest_client import Answer, call_url

JSON = {"Content-Type": "application/json"}
WAIT_S = 30
_MASKED_MEMBERS = ("worker_id", "version", "commit", "kafka_cluster_id", "last_modified")

# Java's maps are printed in an order that nobody promises.
_PRINTED_MAP = re.compile(r"\{([^{}]*=[^{}]*)\}")

Condition = Callable[[Answer], bool]


@dataclass(frozen=True, slots=True)
class Told:
    """One step as it went: the request, and the masked answer."""

    step: str
    status: int
    content_type: str | None
    location: str | None
    body: object

    def __str__(self) -> str:
        return f"{self.step} -> {self.status} {self.content_type} {self.location} {self.body}"


class Life:
    """Asks one worker; `connector` is a name that no other test uses."""

    def __init__(self, base_url: str, connector: str, directory: str) -> None:
        self._base_url = base_url.rstrip("/")
        self._connector = connector
        self._directory = directory
        self.told: list[Told] = []

    def source_config(self) -> dict[str, str]:
        """A source that waits for a file, so that it stays quiet."""
        return {
            "connector.class": "FileStreamSource",
            "tasks.max": "1",
            "topic": f"{self._connector}-topic",
            "file": f"{self._directory}/absent",
        }

    def ask(
        self, method: str, path: str, body: object = None, *, until: Condition | None = None
    ) -> Answer:
        """Send a request, `{c}` in its path being the connector; repeat it `until` it fits.

        What is momentarily impossible (409 during a rebalance) is repeated, as clients should.
        """

        def send() -> Answer:
            content = body if body is None or isinstance(body, str) else json.dumps(body)
            target = path.replace("{c}", self._connector)
            headers = JSON if content is not None else {}
            return call_url(self._base_url, method, target, content, headers)

        def fits(answer: Answer) -> bool:
            if answer.status == 409 and "momentarily" in answer.text:
                return False
            return until is None or until(answer)

        answer = send()
        if not fits(answer):
            answer = eventually(
                lambda: found if fits(found := send()) else None,
                WAIT_S,
                lambda: f"{method} {path}: {send().body!r}",
            )
        step = f"{method} {path}" if body is None else f"{method} {path} {body}"
        self.told.append(self._masked(step, answer))
        return answer

    def create(self, config: Mapping[str, str | None], **members: str) -> None:
        """Ask for the connector to be created; `members` stand beside `name` and `config`."""
        self.ask("POST", "/connectors", {"name": self._connector, "config": config, **members})

    def wait_for_state(self, state: str, *, tasks: int) -> None:
        """Wait until the connector and its `tasks` tasks are reported in a state."""

        def reached(answer: Answer) -> bool:
            if answer.status != 200:
                return False
            status = answer.json()
            states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
            return states == [state] * (tasks + 1)

        self.ask("GET", "/connectors/{c}/status", until=reached)

    def _masked(self, step: str, answer: Answer) -> Told:
        return Told(
            step=self._text(step),
            status=answer.status,
            content_type=answer.headers.get("content-type"),
            location=self._text(answer.headers.get("location")),
            body=self._body(answer),
        )

    def _body(self, answer: Answer) -> object:
        if not answer.body:
            return None
        try:
            return self._value(answer.json())
        except ValueError:
            return self._text(answer.text)

    def _value(self, value: Any) -> object:
        match value:
            case Mapping():
                return {
                    self._text(name): "<masked>" if name in _MASKED_MEMBERS else self._value(member)
                    for name, member in value.items()
                }
            case list():
                return [self._value(item) for item in value]
            case str():
                return self._text(value)
            case _:
                return value

    def _text(self, text: str | None) -> Any:
        if text is None:
            return None
        masked = text.replace(self._base_url, "<worker>").replace(self._connector, "<connector>")
        masked = masked.replace(self._directory, "<directory>")
        return _PRINTED_MAP.sub(_sorted_members, masked)


def _sorted_members(printed: re.Match[str]) -> str:
    return f"{{{', '.join(sorted(printed[1].split(', ')))}}}"


def tell_life(life: Life) -> list[Told]:
    """Create, read, change, pause, restart, stop and delete a connector."""
    config = life.source_config()
    life.create({**config, "topic": ""})
    life.create({"a": "b"})
    life.create({"connector.class": None})
    life.create(config)
    life.wait_for_state("RUNNING", tasks=1)
    life.create(config)
    life.create({**config, "tasks.max": "x"})
    life.ask("GET", "/connectors/{c}")
    life.ask("GET", "/connectors/{c}/config")
    life.ask("GET", "/connectors/{c}/tasks")
    life.ask("GET", "/connectors/{c}/tasks/0/status")
    life.ask("GET", "/connectors/{c}/tasks/1/status")
    life.ask("GET", "/connectors/{c}/topics")
    _change_config(life, config)
    _change_state(life)
    _restart(life)
    _stop_and_delete(life, config)
    return life.told


def _change_config(life: Life, config: Mapping[str, str]) -> None:
    life.ask("PUT", "/connectors/{c}/config", {**config, "batch.size": 10})
    life.ask("GET", "/connectors/{c}/config", until=lambda it: "batch.size" in it.json())
    life.ask("PUT", "/connectors/{c}/config", {**config, "name": "other"})
    life.ask("PUT", "/connectors/{c}/config", {**config, "topic": None, "transforms": "x"})
    life.ask("PATCH", "/connectors/{c}/config")
    life.ask("PATCH", "/connectors/{c}/config", {"batch.size": None, "errors.log.enable": True})
    life.ask("GET", "/connectors/{c}/config", until=lambda it: "batch.size" not in it.json())
    life.ask("PATCH", "/connectors/{c}/config", {"topic": None})
    life.ask("PATCH", "/connectors/{c}/config", {"name": None})
    life.wait_for_state("RUNNING", tasks=1)


def _change_state(life: Life) -> None:
    life.ask("PUT", "/connectors/{c}/pause")
    life.wait_for_state("PAUSED", tasks=1)
    life.ask("PUT", "/connectors/{c}/pause")
    life.ask("POST", "/connectors/{c}/tasks/0/restart")
    life.wait_for_state("PAUSED", tasks=1)
    life.ask("PUT", "/connectors/{c}/resume")
    life.wait_for_state("RUNNING", tasks=1)


def _restart(life: Life) -> None:
    life.ask("POST", "/connectors/{c}/restart")
    life.wait_for_state("RUNNING", tasks=1)
    life.ask("POST", "/connectors/{c}/tasks/0/restart")
    life.ask("POST", "/connectors/{c}/tasks/7/restart")
    life.wait_for_state("RUNNING", tasks=1)
    for flags in ("onlyFailed=true", "onlyFailed=true&includeTasks=true", "includeTasks=true"):
        life.ask("POST", f"/connectors/{{c}}/restart?{flags}")
        life.wait_for_state("RUNNING", tasks=1)


def _stop_and_delete(life: Life, config: Mapping[str, str]) -> None:
    life.ask("PUT", "/connectors/{c}/stop")
    life.wait_for_state("STOPPED", tasks=0)
    life.ask("GET", "/connectors/{c}/tasks", until=lambda it: it.json() == [])
    life.ask("PUT", "/connectors/{c}/stop")
    # No restart of task 0 here: a Java worker that remembers it answers 409 for ever.
    life.ask("POST", "/connectors/{c}/restart")
    life.ask("POST", "/connectors/{c}/restart?includeTasks=true")
    life.ask("PUT", "/connectors/{c}/topics/reset")
    life.wait_for_state("STOPPED", tasks=0)
    life.ask("PUT", "/connectors/{c}/resume")
    life.wait_for_state("RUNNING", tasks=1)
    life.ask("DELETE", "/connectors/{c}")
    life.ask("GET", "/connectors/{c}", until=lambda it: it.status == 404)
    life.ask("GET", "/connectors/{c}/status", until=lambda it: it.status == 404)
    life.ask("DELETE", "/connectors/{c}")
    life.create(config, initial_state="Stopped")
    life.wait_for_state("STOPPED", tasks=0)
    life.ask("DELETE", "/connectors/{c}")
