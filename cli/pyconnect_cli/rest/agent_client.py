"""AgentClient: the admin interface that only pyconnect's own agents have.

Each method asks the one worker of its exchange. A Java worker answers 404; that becomes
PreconditionFailed (exit 9), with the reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self
from urllib.parse import urlsplit

from pyconnect_cli.errors import Conflict, NotAuthenticated, PreconditionFailed, ServerError
from pyconnect_cli.rest.exchange import Exchange
from pyconnect_cli.rest.model import Json, TaskId, as_object, bind, member, parse, read
from pyconnect_cli.rest.request import NOT_ACCEPTED, Answer, RestRequest

CONFLICT = frozenset({409})
ADMIN_ADDRESS = (
    "for an agent with admin.listeners, name that address as `admin` in the context's inventory"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInfo:
    """One agent; `generation` None: not a member of a group."""

    url: str
    state: str
    version: str
    pid: int
    leader: bool
    generation: int | None
    phase: str | None = member("exactly_once_source_support")
    config_outdated: bool
    plugin_problems: tuple[str, ...] = ()
    raw: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomaticRestarts:
    """The automatic restarts of a connector or task; `next_ms` None: none is planned.

    `ended`: why none is planned after a failure: policy, permanent, killed or limit.
    """

    policy: str
    attempts: int
    max_attempts: int
    next_ms: int | None
    ended: str | None
    raw: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChild:
    """A connector (`task` None) or task of one agent; times in epoch ms, sizes in bytes.

    `cpu_percent` and `cpu_limit` in percent of one processor; None: without a limit. `restarts`:
    None from an agent that has no automatic restarts. `shared_java_pid`: the Java process that the
    task shares with others.
    """

    url: str
    connector: str
    task: int | None
    state: str | None
    pid: int | None
    since_ms: int | None
    rss_bytes: int | None
    responsive: bool
    last_activity_ms: int | None
    last_commit_ms: int | None
    queue_size: int | None
    cpu_percent: float | None = None
    memory_limit: int | None
    cpu_limit: int | None
    asleep: bool = False
    shared_java_pid: int | None = None
    shared_java_rss_bytes: int | None = None
    restarts: AutomaticRestarts | None = None
    raw: Json

    @property
    def name(self) -> str:
        return self.connector if self.task is None else f"{self.connector}/{self.task}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    """A selection of a connector's log lines; `task` None: of the connector and all its tasks.

    `limit`: the maximum number of newest lines from each worker.
    """

    connector: str
    task: int | None
    level: str
    since_ms: int
    limit: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLogLine:
    """A line of a connector (`task` None) or task."""

    time_ms: int
    level: str
    connector: str
    task: int | None
    text: str
    raw: Json

    @property
    def name(self) -> str:
        return self.connector if self.task is None else f"{self.connector}/{self.task}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLog:
    """Lines of one agent, and the number at which the next request continues."""

    epoch: int
    following: int = member("next")
    lines: tuple[AgentLogLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChange:
    """A changing request in the journal of agents; secrets are hidden in configs.

    `before`, `after`: None where there was no such connector. Target states: as the config topic
    has them.
    """

    number: int
    id: str
    time_ms: int
    user: str | None
    address: str
    method: str
    path: str
    connector: str | None
    before: Mapping[str, str | None] | None
    after: Mapping[str, str | None] | None
    before_state: str | None = None
    after_state: str | None = None
    status: int
    error: str | None
    raw: Json

    @property
    def changed_config(self) -> bool:
        return self.status < 400 and self.before != self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentJournal:
    """`shared`: by the agents of the group; else the records are those of one agent."""

    shared: bool
    records: tuple[RecordedChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMetric:
    """One metric; `value` is a number, a text such as a state, or None for NaN."""

    group: str
    name: str
    tags: Mapping[str, str]
    value: int | float | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    name: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    pid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    target_state: str


class RunsElsewhere(Conflict):
    """The task belongs to another worker; `worker_url` is its address, None when unknown."""

    def __init__(self, message: str, worker_url: str | None) -> None:
        super().__init__(message)
        self.worker_url = worker_url


class AgentClient:
    """One agent behind an exchange with a single address."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._exchange.close()

    def info(self) -> AgentInfo:
        """Return the agent's report about itself."""
        answer = self._send("GET", "agent")
        return read("agent", AgentInfo, answer.body, url=answer.url)

    def config(self) -> dict[str, str | None]:
        """Return the worker's effective configuration; secrets are masked."""
        answer = self._send("GET", "agent", "config")
        entries = read("worker configuration", list[_Setting], answer.body)
        return {entry.name: entry.value for entry in entries}

    def acls(self, phase: str) -> Json:
        """Return the agent's needs in a phase, and brokers' answers to its clients."""
        answer = self._send("GET", "agent", "acls", query=(("phase", phase),), long=True)
        return parse("report on ACLs", as_object, answer.body)

    def children(self) -> list[AgentChild]:
        """Return the agent's connectors and tasks with their processes."""
        answer = self._send("GET", "agent", "tasks")
        return parse(
            "list of child processes",
            lambda body: [_read_child(answer.url, entry) for entry in bind(list[Json], body)],
            answer.body,
        )

    def target_states(self) -> dict[str, str]:
        """Return the target state of each connector of the cluster: STARTED, PAUSED or STOPPED."""
        answer = self._send("GET", "agent", "connectors")
        found = read("list of target states", dict[str, _Wanted], answer.body)
        return {name: wanted.target_state for name, wanted in found.items()}

    def metrics(self) -> list[AgentMetric]:
        answer = self._send("GET", "agent", "metrics.json")
        return read("list of metrics", list[AgentMetric], answer.body)

    def kill_task(self, task: TaskId, *, force: bool) -> int | None:
        """End a task's process; RunsElsewhere or Conflict if the agent does not run the task.

        Returns the pid of the process, None if the agent does not report it.
        """
        path = ("agent", "tasks", task.connector, str(task.task), "kill")
        answer = self._send("POST", *path, body={"force": force}, accepted=CONFLICT)
        _refuse_conflict(answer)
        return read("answer", _Process, answer.body).pid

    def logs(self, wanted: LogFilter, *, after: int) -> AgentLog:
        """Return the kept lines that a filter selects, from behind number `after`."""
        numbers = {
            "since_ms": wanted.since_ms,
            "after": after,
            "task": wanted.task,
            "limit": wanted.limit,
        }
        query = tuple((name, str(value)) for name, value in numbers.items() if value is not None)
        answer = self._send(
            "GET",
            "agent",
            "connectors",
            wanted.connector,
            "logs",
            query=(("level", wanted.level), *query),
        )
        log = read("log", AgentLog, answer.body)
        lines = (replace(line, raw={**line.raw, "url": answer.url}) for line in log.lines)
        return replace(log, lines=tuple(lines))

    def journal(self, **selection: str | int | None) -> AgentJournal:
        """Return the selected changes, the oldest first."""
        query = tuple((name, str(value)) for name, value in selection.items() if value is not None)
        answer = self._send("GET", "agent", "journal", query=query, long=True)
        return read("journal", AgentJournal, answer.body)

    def task_stacks(self, task: TaskId) -> str:
        """Return the stacks of a task's threads; errors as `kill_task`."""
        path = ("agent", "tasks", task.connector, str(task.task), "stacks")
        answer = self._send("GET", *path, accepted=CONFLICT, text=True)
        _refuse_conflict(answer)
        return str(answer.body)

    def change_phase(self, phase: str, *, run_id: str, expect_config_sha256: str) -> str:
        """Make the agent change its file and restart; return its way to restart.

        The ways are self, command and none. Forbidden if its properties do not allow the change,
        Conflict if the digest of its file is another one.
        """
        body = {"phase": phase, "run_id": run_id, "expect_config_sha256": expect_config_sha256}
        answer = self._send("POST", "agent", "phase", body=body, accepted=CONFLICT)
        if answer.status in CONFLICT:
            raise Conflict(str(as_object(answer.body)["message"]))
        return parse("answer", lambda body: str(as_object(body)["restart"]), answer.body)

    def drain(self, *, undrain: bool) -> None:
        """Make the agent release all work, or join again; `info` shows the progress."""
        self._send("POST", "agent", "drain", body={"undrain": undrain})

    def _send(self, method: str, *path: str, **options: Any) -> Answer:
        """Send a request; `options` are other fields of it."""
        try:
            return self._exchange.send(RestRequest(method=method, path=path, **options))
        except PreconditionFailed as exc:
            raise PreconditionFailed(
                f"{self._exchange.urls[0]} has no admin interface: it is a Java worker, or an"
                " agent whose admin interface has another address",
                hint=ADMIN_ADDRESS,
            ) from exc
        except NotAuthenticated as exc:
            if exc.hint == NOT_ACCEPTED:
                raise
            raise NotAuthenticated(
                exc.message,
                hint="give the credentials of its agent.admin.* files: --username with"
                " --password-file, or --token-file; a loopback listener needs none",
            ) from exc


def _refuse_conflict(answer: Answer) -> None:
    if answer.status not in CONFLICT:
        return
    message = "the task does not run there"
    if isinstance(answer.body, dict):
        message = str(answer.body.get("message") or message)
    if answer.location is None:
        raise Conflict(message)
    parts = urlsplit(answer.location)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ServerError(f"the owner's address cannot be used: {answer.location}")
    raise RunsElsewhere(message, f"{parts.scheme}://{parts.netloc}")


def _read_child(url: str, body: Json) -> AgentChild:
    limits = bind(dict[str, int | None], body.get("limits") or {})
    return bind(
        AgentChild,
        body,
        url=url,
        memory_limit=limits.get("memory_bytes"),
        cpu_limit=limits.get("cpu_percent"),
    )
