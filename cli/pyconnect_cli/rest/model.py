"""Answers of Connect's REST interface, as frozen values.

Each value keeps its JSON in `raw`, so that `-o json` prints the API's own shape, members of later
versions included. A body without a required member raises ServerError: the server is not a Connect
worker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from pyconnect_cli.errors import ServerError

Json = Mapping[str, object]
Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskId:
    """One task of a connector; shown as `connector/0`."""

    connector: str
    task: int

    def __str__(self) -> str:
        return f"{self.connector}/{self.task}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorInfo:
    """A connector's raw configuration (references unresolved) and task ids."""

    name: str
    config: Mapping[str, str | None]
    tasks: tuple[TaskId, ...]
    type: str
    raw: Json = field(default_factory=dict, compare=False, repr=False)

    @property
    def class_name(self) -> str:
        """The class as configured; empty when there is none."""
        return self.config.get("connector.class") or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceState:
    """State of a connector or task on its worker (`host:port`); `version` is the plugin's."""

    state: str
    worker_id: str
    version: str | None = None
    trace: str | None = None
    raw: Json = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState(InstanceState):
    """State of one task."""

    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStatus:
    """State of a connector and of its tasks, sorted by id."""

    name: str
    type: str
    connector: InstanceState
    tasks: tuple[TaskState, ...]
    raw: Json = field(default_factory=dict, compare=False, repr=False)

    @property
    def failed(self) -> bool:
        """Whether the connector or a task of it is FAILED."""
        return any(item.state == "FAILED" for item in (self.connector, *self.tasks))

    @property
    def running_tasks(self) -> int:
        """How many tasks are RUNNING."""
        return sum(task.state == "RUNNING" for task in self.tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorView:
    """Status and info of one connector; a new one has no status yet, a deleted one no info."""

    name: str
    info: ConnectorInfo | None = None
    status: ConnectorStatus | None = None

    @property
    def type(self) -> str:
        """`source`, `sink` or `unknown`."""
        known = self.status or self.info
        return known.type if known else "unknown"

    @property
    def state(self) -> str:
        """The connector's state; UNASSIGNED when no status was written yet."""
        return self.status.connector.state if self.status else "UNASSIGNED"

    @property
    def raw(self) -> Json:
        """The shape of `?expand=status&expand=info`."""
        members: dict[str, object] = {}
        if self.status:
            members["status"] = self.status.raw
        if self.info:
            members["info"] = self.info.raw
        return members


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfig:
    """A task and the configuration its connector made for it."""

    id: TaskId
    config: Mapping[str, str | None]
    raw: Json = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """An installed plugin; types: source, sink, converter, transformation, ..."""

    class_name: str
    type: str
    version: str | None = None
    raw: Json = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One configuration key that a plugin defines."""

    name: str
    type: str
    required: bool
    default_value: str | None
    importance: str
    documentation: str
    group: str | None
    raw: Json = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldErrors:
    """The errors that validation found in one key."""

    name: str
    value: str | None
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The answer of validation; only keys with errors are kept in `fields`.

    `defined` are the keys that connector, converters, transformations and predicates define.
    """

    error_count: int
    fields: tuple[FieldErrors, ...]
    defined: frozenset[str] = frozenset()
    raw: Json = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggerLevel:
    """A logger's level; `last_modified` in milliseconds since the epoch, None when never set."""

    name: str
    level: str | None
    last_modified: int | None
    raw: Json = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """The answer of `GET /`."""

    version: str
    commit: str
    kafka_cluster_id: str
    raw: Json = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The answer of `GET /health`: healthy, starting or unhealthy."""

    url: str
    status: str
    message: str
    raw: Json = field(default_factory=dict, compare=False, repr=False)


def parse(what: str, reader: Callable[[Json], Parsed], body: object) -> Parsed:
    """Read a body, or raise ServerError naming the member that is missing or wrong."""
    try:
        return reader(as_object(body))
    except (KeyError, TypeError, ValueError) as exc:
        detail = f"`{exc.args[0]}` is missing" if isinstance(exc, KeyError) else str(exc)
        raise ServerError(
            f"the answer is not a {what} of Kafka Connect: {detail}",
            hint="is the address that of a Connect worker? check with: pyconnect doctor",
        ) from exc


def as_object(body: object) -> Json:
    """Return a JSON object, or raise TypeError."""
    if not isinstance(body, Mapping):
        raise TypeError(f"an object was expected, not {type(body).__name__}")
    return body


def as_list(body: object) -> list[object]:
    """Return a JSON array, or raise TypeError."""
    if not isinstance(body, list):
        raise TypeError(f"an array was expected, not {type(body).__name__}")
    return body


def optional_text(value: object) -> str | None:
    """Return a text, or None for null."""
    return None if value is None else str(value)


def read_config(value: object) -> dict[str, str | None]:
    """Read a flat configuration map."""
    return {str(key): optional_text(item) for key, item in as_object(value).items()}


def read_task_id(value: object) -> TaskId:
    """Read `{"connector", "task"}`."""
    members = as_object(value)
    return TaskId(connector=str(members["connector"]), task=int(str(members["task"])))


def read_connector_info(body: Json) -> ConnectorInfo:
    """Read ConnectorInfo."""
    return ConnectorInfo(
        name=str(body["name"]),
        config=read_config(body["config"]),
        tasks=tuple(map(read_task_id, as_list(body.get("tasks") or []))),
        type=str(body.get("type") or "unknown"),
        raw=body,
    )


def read_task_state(value: object) -> TaskState:
    """Read one task's state."""
    body = as_object(value)
    state = read_instance_state(body)
    return TaskState(
        id=int(str(body["id"])),
        state=state.state,
        worker_id=state.worker_id,
        version=state.version,
        trace=state.trace,
        raw=body,
    )


def read_connector_status(body: Json) -> ConnectorStatus:
    """Read ConnectorStateInfo; tasks are sorted by id."""
    tasks = sorted(map(read_task_state, as_list(body["tasks"])), key=lambda task: task.id)
    return ConnectorStatus(
        name=str(body["name"]),
        type=str(body.get("type") or "unknown"),
        connector=read_instance_state(as_object(body["connector"])),
        tasks=tuple(tasks),
        raw=body,
    )


def read_instance_state(body: Json) -> InstanceState:
    """Read the state of a connector or task."""
    return InstanceState(
        state=str(body["state"]),
        worker_id=str(body["worker_id"]),
        version=optional_text(body.get("version")),
        trace=optional_text(body.get("trace")),
        raw=body,
    )


def read_views(body: Json) -> dict[str, ConnectorView]:
    """Read the object of `GET /connectors?expand=...`."""
    views: dict[str, ConnectorView] = {}
    for name, value in body.items():
        members = as_object(value)
        info, status = members.get("info"), members.get("status")
        views[name] = ConnectorView(
            name=name,
            info=read_connector_info(as_object(info)) if info else None,
            status=read_connector_status(as_object(status)) if status else None,
        )
    return views


def read_task_config(value: object) -> TaskConfig:
    """Read one entry of `GET /connectors/{c}/tasks`."""
    body = as_object(value)
    return TaskConfig(id=read_task_id(body["id"]), config=read_config(body["config"]), raw=body)


def read_plugin(value: object) -> Plugin:
    """Read one entry of `GET /connector-plugins`."""
    body = as_object(value)
    return Plugin(
        class_name=str(body["class"]),
        type=str(body["type"]),
        version=optional_text(body.get("version")),
        raw=body,
    )


def read_config_key(value: object) -> ConfigKey:
    """Read one key definition."""
    body = as_object(value)
    return ConfigKey(
        name=str(body["name"]),
        type=str(body["type"]),
        required=bool(body.get("required")),
        default_value=optional_text(body.get("default_value")),
        importance=str(body.get("importance") or ""),
        documentation=str(body.get("documentation") or ""),
        group=optional_text(body.get("group")),
        raw=body,
    )


def read_validation(body: Json) -> Validation:
    """Read ConfigInfos."""
    fields: list[FieldErrors] = []
    defined: set[str] = set()
    for entry in as_list(body["configs"]):
        if definition := as_object(entry).get("definition"):
            defined.add(str(as_object(definition)["name"]))
        value = as_object(entry).get("value")
        if value is None:
            continue
        members = as_object(value)
        if errors := tuple(map(str, as_list(members.get("errors") or []))):
            fields.append(
                FieldErrors(
                    name=str(members["name"]),
                    value=optional_text(members.get("value")),
                    errors=errors,
                )
            )
    return Validation(
        error_count=int(str(body["error_count"])),
        fields=tuple(fields),
        defined=frozenset(defined),
        raw=body,
    )


def read_logger_level(name: str, value: object) -> LoggerLevel:
    """Read `{"level", "last_modified"}`."""
    body = as_object(value)
    modified = body.get("last_modified")
    return LoggerLevel(
        name=name,
        level=optional_text(body.get("level")),
        last_modified=None if modified is None else int(str(modified)),
        raw=body,
    )


def read_worker_info(body: Json) -> WorkerInfo:
    """Read `GET /`."""
    return WorkerInfo(
        version=str(body["version"]),
        commit=str(body["commit"]),
        kafka_cluster_id=str(body["kafka_cluster_id"]),
        raw=body,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectCluster:
    """The identity of a Connect cluster: its group, if workers report it, and their addresses.

    Empty in exported files and in backups of earlier versions.
    """

    group_id: str = ""
    workers: frozenset[str] = frozenset()

    def is_same(self, other: ConnectCluster) -> bool | None:
        """Whether both are one cluster; None when that is not known."""
        if self.group_id and other.group_id:
            return self.group_id == other.group_id
        if not self.workers or not other.workers:
            return True
        return True if self.workers & other.workers else None


UNKNOWN_CLUSTER = ConnectCluster()
