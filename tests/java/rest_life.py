"""Steps over REST, recorded so that two workers can be compared (see `rest_stories`).

Each step is a request and, where a worker needs a moment, a condition to wait for. Values that
differ between workers by nature (addresses, versions, this run's names) are masked.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.agents.rest_client import Answer, call_url, is_momentary
from tests.support.eventually import eventually

JSON = {"Content-Type": "application/json"}
WAIT_S = 150
_MASKED_MEMBERS = ("worker_id", "commit", "kafka_cluster_id", "last_modified", "documentation")

# Java prints maps in no defined order.
_PRINTED_MAP = re.compile(r"\{([^{}]*=[^{}]*)\}")

Condition = Callable[[Answer], bool]


@dataclass(frozen=True, slots=True)
class Told:
    """One step: the request and the masked answer."""

    step: str
    status: int
    content_type: str | None
    location: str | None
    body: object

    def __str__(self) -> str:
        return f"{self.step} -> {self.status} {self.content_type} {self.location} {self.body}"


class Life:
    """Steps on one worker; `connector` is a name that no other test uses."""

    def __init__(self, base_url: str, connector: str, directory: str) -> None:
        self._base_url = base_url.rstrip("/")
        self._connector = connector
        self._directory = directory
        self.told: list[Told] = []

    def source_config(self) -> dict[str, str]:
        """Return the config of a source that stays idle, because its file does not exist."""
        return {
            "connector.class": "FileStreamSource",
            "tasks.max": "1",
            "topic": f"{self._connector}-topic",
            "file": f"{self._directory}/absent",
        }

    def sink_config(self) -> dict[str, str]:
        """Return the config of a sink without records to read."""
        return {
            "connector.class": "FileStreamSink",
            "tasks.max": "1",
            "topics": f"{self._connector}-topic",
            "file": f"{self._directory}/{self._connector}.out",
        }

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        until: Condition | None = None,
        told: Callable[[Any], object] | None = None,
    ) -> Answer:
        """Send a request, with the connector's name for `{c}` in its path, `until` the answer fits.

        A request that is refused during a rebalance (409) is repeated, as clients should do. `told`
        returns the part of the answer's JSON to record; None records all of it.
        """

        def send() -> Answer:
            content = body if body is None or isinstance(body, str) else json.dumps(body)
            target = path.replace("{c}", self._connector)
            headers = JSON if content is not None else {}
            return call_url(self._base_url, method, target, content, headers)

        def fits(answer: Answer) -> bool:
            return not is_momentary(answer) and (until is None or until(answer))

        answer = send()
        if not fits(answer):
            answer = eventually(
                lambda: found if fits(found := send()) else None,
                WAIT_S,
                lambda: f"{method} {path}: {send().body!r}",
            )
        step = f"{method} {path}" if body is None else f"{method} {path} {body}"
        self.told.append(self._masked(step, answer, told))
        return answer

    @property
    def file(self) -> str:
        """Path of a file of this story alone, written by `write_lines`."""
        return f"{self._directory}/{self._connector}.in"

    def write_lines(self, count: int) -> None:
        """Append lines to `file`."""
        with Path(self.file).open("a") as opened:
            opened.writelines(f"line {number}\n" for number in range(count))

    def has_read_its_file(self, answer: Answer) -> bool:
        """Return whether a source's offsets are at the end of `file`."""
        if answer.status != 200:
            return False
        positions = [entry["offset"].get("position") for entry in answer.json()["offsets"]]
        return positions == [Path(self.file).stat().st_size]

    def create(self, config: Mapping[str, str | None], **members: str) -> None:
        """Ask for the connector to be created; `members` stand beside `name` and `config`."""
        self.ask("POST", "/connectors", {"name": self._connector, "config": config, **members})

    def wait_for_state(self, state: str, *, tasks: int) -> None:
        """Wait until the connector and its `tasks` tasks are reported in a state."""
        self.wait_for_states(state, *[state] * tasks)

    def wait_for_states(self, connector: str, *tasks: str) -> None:
        """Wait until the connector and each of its tasks are reported in these states."""

        def reached(answer: Answer) -> bool:
            if answer.status != 200:
                return False
            status = answer.json()
            states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
            return states == [connector, *tasks]

        self.ask("GET", "/connectors/{c}/status", until=reached)

    def of_connector(self, listed: Any) -> object:
        """Return the story's own entries of a listing of all connectors, for `ask(told=)`."""
        if isinstance(listed, list):
            return [name for name in listed if name == self._connector]
        return {name: entry for name, entry in listed.items() if name == self._connector}

    def loggers(self, listed: Any) -> object:
        """Return the loggers named after the connector, in their order, for `ask(told=)`."""
        return [
            [name, level["level"]]
            for name, level in listed.items()
            if name.startswith(self._connector)
        ]

    def _masked(
        self, step: str, answer: Answer, told: Callable[[Any], object] | None = None
    ) -> Told:
        return Told(
            step=self._text(step),
            status=answer.status,
            content_type=answer.headers.get("content-type"),
            location=self._text(answer.headers.get("location")),
            body=self._body(answer, told),
        )

    def _body(self, answer: Answer, told: Callable[[Any], object] | None) -> object:
        if not answer.body:
            return None
        try:
            body = answer.json()
            return self._value(body if told is None else told(body))
        except ValueError:
            return self._text(answer.text)

    def _value(self, value: Any) -> object:
        match value:
            case Mapping():
                return {
                    self._text(name): self._member(name, member) for name, member in value.items()
                }
            case list():
                return [self._value(item) for item in value]
            case str():
                return self._text(value)
            case _:
                return value

    def _member(self, name: str, member: Any) -> object:
        if name in _MASKED_MEMBERS:
            return "<masked>"
        if name == "trace":
            # Python's class and stack trace differ from Java's; the message is the same.
            return self._text(member.partition("\n")[0].partition(": ")[2])
        if name == "tasks" and all(isinstance(task, Mapping) for task in member):
            # Java's answers to restarts list tasks in any order.
            member = sorted(member, key=lambda task: str(task.get("id", task.get("task"))))
        return self._value(member)

    def _text(self, text: str | None) -> Any:
        if text is None:
            return None
        masked = text.replace(self._base_url, "<worker>").replace(self._connector, "<connector>")
        masked = masked.replace(self._directory, "<directory>")
        return _PRINTED_MAP.sub(_sorted_members, masked)


def _sorted_members(printed: re.Match[str]) -> str:
    return f"{{{', '.join(sorted(printed[1].split(', ')))}}}"
