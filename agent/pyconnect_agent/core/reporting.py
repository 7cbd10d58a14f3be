"""Reports about connectors, with Apache's JSON shapes, and texts about ended processes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from signal import Signals
from typing import Any

from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.internal_topics.config_snapshot import ConnectorConfig
from pyconnect_agent.core.restart_policy import NoRestart

STACKS_FOLLOW = "Its stacks before that:"
"""The line of a trace between the reason for a kill and the stacks of the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorInfo:
    """`type` is `source`, `sink` or `unknown`."""

    name: str
    config: ConnectorConfig
    tasks: tuple[ConnectorTaskId, ...]
    type: str

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "config": dict(self.config),
            "tasks": [{"connector": t.connector, "task": t.task} for t in self.tasks],
            "type": self.type,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    id: ConnectorTaskId
    config: ConnectorConfig

    def to_json(self) -> dict[str, Any]:
        return {
            "id": {"connector": self.id.connector, "task": self.id.task},
            "config": dict(self.config),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """The state of a connector or task, reported by its process or because of the process's end.

    `version` is the plugin's, None when not known. `no_restart`: why a restart would not help
    FAILED work.
    """

    state: State
    trace: str | None = None
    version: str | None = None
    no_restart: NoRestart | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A record of the status topic; `generation` is that of the group."""

    state: State
    worker_id: str
    generation: int
    trace: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStateInfo:
    """Status of a connector and its tasks; `tasks` keeps the order given."""

    name: str
    connector: Status
    tasks: tuple[tuple[int, Status], ...]
    type: str

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "connector": status_json(self.connector),
            "tasks": [task_status_json(number, status) for number, status in self.tasks],
            "type": self.type,
        }


def status_json(status: Status) -> dict[str, Any]:
    """Return a status as JSON: no `trace` when empty, `version` null when unknown (KIP-891)."""
    body: dict[str, Any] = {
        "state": status.state.value,
        "worker_id": status.worker_id,
        "version": status.version,
    }
    if status.trace:
        body["trace"] = status.trace
    return body


def task_status_json(number: int, status: Status) -> dict[str, Any]:
    return {"id": number, **status_json(status)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginInfo:
    """`type`: sink, source, converter, header_converter, transformation or predicate."""

    class_name: str
    type: str
    version: str | None

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"class": self.class_name, "type": self.type}
        if self.version is not None:
            body["version"] = self.version
        return body


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggerLevel:
    """`last_modified_ms`: epoch milliseconds, None when never changed at run time."""

    level: str
    last_modified_ms: int | None

    def to_json(self) -> dict[str, Any]:
        return {"level": self.level, "last_modified": self.last_modified_ms}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The herder's current stage, for the text of a timed-out request; times are epoch ms."""

    description: str
    started_ms: int
    completed_ms: int | None = None


def stage_sentence(stage: Stage | None) -> str:
    """Return a sentence about the stage, with its full stop; empty when no stage is known."""
    if stage is None:
        return ""
    began = _instant(stage.started_ms)
    if stage.completed_ms is None:
        return f"The worker is currently {stage.description}, which began at {began}."
    return (
        f"The last operation the worker completed was {stage.description}, which began at {began}"
        f" and completed at {_instant(stage.completed_ms)}."
    )


def timed_out_text(stage: Stage | None) -> str:
    sentence = stage_sentence(stage)
    return f"Request timed out. {sentence}" if sentence else "Request timed out"


def _instant(epoch_ms: int) -> str:
    """Return the time as Java's Instant prints it in UTC: milliseconds only if not 0."""
    seconds, millis = divmod(epoch_ms, 1000)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{millis:03d}Z" if millis else f"{text}Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    version: str
    commit: str
    kafka_cluster_id: str

    def to_json(self) -> Mapping[str, str]:
        return {
            "version": self.version,
            "commit": self.commit,
            "kafka_cluster_id": self.kafka_cluster_id,
        }


def describe_exit(exit_code: int) -> str:
    """Return how a process ended, as a text after "the process"; -n means signal n."""
    if exit_code >= 0:
        return f"exited with code {exit_code}"
    try:
        name = Signals(-exit_code).name
    except ValueError:
        return f"was killed by signal {-exit_code}"
    return f"was killed by signal {-exit_code} ({name})"


def exit_reason(exit_code: int, standard_error: str) -> str:
    """Return in one line why a process failed: the last line of standard error, if it has one."""
    line = standard_error.strip().rpartition("\n")[2]
    if line and exit_code > 0:
        return line
    how = f"its process {describe_exit(exit_code)}"
    return f"{how}: {line}" if line else how
