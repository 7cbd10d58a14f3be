"""Answers of Connect's REST interface, as frozen values.

Each value keeps its JSON in `raw`, so that `-o json` prints the API's own shape, members of later
versions included. A body without a required member raises ServerError: the server is not a Connect
worker.

`bind` reads JSON into types: texts, numbers, enums, lists, maps, dataclasses field by field. A
field without a default is a required member. A missing member and null give the default. The field
`raw` gets the whole object. KeyError, TypeError or ValueError names what does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from pyconnect_cli.errors import ServerError

Json = Mapping[str, object]
Bound = TypeVar("Bound")
_MEMBER = "member"


def member(name: str) -> Any:
    return field(metadata={_MEMBER: name})


def bind(kind: type[Bound], value: object, **given: object) -> Bound:
    """Return a value of a type; `given` are the fields of an object that are not its members."""
    made = _bind_object(kind, value, given) if given else _reader(cast("Hashable", kind))(value)
    return cast("Bound", made)


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


def _bind_object(kind: type, value: object, given: Mapping[str, object]) -> object:
    body = as_object(value)
    has_raw, members = _members(kind)
    values: dict[str, object] = {"raw": body, **given} if has_raw else dict(given)
    for name, key, read, required in members:
        if name not in values and (required or body.get(key) is not None):
            values[name] = read(body[key])
    return kind(**values)


@cache
def _members(kind: type) -> tuple[bool, list[tuple[str, str, Callable[[Any], object], bool]]]:
    """Return whether `raw` is a field, and of each other one name, member, reader, is required."""
    hints = get_type_hints(kind)
    members = [
        (
            each.name,
            each.metadata.get(_MEMBER, each.name),
            _reader(hints[each.name]),
            each.default is MISSING and each.default_factory is MISSING,
        )
        for each in fields(kind)
        if each.name != "raw"
    ]
    return "raw" in hints, members


@cache
def _reader(kind: Any) -> Callable[[Any], object]:
    if isinstance(kind, UnionType):
        kinds = [each for each in get_args(kind) if each is not NoneType]
        inner = _reader(kinds[0] if len(kinds) == 1 else object)
        return lambda value: None if value is None else inner(value)
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if origin in (list, tuple):
        item = _reader(parts[0])
        return lambda value: origin(map(item, as_list(value)))
    if origin in (dict, Mapping):
        item = _reader(parts[1])
        return lambda value: {str(key): item(each) for key, each in as_object(value).items()}
    if isinstance(kind, type) and is_dataclass(kind):
        return lambda value: _bind_object(kind, value, {})
    return _PLAIN.get(kind, kind)


_PLAIN: Mapping[object, Callable[[Any], object]] = {
    int: lambda value: int(str(value)),
    float: lambda value: float(str(value)),
    object: lambda value: value,
}

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
    def config(self) -> Mapping[str, str | None]:
        return self.info.config if self.info else {}

    @property
    def class_name(self) -> str:
        """The connector's class, empty without info."""
        return self.info.class_name if self.info else ""

    @property
    def raw(self) -> Json:
        """The JSON of the connector in an answer to `?expand=status&expand=info`."""
        members: dict[str, object] = {}
        if self.status:
            members["status"] = self.status.raw
        if self.info:
            members["info"] = self.info.raw
        return members


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    version: str
    commit: str
    kafka_cluster_id: str
    raw: Json = field(default_factory=dict, compare=False, repr=False)

    @property
    def agent(self) -> bool:
        """Whether an agent answered, which adds its own version to `commit`."""
        return self.commit.startswith(AGENT_COMMIT)

    @property
    def agent_version(self) -> str:
        """The version of an agent; empty for a Java worker."""
        return self.commit.removeprefix(AGENT_COMMIT) if self.agent else ""


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
    ids = [task.id for task in status.tasks]
    if ids == sorted(ids):
        return status
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectCluster:
    """The identity of a Connect cluster: its group, if workers report it, and their addresses.

    Empty in exported files and in backups of earlier versions.
    """

    group_id: str = ""
    workers: frozenset[str] = frozenset()

    def is_same(self, other: ConnectCluster) -> bool | None:
        """Return whether both are one cluster; None when that is not known."""
        if self.group_id and other.group_id:
            return self.group_id == other.group_id
        if not self.workers or not other.workers:
            return True
        return True if self.workers & other.workers else None


UNKNOWN_CLUSTER = ConnectCluster()


def is_class(class_name: str, wanted: Sequence[str]) -> bool:
    """Return whether a class is `wanted`: its full name or its last part."""
    short = re.split(r"[.:$]", class_name)[-1]
    names = {class_name, short, short.removesuffix("Connector")}
    return any(name in names or name.removesuffix("Connector") in names for name in wanted)


CAUSED_BY = "Caused by: "
DIRECT_CAUSE = "The above exception was the direct cause of the following exception:"
DURING_HANDLING = "During handling of the above exception, another exception occurred:"


def root_cause(trace: str) -> str:
    """Return the line of the exception that caused the others; empty for an empty trace.

    Java writes the outermost exception first and its causes below; Python writes the cause first.
    """
    lines = [line.rstrip() for line in trace.strip().splitlines() if line.strip()]
    if not lines:
        return ""
    if lines[0].startswith("Traceback"):
        # Follow `raise … from …` back to its start, but not an exception raised in a handler.
        chain: list[str] = []
        in_frames = False
        for line in lines:
            if line.startswith("Traceback"):
                in_frames = True
            elif line == DURING_HANDLING:
                chain = []
            elif in_frames and not line.startswith(" ") and line != DIRECT_CAUSE:
                chain.append(line)
                in_frames = False
        return chain[0] if chain else lines[-1].strip()
    causes = [line for line in lines if line.startswith(CAUSED_BY)]
    return causes[-1].removeprefix(CAUSED_BY) if causes else lines[0].strip()
