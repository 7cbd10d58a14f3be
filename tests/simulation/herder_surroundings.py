"""The surroundings of one herder: a log that survives, children, a clock, effects under way.

The log is the real reducer over real records, so the herder sees the state that a config topic
would have. No event happens by itself: see `herder_world`.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyconnect_agent.core.errors import PrivilegedWriteError, RetriableKafkaError
from pyconnect_agent.core.herder import effects as do
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder.requests import Request
from pyconnect_agent.core.herder.state import HerderSettings, HerderState
from pyconnect_agent.core.herder.steps import Timer
from pyconnect_agent.core.ids import ConnectorTaskId, Instance, State, TargetState
from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot, ConnectorConfig
from pyconnect_agent.core.internal_topics.configlog import ConfigLog
from pyconnect_agent.core.reporting import ConnectorStateInfo, Reported, Status


@dataclass(slots=True)
class FakeConnector:
    config: ConnectorConfig
    target_state: TargetState
    silent: bool = True


@dataclass(slots=True)
class FakeTask:
    config: ConnectorConfig
    connector_config: ConnectorConfig
    target_state: TargetState
    generation: int


@dataclass(slots=True)
class Answer:
    """An effect under way: `finish(False)` lets it fail. Effects of one `queue` end in order."""

    queue: str
    finish: Callable[[bool], None]
    may_fail: bool = True


@dataclass(slots=True)
class Surroundings:
    """The surroundings. `log` and `statuses` survive a crash of the worker, the rest does not.

    `values_changed`: config providers have supplied other values since the last generation.
    """

    standalone: bool = False
    exactly_once: bool = False
    values_changed: bool = False
    log: list[LogRecord] = field(default_factory=list)
    connector_statuses: dict[str, Status] = field(default_factory=dict)
    task_statuses: dict[ConnectorTaskId, Status] = field(default_factory=dict)
    now_ms: int = 1_000_000
    replies: dict[int, do.Reply] = field(default_factory=dict)
    deadlines: dict[int, int] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    aborted: str | None = None

    state: HerderState = field(init=False)
    inbox: deque[on.Event] = field(init=False)
    answers: list[Answer] = field(init=False)
    timers: list[tuple[int, Timer]] = field(init=False)
    tail: ConfigLog = field(init=False)
    tailed: int = field(init=False)
    generation: int = field(init=False)
    own_fencings: dict[int, int] = field(init=False)
    connectors: dict[str, FakeConnector] = field(init=False)
    tasks: dict[ConnectorTaskId, FakeTask] = field(init=False)
    next_request: int = field(default=1)
    fenced: list[tuple[str, ...]] = field(default_factory=list)
    prepared: dict[str, ConnectorConfig] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    started_answers: list[tuple[ConnectorTaskId, int, str | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._start_worker()

    def ask(self, request: Request, *, timeout_ms: int = 90_000) -> int:
        number = self.next_request
        self.next_request += 1
        self.deadlines[number] = self.now_ms + timeout_ms
        self.inbox.append(
            on.RequestArrived(
                request_id=number, request=request, deadline_ms=self.deadlines[number]
            )
        )
        return number

    def read_log(self, *, until: int | None = None) -> None:
        """Read on, as the tailing thread does, and report each change."""
        for record in self.log[self.tailed : until]:
            changes = self.tail.apply(self.tailed, *record).changes
            self.tailed += 1
            self.inbox.append(on.ConfigAdvanced(snapshot=self.tail.snapshot(), changes=changes))

    def replayed(self, *, compacted: bool = False) -> ConfigSnapshot:
        """Return the state that a new worker would read."""
        last = {record.key: offset for offset, record in enumerate(self.log)}
        log = ConfigLog()
        for offset, record in enumerate(self.log):
            if not compacted or last[record.key] == offset:
                log.apply(offset, *record)
        return log.snapshot()

    def _start_worker(self) -> None:
        self.inbox = deque()
        self.answers = []
        self.own_fencings = {}
        self.prepared = {}
        self.timers = []
        self.connectors = {}
        self.tasks = {}
        self.generation = 0
        self.tail = ConfigLog()
        self.tailed = 0
        self.state = HerderState(
            settings=HerderSettings(
                worker_id="localhost:8083",
                connector_type=lambda config: "source" if config is not None else "unknown",
                standalone=self.standalone,
                exactly_once_source=self.exactly_once,
                group_id="group",
            )
        )
        for offset, record in enumerate(self.log):
            self.tail.apply(offset, *record)
        self.tailed = len(self.log)
        self.inbox.append(on.Initializing())
        self.inbox.append(on.Started(snapshot=self.tail.snapshot()))

    def _later(
        self, queue: str, effect_id: int, result: Callable[[], Any], *, may_fail: bool = True
    ) -> None:
        def finish(well: bool) -> None:
            if well:
                self.inbox.append(on.EffectDone(effect_id=effect_id, result=result()))
            else:
                error = RetriableKafkaError("Error on purpose")
                self.inbox.append(on.EffectFailed(effect_id=effect_id, error=error))

        self.answers.append(Answer(queue, finish, may_fail))

    def _write(self, effect_id: int, *records: LogRecord) -> None:
        """Write records; a write that fails may have been written all the same."""

        def finish(well: bool) -> None:
            if well:
                self.log.extend(records)
                self.read_log()
                done = on.EffectDone(effect_id=effect_id, result=self.tail.snapshot())
                self.inbox.append(done)
                return
            if len(self.log) % 2:
                self.log.extend(records)
            error = PrivilegedWriteError("Failed to perform fencable send to config topic")
            self.inbox.append(on.EffectFailed(effect_id=effect_id, error=error))

        self.answers.append(Answer("writes", finish))

    def _read_to_end(self) -> ConfigSnapshot:
        self.read_log()
        return self.tail.snapshot()

    def fail(self, item: Instance) -> None:
        self._report(item, State.FAILED, trace="ConnectException: on purpose")

    def _will_report(self, item: Instance) -> None:
        """Let an item report its target state later, or its failure."""
        is_task = isinstance(item, ConnectorTaskId)

        def report(well: bool) -> None:
            running = self.tasks.get(item) if is_task else self.connectors.get(item)
            if running is None:
                return
            target = running.target_state
            if not well:
                self.fail(item)
            elif target is TargetState.STARTED or (is_task and target is TargetState.STOPPED):
                self._report(item, State.RUNNING)
            else:
                self._report(item, State[target.value])

        self.answers.append(Answer(f"{'task' if is_task else 'connector'} {item}", report))

    def _report(self, item: Instance, state: State, trace: str | None = None) -> None:
        report = Reported(state=state, trace=trace, version="1")
        self.inbox.append(on.InstanceReported(item=item, report=report))

    def _state_info(self, connector: str) -> ConnectorStateInfo | None:
        status = self.connector_statuses.get(connector)
        if status is None:
            return None
        tasks = {i.task: s for i, s in self.task_statuses.items() if i.connector == connector}
        return ConnectorStateInfo(
            name=connector, connector=status, tasks=tuple(tasks.items()), type="source"
        )
