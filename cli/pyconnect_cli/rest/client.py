"""ConnectClient: one method for each public endpoint of Kafka Connect's REST interface.

Answers are the values of `model`; failures are the errors of `errors`, as `exchange` reads them.
Names may hold any character: they are percent-encoded whole. A Java worker that is not the leader
decodes a name before it forwards a change: `a;b` becomes `a`, another connector. No change of such
a name is sent to a Java worker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from pyconnect_cli.errors import (
    NotFound,
    PreconditionFailed,
    RejectedRequest,
    ServerError,
    UsageError,
)
from pyconnect_cli.rest.exchange import Exchange
from pyconnect_cli.rest.model import (
    ConnectorInfo,
    ConnectorStatus,
    ConnectorView,
    Parsed,
    TaskState,
    WorkerInfo,
    as_object,
    bind,
    parse,
    read,
    read_connector_status,
    read_views,
)
from pyconnect_cli.rest.request import Answer, RestRequest

if TYPE_CHECKING:
    from pyconnect_cli.rest.answers import (
        ConfigKey,
        Health,
        LoggerLevel,
        Plugin,
        TaskConfig,
        Validation,
    )
    from pyconnect_cli.rest.offset_entries import ConnectorOffsets, OffsetEntry

Config = Mapping[str, str | None]
PLAIN_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._~-]+")
# Java's String.trim() cuts these, and no other white space.
_TRIMMED = "".join(map(chr, range(0x21)))
# A name with `/`, `{` or `}` needs no check here: its forwarded request fails.
FORWARDED_WRONGLY = re.compile("[;%]")
# The worker that receives one of these requests does not forward it.
ANY_WORKER = (("pause",), ("resume",), ("stop",), ("topics",))
FIRST_WITH_RESTART_OF_TASKS = (3, 0)
FIRST_WITH_SCOPE = (3, 7)
FIRST_WITH_PATCH = (3, 8)
HEALTH_STATUSES = frozenset({500, 503})
FEW = 10
"""Up to this number of connectors, single requests cost less than a list of the cluster."""


class ConnectClient:
    """A Connect cluster behind one or more addresses.

    `on_views` is called with every list of connectors that the cluster gives.
    """

    def __init__(
        self,
        exchange: Exchange,
        *,
        on_views: Callable[[Mapping[str, ConnectorView]], None] | None = None,
    ) -> None:
        self.exchange = exchange
        self._on_views = on_views

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.exchange.close()

    # Connectors

    def connector_names(self) -> list[str]:
        return sorted(self._read("list of names", list[str], "connectors"))

    def connector_views(self, names: Sequence[str] = ()) -> dict[str, ConnectorView]:
        """Return connectors with info and status: those of `names` that exist, or all, sorted.

        A list takes two requests: a worker leaves out connectors that have no status yet when the
        status is asked for.
        """
        if _asked_singly(names):
            single = {name: self._view(name) for name in names}
            return {name: view for name, view in single.items() if view is not None}
        found = self._expanded("info", "status")
        if new := [name for name in self.connector_names() if name not in found]:
            infos = self._expanded("info") if len(new) > FEW else {}
            added = {name: infos.get(name) or self._view(name) for name in new}
            found |= {name: view for name, view in added.items() if view is not None}
        views = dict(sorted(found.items()))
        if self._on_views:
            self._on_views(views)
        return {name: views[name] for name in names if name in views} if names else views

    def connector_statuses(self, names: Sequence[str] = ()) -> dict[str, ConnectorStatus]:
        """Return the statuses, of `names` or of all, by name; a new connector has none yet."""
        if _asked_singly(names):
            found = {name: self._status_or_none(name) for name in names}
        else:
            found = {name: view.status for name, view in self._expanded("status").items()}
        return {name: status for name, status in found.items() if status is not None}

    def exists(self, name: str) -> bool:
        if not PLAIN_NAME.fullmatch(name):
            return name in self.connector_names()
        try:
            self._get("connectors", name)
        except NotFound:
            return False
        return True

    def connector(self, name: str) -> ConnectorInfo:
        return self._read("connector", ConnectorInfo, "connectors", name)

    def connector_config(self, name: str) -> dict[str, str | None]:
        return self._read("configuration", dict[str, str | None], "connectors", name, "config")

    def connector_status(self, name: str) -> ConnectorStatus:
        """Return the states of a connector and its tasks; may lag behind a change."""
        status = self._get("connectors", name, "status").body
        return parse("status", read_connector_status, status)

    def create_connector(
        self, name: str, config: Config, *, initial_state: str | None = None
    ) -> ConnectorInfo:
        """Create a connector; Conflict when the name is taken."""
        self._require_addressable(name)
        body: dict[str, object] = {"name": name, "config": dict(config)}
        if initial_state is not None:
            body["initial_state"] = initial_state
        try:
            answer = self._send("POST", "connectors", body=body, long=True)
        except (ServerError, RejectedRequest) as error:
            if 'Unrecognized field "initial_state"' not in error.message:
                raise
            raise PreconditionFailed(
                f"this worker creates no connector as {initial_state}: `initial_state` came with"
                " Kafka 3.7 (KIP-980); nothing was created",
                hint="show its version: pyconnect info",
            ) from error
        return read("connector", ConnectorInfo, answer.body)

    def _require_addressable(self, name: str) -> None:
        """Raise UsageError for a name that a worker accepts but no URL path can contain.

        Servers since Kafka 4.0 refuse an encoded slash: such a connector could not be deleted.
        """
        if PLAIN_NAME.fullmatch(name):
            return
        if name != name.strip(_TRIMMED):
            raise UsageError(f"workers cut the white space at the ends of the name `{name}`")
        try:
            self._get("connectors", name)
        except NotFound:
            self._require_forwarded(name)
        except RejectedRequest as error:
            raise UsageError(
                f"a connector named `{name}` could be created, but not changed or deleted"
                f" afterwards: {error.message}",
                hint="use a name of letters, digits, `.`, `_` and `-`",
            ) from error

    def _require_forwarded(self, name: str) -> None:
        """Raise PreconditionFailed for a name that a Java worker would forward as another name."""
        if (wrong := FORWARDED_WRONGLY.search(name)) and not self.worker_info().agent:
            raise PreconditionFailed(
                f"connector `{name}`: a Java worker that is not the leader forwards a change of a"
                f" name with `{wrong[0]}` to another connector; nothing was sent",
                hint="use names of letters, digits, `.`, `_` and `-`; an existing connector can be"
                " changed with curl at the leader's own address",
            )

    def put_connector_config(self, name: str, config: Config) -> tuple[ConnectorInfo, bool]:
        """Create or replace a configuration; return the connector and whether it is new."""
        answer = self._send("PUT", "connectors", name, "config", body=dict(config), long=True)
        return read("connector", ConnectorInfo, answer.body), answer.status == 201

    def patch_connector_config(self, name: str, patch: Config) -> ConnectorInfo:
        """Merge keys into the configuration; None removes a key (KIP-477, Kafka 3.8).

        For an earlier worker the configuration is read, merged here and replaced.
        """
        path = ("connectors", name, "config")
        try:
            answer = self._send("PATCH", *path, body=dict(patch), since="3.8 (KIP-477)", long=True)
        except PreconditionFailed:
            if kafka_version(self.worker_info().version) >= FIRST_WITH_PATCH:
                raise
            merged = {**self.connector_config(name), **patch}
            kept = {key: value for key, value in merged.items() if value is not None}
            return self.put_connector_config(name, kept)[0]
        return read("connector", ConnectorInfo, answer.body)

    def delete_connector(self, name: str) -> None:
        """Delete a connector; its offsets stay."""
        self._send("DELETE", "connectors", name)

    def pause_connector(self, name: str) -> None:
        """Ask for PAUSED: tasks stay and stop working."""
        self._send("PUT", "connectors", name, "pause")

    def resume_connector(self, name: str) -> None:
        """Ask for RUNNING."""
        self._send("PUT", "connectors", name, "resume")

    def stop_connector(self, name: str) -> None:
        """Ask for STOPPED: the tasks end (KIP-875, Kafka 3.5)."""
        self._send("PUT", "connectors", name, "stop", since="3.5 (KIP-875)")

    def restart_connector(
        self, name: str, *, include_tasks: bool = False, only_failed: bool = False
    ) -> ConnectorStatus | None:
        """Restart; return the plan's states, None for the plain restart of the connector.

        Workers before Kafka 3.0 ignore the flags (KIP-745): their tasks are restarted one by one.
        """
        if only_failed and kafka_version(self.worker_info().version) < FIRST_WITH_RESTART_OF_TASKS:
            return self._restart_each(name, include_tasks=include_tasks, only_failed=True)
        flags = {"includeTasks": include_tasks, "onlyFailed": only_failed}
        query = tuple((name, "true") for name, given in flags.items() if given)
        answer = self._send("POST", "connectors", name, "restart", query=query)
        if answer.body is not None:
            return parse("status", read_connector_status, answer.body)
        if not include_tasks:
            return None
        return self._restart_each(
            name, include_tasks=True, only_failed=only_failed, connector=False
        )

    def _restart_each(
        self, name: str, *, include_tasks: bool, only_failed: bool, connector: bool = True
    ) -> ConnectorStatus:
        """Restart connector and tasks with a request each; return states as in a restart plan.

        `connector` False: the connector has been restarted already.
        """
        status = self.connector_status(name)
        failed = status.connector.state == "FAILED"
        restarted = not connector or failed or not only_failed
        if restarted and connector:
            self._send("POST", "connectors", name, "restart")
        chosen = {
            task.id
            for task in status.tasks
            if include_tasks and (task.state == "FAILED" or not only_failed)
        }
        for task in sorted(chosen):
            self.restart_task(name, task)
        return replace(
            status,
            connector=replace(status.connector, state="RESTARTING" if restarted else "RUNNING"),
            tasks=tuple(
                replace(task, state="RESTARTING") if task.id in chosen else task
                for task in status.tasks
            ),
        )

    # Offsets

    def connector_offsets(self, name: str) -> ConnectorOffsets:
        """Return the stored offsets, in any state of the connector (KIP-875, Kafka 3.5)."""
        from pyconnect_cli.rest.offset_entries import read_offsets

        answer = self._send("GET", "connectors", name, "offsets", since="3.5 (KIP-875)")
        return parse("list of offsets", read_offsets, answer.body)

    def alter_offsets(self, name: str, entries: Sequence[OffsetEntry]) -> str:
        """Set some partitions' offsets, None deletes one; return the worker's message.

        The connector must be STOPPED; RejectedRequest otherwise (KIP-875, Kafka 3.6).
        """
        from pyconnect_cli.rest.offset_entries import offsets_body

        body = offsets_body(entries)
        path = ("connectors", name, "offsets")
        answer = self._send("PATCH", *path, body=body, since="3.6 (KIP-875)", long=True)
        return parse("message", lambda body: str(as_object(body)["message"]), answer.body)

    def reset_offsets(self, name: str) -> str:
        """Delete all offsets; otherwise as `alter_offsets`."""
        path = ("connectors", name, "offsets")
        answer = self._send("DELETE", *path, since="3.6 (KIP-875)", long=True)
        return parse("message", lambda body: str(as_object(body)["message"]), answer.body)

    # Tasks

    def task_configs(self, name: str) -> list[TaskConfig]:
        from pyconnect_cli.rest.answers import TaskConfig

        return self._read("list of tasks", list[TaskConfig], "connectors", name, "tasks")

    def task_status(self, name: str, task: int) -> TaskState:
        return self._read(
            "task status", TaskState, "connectors", name, "tasks", str(task), "status"
        )

    def restart_task(self, name: str, task: int) -> None:
        self._send("POST", "connectors", name, "tasks", str(task), "restart")

    # Topics

    def connector_topics(self, name: str) -> list[str]:
        """Return the topics the connector has used, sorted; empty for an unknown name."""
        body = self._get("connectors", name, "topics").body
        return parse(
            "list of topics",
            lambda body: sorted(bind(dict[str, dict[str, list[str]]], body)[name]["topics"]),
            body,
        )

    def reset_connector_topics(self, name: str) -> None:
        """Empty the list of topics that the connector has used."""
        self._send("PUT", "connectors", name, "topics", "reset")

    # Plugins

    def plugins(self, *, connectors_only: bool = True) -> list[Plugin]:
        from pyconnect_cli.rest.answers import Plugin

        query = (("connectorsOnly", "true" if connectors_only else "false"),)
        body = self._send("GET", "connector-plugins", query=query).body
        return read("list of plugins", list[Plugin], body)

    def plugin_config(self, plugin: str, *, version: str | None = None) -> list[ConfigKey]:
        """Return the keys a plugin defines (KIP-769, Kafka 3.2)."""
        from pyconnect_cli.rest.answers import ConfigKey

        body = self._send(
            "GET",
            "connector-plugins",
            plugin,
            "config",
            query=() if version is None else (("version", version),),
            since="3.2 (KIP-769)",
        ).body
        return read("list of keys", list[ConfigKey], body)

    def validate(self, plugin: str, config: Config) -> Validation:
        """Validate a configuration; field errors are part of the answer, not a failure."""
        from pyconnect_cli.rest.answers import read_validation

        answer = self._send(
            "PUT", "connector-plugins", plugin, "config", "validate", body=dict(config), long=True
        )
        return parse("validation", read_validation, answer.body)

    # Workers

    def worker_info(self) -> WorkerInfo:
        """Return version and Kafka cluster of the worker that answers."""
        return read("worker", WorkerInfo, self._send("GET").body)

    def health(self) -> Health:
        """Return the health of the worker that answers (KIP-1017, Kafka 4.0)."""
        from pyconnect_cli.rest.answers import read_health

        answer = self._send("GET", "health", accepted=HEALTH_STATUSES, since="4.0 (KIP-1017)")
        return parse("health", lambda body: read_health(answer.url, body), answer.body)

    def loggers(self) -> list[LoggerLevel]:
        from pyconnect_cli.rest.answers import read_loggers

        return parse("list of loggers", read_loggers, self._get("admin", "loggers").body)

    def logger(self, name: str) -> LoggerLevel:
        """Return one logger's level; NotFound when it was never set."""
        from pyconnect_cli.rest.answers import LoggerLevel

        return self._read("logger", LoggerLevel, "admin", "loggers", name, name=name)

    def set_logger(self, name: str, level: str, *, scope: str = "worker") -> list[str] | None:
        """Set a level; return the loggers that changed, None for the whole cluster.

        Earlier workers would ignore the scope and set their own level only.
        """
        if scope == "cluster" and kafka_version(self.worker_info().version) < FIRST_WITH_SCOPE:
            raise PreconditionFailed(
                "this worker sets only its own level: the scope came with Kafka 3.7 (KIP-976)",
                hint="set it on each worker: --url WORKER --scope worker",
            )
        answer = self._send(
            "PUT", "admin", "loggers", name, query=(("scope", scope),), body={"level": level}
        )
        if answer.body is None:
            return None
        return read("list of loggers", list[str], answer.body)

    def _view(self, name: str) -> ConnectorView | None:
        try:
            info = self.connector(name)
        except NotFound:
            return None
        return ConnectorView(name=name, info=info, status=self._status_or_none(name))

    def _status_or_none(self, name: str) -> ConnectorStatus | None:
        try:
            return self.connector_status(name)
        except NotFound:
            return None

    def _expanded(self, *what: str) -> dict[str, ConnectorView]:
        answer = self._send("GET", "connectors", query=tuple(("expand", each) for each in what))
        return parse("list of connectors", read_views, answer.body)

    def _read(self, what: str, kind: type[Parsed], *path: str, **given: object) -> Parsed:
        return read(what, kind, self._get(*path).body, **given)

    def _get(self, *path: str) -> Answer:
        return self._send("GET", *path)

    def _send(self, method: str, *path: str, **options: Any) -> Answer:
        """Send a request; `options` are other fields of it."""
        if method != "GET" and path[:1] == ("connectors",) and path[2:3] not in ANY_WORKER:
            for name in path[1:2]:
                self._require_forwarded(name)
        return self.exchange.send(RestRequest(method=method, path=path, **options))


def _asked_singly(names: Sequence[str]) -> bool:
    """Return whether to ask for each name: workers since Kafka 4.0 refuse some names in paths."""
    return 0 < len(names) <= FEW and all(map(PLAIN_NAME.fullmatch, names))


def kafka_version(text: str) -> tuple[int, int]:
    """Return `4.3.1-rc0` as (4, 3); the latest for a text that is not a version."""
    found = re.match(r"(\d{1,9})\.(\d{1,9})", text)
    return (int(found[1]), int(found[2])) if found else (10**9, 0)
