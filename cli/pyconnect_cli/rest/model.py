"""Answers of Connect's REST interface, as frozen values.

Each value keeps its JSON in `raw`, so that `-o json` prints the API's own shape, members of later
versions included. A body without a required member raises ServerError: the server is not a Connect
worker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pyconnect_cli.errors import ServerError
from pyconnect_cli.rest.binding import Json, as_list, as_object, bind, member

Parsed = TypeVar("Parsed")
AGENT_COMMIT = "pyconnect-"


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
    tasks: tuple[TaskId, ...] = ()
    type: str = "unknown"
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
    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStatus:
    """State of a connector and of its tasks, sorted by id."""

    name: str
    type: str = "unknown"
    connector: InstanceState
    tasks: tuple[TaskState, ...]
    raw: Json = field(default_factory=dict, compare=False, repr=False)

    @property
    def failed(self) -> bool:
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

    class_name: str = member("class")
    type: str
    version: str | None = None
    raw: Json = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One configuration key that a plugin defines."""

    name: str
    type: str
    required: bool = False
    default_value: str | None = None
    importance: str = ""
    documentation: str = ""
    group: str | None = None
    raw: Json = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldErrors:
    """The errors that validation found in one key."""

    name: str
    value: str | None = None
    errors: tuple[str, ...] = ()


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
    level: str | None = None
    last_modified: int | None = None
    raw: Json = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    version: str
    commit: str
    kafka_cluster_id: str
    raw: Json = field(default_factory=dict, compare=False, repr=False)

    @property
    def agent(self) -> bool:
        """Whether an agent answered, which names its own version in `commit`."""
        return self.commit.startswith(AGENT_COMMIT)

    @property
    def agent_version(self) -> str:
        """The version of an agent; empty for a Java worker."""
        return self.commit.removeprefix(AGENT_COMMIT) if self.agent else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The answer of `GET /health`: healthy, starting or unhealthy."""

    url: str
    status: str
    message: str
    raw: Json = field(default_factory=dict, compare=False, repr=False)


def read(what: str, kind: type[Parsed], body: object, **given: object) -> Parsed:
    """Read a body as a type; errors as `parse`."""
    return parse(what, lambda value: bind(kind, value, **given), body)


def parse(what: str, reader: Callable[[object], Parsed], body: object) -> Parsed:
    """Read a body, or raise ServerError naming the member that is missing or wrong."""
    try:
        return reader(body)
    except (KeyError, TypeError, ValueError) as exc:
        detail = f"`{exc.args[0]}` is missing" if isinstance(exc, KeyError) else str(exc)
        raise ServerError(
            f"the answer is not a {what} of Kafka Connect: {detail}",
            hint="is the address that of a Connect worker? check with: pyconnect doctor",
        ) from exc


def read_connector_status(value: object) -> ConnectorStatus:
    """Read ConnectorStateInfo; tasks are sorted by id."""
    status = bind(ConnectorStatus, value)
    return replace(status, tasks=tuple(sorted(status.tasks, key=lambda task: task.id)))


def read_views(value: object) -> dict[str, ConnectorView]:
    """Read the object of `GET /connectors?expand=...`."""
    views: dict[str, ConnectorView] = {}
    for name, entry in as_object(value).items():
        members = as_object(entry)
        info, status = members.get("info"), members.get("status")
        views[name] = ConnectorView(
            name=name,
            info=bind(ConnectorInfo, info) if info else None,
            status=read_connector_status(status) if status else None,
        )
    return views


def read_validation(value: object) -> Validation:
    """Read ConfigInfos."""
    body = as_object(value)
    fields: list[FieldErrors] = []
    defined: set[str] = set()
    for entry in map(as_object, as_list(body["configs"])):
        if definition := entry.get("definition"):
            defined.add(str(as_object(definition)["name"]))
        if (found := entry.get("value")) and (errors := bind(FieldErrors, found)).errors:
            fields.append(errors)
    return Validation(
        error_count=int(str(body["error_count"])),
        fields=tuple(fields),
        defined=frozenset(defined),
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
