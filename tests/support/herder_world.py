"""A world for one herder's decisions: a log that survives, children, a group of one, a clock.

Nothing happens by itself: a test picks what comes next. The log is the real reducer over real
records, so what the herder sees is what a config topic would show it. Every effect is checked when
it is emitted: that is where the herder's rules are held (see `_perform`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyconnect_agent.core import config_records
from pyconnect_agent.core.config_snapshot import ConfigSnapshot, ConnectorConfig
from pyconnect_agent.core.configlog import ConfigLog
from pyconnect_agent.core.errors import PrivilegedWriteError, RetriableKafkaError
from pyconnect_agent.core.herder import effects as do
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder.decide import decide
from pyconnect_agent.core.herder.local_group import local_assignment
from pyconnect_agent.core.herder.requests import FenceZombies, Request
from pyconnect_agent.core.herder.state import HerderSettings, HerderState, Life
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.log_record import LogRecord
from pyconnect_agent.core.reporting import ConnectorStateInfo, Status

MEMBER = "connect-1"
TASKS = "tasks"
"""Connector property: how many task configs the fake connector generates."""


@dataclass(frozen=True, slots=True)
class Generated:
    """As supervise.ports.TaskConfigsGenerated."""

    configs: tuple[ConnectorConfig, ...]
    connector_config_changed: bool


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
    """An effect that is under way: `finish(False)` lets it fail. `queue` keeps effects in order."""

    queue: str
    finish: Callable[[bool], None]
    may_fail: bool = True


@dataclass(slots=True)
class World:
    """`log` and `statuses` survive a crash of the worker, the rest does not."""

    standalone: bool = False
    exactly_once: bool = False
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
    timers: list[tuple[int, on.Timer]] = field(init=False)
    tail: ConfigLog = field(init=False)
    tailed: int = field(init=False)
    generation: int = field(init=False)
    own_fencings: dict[int, int] = field(init=False)
    connectors: dict[str, FakeConnector] = field(init=False)
    tasks: dict[ConnectorTaskId, FakeTask] = field(init=False)
    next_request: int = field(default=1)
    fenced: list[tuple[str, ...]] = field(default_factory=list)
    started_answers: list[tuple[ConnectorTaskId, int, str | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._start_worker()

    # What a test may let happen

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

    def deliver(self) -> None:
        """The herder decides on the oldest event of its inbox."""
        event = self.inbox.popleft()
        before = self.state
        self.state, emitted = decide(self.state, event, self.now_ms)
        # As text, because errors compare by identity.
        again = decide(before, event, self.now_ms)
        assert repr(again[1]) == repr(emitted), "decisions are not pure"
        for effect in emitted:
            self._perform(effect)

    def answerable(self) -> list[Answer]:
        """Effects that may end now: the oldest of each queue."""
        first: dict[str, Answer] = {}
        for answer in self.answers:
            first.setdefault(answer.queue, answer)
        return list(first.values())

    def answer(self, answer: Answer, *, well: bool = True) -> None:
        self.answers.remove(answer)
        answer.finish(well or not answer.may_fail)

    def read_log(self, *, until: int | None = None) -> None:
        """The tailing thread reads on, and reports each change."""
        end = len(self.log) if until is None else min(until, len(self.log))
        while self.tailed < end:
            record = self.log[self.tailed]
            applied = self.tail.apply(self.tailed, record.key, record.value)
            self.tailed += 1
            self.inbox.append(
                on.ConfigAdvanced(snapshot=self.tail.snapshot(), changes=applied.changes)
            )

    def pass_time(self) -> None:
        """To the next timer; it fires on time, because the herder has decided all else by then."""
        while self.inbox:
            self.deliver()
        if not self.timers:
            return
        due_ms = min(at_ms for at_ms, _ in self.timers)
        self.now_ms = max(self.now_ms, due_ms)
        due = [timer for at_ms, timer in self.timers if at_ms <= self.now_ms]
        self.timers = [entry for entry in self.timers if entry[0] > self.now_ms]
        for timer in due:
            self.inbox.append(on.TimerDue(timer=timer))
            self.deliver()

    def crash(self) -> None:
        """The worker and all its children are gone; clients lose their connections."""
        self.lost |= self.deadlines.keys() - self.replies.keys()
        self._start_worker()

    def write_elsewhere(self, *records: LogRecord) -> None:
        """Another worker writes to the config topic."""
        self.log.extend(records)

    @property
    def fencing(self) -> list[Answer]:
        """Rounds of fencing that are under way."""
        return [answer for answer in self.answers if answer.queue == "fencing"]

    def log_keys(self) -> list[str]:
        return [(record.key or b"").decode() for record in self.log]

    def settle(self, rounds: int = 3_000) -> None:
        """Let everything go well until nothing is left to happen but request deadlines."""
        for _ in range(rounds):
            if not self.step():
                return
        raise AssertionError(f"never at rest: {self.state.phase}, {len(self.answers)} answers due")

    def step(self) -> bool:
        """Let one thing go well; False at rest."""
        if self.inbox:
            self.deliver()
        elif self.tailed < len(self.log):
            self.read_log()
        elif self.answers:
            self.answer(self.answerable()[0])
        elif any(not isinstance(timer, on.RequestDeadline) for _, timer in self.timers):
            self._drop_stale_deadlines()
            self.pass_time()
        else:
            return False
        return True

    def fail_connector(self, connector: str) -> None:
        self._report_connector(connector, State.FAILED, trace="ConnectException: on purpose")

    def fail_task(self, task_id: ConnectorTaskId) -> None:
        self._report_task(task_id, State.FAILED, trace="ConnectException: on purpose")

    # The rules

    def check_replies(self) -> None:
        """Every request that was not lost with its worker is answered, before its deadline."""
        for number, deadline_ms in self.deadlines.items():
            if number not in self.replies and number not in self.lost:
                assert deadline_ms >= self.now_ms, f"request {number} was never answered"

    def check_rest(self) -> None:
        """What runs is what is configured, from the latest configs."""
        snapshot = self.replayed()
        assert self.state.snapshot == snapshot
        assert self.connectors.keys() == snapshot.connector_configs.keys()
        wanted = {
            task_id
            for connector in snapshot.connectors()
            if snapshot.target_state(connector) is not TargetState.STOPPED
            for task_id in snapshot.tasks(connector)
        }
        refused = self.refused()
        assert self.tasks.keys() == wanted - refused
        for task_id in refused:
            assert self.task_statuses[task_id].state is State.FAILED
        for connector, running in self.connectors.items():
            assert running.config == snapshot.connector_config(connector)
            assert running.target_state is snapshot.target_state(connector)
            started = running.target_state is TargetState.STARTED
            if started and self.connector_statuses[connector].state is State.RUNNING:
                expected = generated_configs(connector, running.config)
                actual = [snapshot.task_config(task_id) for task_id in snapshot.tasks(connector)]
                assert actual == list(expected)
        for task_id, task in self.tasks.items():
            assert task.config == snapshot.task_config(task_id)
            assert task.target_state is snapshot.target_state(task_id.connector)
        assert self.connector_statuses.keys() == snapshot.connector_configs.keys()
        assert self.task_statuses.keys() >= wanted

    def refused(self) -> set[ConnectorTaskId]:
        """Exactly-once tasks that were not started, because older ones could not be fenced."""
        return {
            ConnectorTaskId(connector, number)
            for connector, share in self.state.work.items()
            for number, task in share.tasks.items()
            if task.life is Life.REFUSED
        }

    def replayed(self, *, compacted: bool = False) -> ConfigSnapshot:
        """The state that a new worker would read."""
        last = {record.key: offset for offset, record in enumerate(self.log)}
        log = ConfigLog()
        for offset, record in enumerate(self.log):
            if not compacted or last[record.key] == offset:
                log.apply(offset, record.key, record.value)
        return log.snapshot()

    # The worker's surroundings

    def _start_worker(self) -> None:
        self.inbox = deque()
        self.answers = []
        self.own_fencings = {}
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
            self.tail.apply(offset, record.key, record.value)
        self.tailed = len(self.log)
        self.inbox.append(on.Initializing())
        self.inbox.append(on.Started(snapshot=self.tail.snapshot()))

    def _later(
        self, queue: str, effect_id: int, result: Callable[[], Any], *, may_fail: bool = True
    ) -> None:
        def finish(well: bool) -> None:
            if well:
                done = on.EffectDone(effect_id=effect_id, result=result())
                self.inbox.append(done)
            else:
                error = RetriableKafkaError("Error on purpose")
                self.inbox.append(on.EffectFailed(effect_id=effect_id, error=error))

        self.answers.append(Answer(queue, finish, may_fail))

    def _write(self, effect_id: int, *records: LogRecord) -> None:
        """Written or not, and acknowledged or not, are two things."""

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

    def _perform(self, effect: do.Effect) -> None:
        match effect:
            case do.Reply(request_id=number):
                assert number not in self.replies, f"request {number} answered twice"
                assert self.now_ms <= self.deadlines[number], f"request {number} answered late"
                self.replies[number] = effect
                self._fencing_answered(effect)
            case do.WakeAt(at_ms=at_ms, timer=timer):
                self.timers.append((at_ms, timer))
            case do.RequestRejoin():
                self._rejoin(effect)
            case do.LeaveGroup() | do.WarnOfOtherConfigTopic():
                pass
            case do.Abort(reason=reason):
                self.aborted = reason
            case _:
                self._perform_on_topics(effect)

    def _perform_on_topics(self, effect: do.Effect) -> None:
        match effect:
            case do.ReadConfigToEnd(effect_id=effect_id):
                self._later("reads", effect_id, self._read_to_end)
            case do.ClaimWrites(effect_id=effect_id):
                self._later("writes", effect_id, lambda: None)
            case do.WriteConnectorConfig():
                records = [config_records.connector_config(effect.connector, effect.config)]
                if effect.target_state is not None:
                    state = config_records.target_state(effect.connector, effect.target_state)
                    records.insert(0, state)
                self._write(effect.effect_id, *records)
            case do.RemoveConnectorConfig():
                records_ = config_records.connector_removal(effect.connector)
                self._write(effect.effect_id, *records_)
            case do.WriteTaskConfigs():
                ids = [ConnectorTaskId(effect.connector, n) for n in range(len(effect.configs))]
                self._write(
                    effect.effect_id,
                    *map(config_records.task_config, ids, effect.configs),
                    config_records.tasks_commit(effect.connector, len(ids)),
                )
            case do.WriteTargetState():
                record = config_records.target_state(effect.connector, effect.target_state)
                self._write(effect.effect_id, record)
            case do.WriteRestartRequest():
                request = config_records.restart_request(
                    effect.connector,
                    only_failed=effect.only_failed,
                    include_tasks=effect.include_tasks,
                )
                self._write(effect.effect_id, request)
            case do.WriteTaskCountRecord():
                record = config_records.task_count_record(effect.connector, effect.task_count)
                self._write(effect.effect_id, record)
            case do.FlushStatuses(effect_id=effect_id):
                self._later("statuses", effect_id, lambda: None)
            case _:
                self._perform_on_statuses(effect)

    def _perform_on_statuses(self, effect: do.Effect) -> None:
        match effect:
            case do.ReadStatus(effect_id=effect_id, connector=connector):
                done = on.EffectDone(effect_id=effect_id, result=self._state_info(connector))
                self.inbox.append(done)
            case do.PutConnectorStatus(connector=connector, status=status):
                self.connector_statuses[connector] = status
            case do.PutTaskStatus(task_id=task_id, status=status):
                self.task_statuses[task_id] = status
            case do.CleanStatuses(snapshot=snapshot):
                for connector in self.connector_statuses.keys() - snapshot.connector_configs.keys():
                    del self.connector_statuses[connector]
                for task_id in list(self.task_statuses):
                    if task_id not in snapshot.tasks(task_id.connector):
                        del self.task_statuses[task_id]
            case do.ForgetTopics() | do.ApplyLoggerLevel():
                pass
            case do.ValidateConfig(effect_id=effect_id):
                self._later(f"validate {effect_id}", effect_id, lambda: None)
            case _:
                self._perform_on_children(effect)

    def _perform_on_children(self, effect: do.Effect) -> None:
        match effect:
            case do.StartConnector(connector=connector):
                assert connector not in self.connectors, f"{connector} runs already"
                self.connectors[connector] = FakeConnector(effect.config, effect.target_state)
                self._connector_will_report(connector)
            case do.StartTask(task_id=task_id):
                self._start_task(effect)
            case do.StopWork():
                self._stop_work(effect)
            case do.TransitionConnector(connector=connector, target_state=target):
                self.connectors[connector].target_state = target
                self._connector_will_report(connector)
            case do.TransitionTask(task_id=task_id, target_state=target):
                self.tasks[task_id].target_state = target
                self._task_will_report(task_id)
            case do.GenerateTaskConfigs():
                self._generate(effect)
            case _:
                self._perform_on_producers(effect)

    def _perform_on_producers(self, effect: do.Effect) -> None:
        match effect:
            case do.FenceProducers(effect_id=effect_id):
                self.fenced.append(effect.transactional_ids)
                self._later("fencing", effect_id, lambda: None)
            case do.RequestFencing(effect_id=effect_id, connector=connector):
                self._request_fencing(effect_id, connector)
            case do.AnswerTaskStart(task_id=task_id):
                answer = (task_id, effect.request_id, effect.refusal)
                self.started_answers.append(answer)
            case _:
                raise AssertionError(f"unknown effect: {effect}")

    def _fencing_answered(self, reply: do.Reply) -> None:
        effect_id = self.own_fencings.pop(reply.request_id, None)
        if effect_id is None:
            return
        if reply.error is None:
            self.inbox.append(on.EffectDone(effect_id=effect_id))
        else:
            self.inbox.append(on.EffectFailed(effect_id=effect_id, error=reply.error))

    def _request_fencing(self, effect_id: int, connector: str) -> None:
        """Submit the request to this worker, which leads its group of one."""
        self.own_fencings[self.ask(FenceZombies(connector=connector))] = effect_id

    def _start_task(self, effect: do.StartTask) -> None:
        """The rules of a task's start: nothing stale, nothing twice, nothing for a stopped one."""
        task_id = effect.task_id
        snapshot = self.state.snapshot
        assert task_id not in self.tasks, f"{task_id} runs already"
        assert effect.generation == snapshot.task_config_generations[task_id.connector]
        assert effect.task_config == snapshot.task_config(task_id)
        assert task_id in snapshot.tasks(task_id.connector)
        assert effect.target_state is not TargetState.STOPPED
        if self.exactly_once:
            assert task_id.connector not in snapshot.pending_fencing, "zombies are not fenced"
        membership = self.state.membership
        assert membership is not None
        assert membership.generation == self.generation, "started under an old assignment"
        self.tasks[task_id] = FakeTask(
            effect.task_config, effect.connector_config, effect.target_state, effect.generation
        )
        self._task_will_report(task_id)

    def _stop_work(self, effect: do.StopWork) -> None:
        assert effect.connectors or effect.tasks
        for connector in effect.connectors:
            assert connector in self.connectors, f"{connector} does not run"
        for task_id in effect.tasks:
            assert task_id in self.tasks, f"{task_id} does not run"

        def gone() -> None:
            for connector in effect.connectors:
                del self.connectors[connector]
                self._report_connector(connector, State.UNASSIGNED)
            for task_id in effect.tasks:
                del self.tasks[task_id]
                self._report_task(task_id, State.UNASSIGNED)

        self._later(f"stop {effect.effect_id}", effect.effect_id, gone, may_fail=False)

    def _generate(self, effect: do.GenerateTaskConfigs) -> None:
        def configs() -> Generated:
            return Generated(
                generated_configs(effect.connector, effect.config),
                effect.config != effect.applied_config,
            )

        self._later(f"generate {effect.connector}", effect.effect_id, configs)

    def _rejoin(self, effect: do.RequestRejoin) -> None:
        """The group of one; nothing that is revoked or stale may run while it is joined."""
        for task_id, task in self.tasks.items():
            generations = effect.snapshot.task_config_generations
            assert task.generation == generations[task_id.connector], f"{task_id} is stale"

        def join(_: bool) -> None:
            self.generation += 1
            assignment = local_assignment(MEMBER, "", effect.snapshot, effect.owned)
            event = on.Joined(member_id=MEMBER, generation=self.generation, assignment=assignment)
            self.inbox.append(event)

        self.answers.append(Answer("group", join, may_fail=False))

    def _connector_will_report(self, connector: str) -> None:
        def report(well: bool) -> None:
            running = self.connectors.get(connector)
            if running is None:
                return
            if not well:
                self.fail_connector(connector)
            elif running.target_state is TargetState.STARTED:
                self._report_connector(connector, State.RUNNING)
            else:
                self._report_connector(connector, State[running.target_state.value])

        self.answers.append(Answer(f"connector {connector}", report))

    def _task_will_report(self, task_id: ConnectorTaskId) -> None:
        def report(well: bool) -> None:
            running = self.tasks.get(task_id)
            if running is None:
                return
            if not well:
                self.fail_task(task_id)
                return
            paused = running.target_state is TargetState.PAUSED
            self._report_task(task_id, State.PAUSED if paused else State.RUNNING)

        self.answers.append(Answer(f"task {task_id}", report))

    def _report_connector(self, connector: str, state: State, trace: str | None = None) -> None:
        event = on.ConnectorReported(connector=connector, state=state, trace=trace, version="1")
        self.inbox.append(event)

    def _report_task(
        self, task_id: ConnectorTaskId, state: State, trace: str | None = None
    ) -> None:
        event = on.TaskReported(task_id=task_id, state=state, trace=trace, version="1")
        self.inbox.append(event)

    def _state_info(self, connector: str) -> ConnectorStateInfo | None:
        status = self.connector_statuses.get(connector)
        if status is None:
            return None
        tasks = {i.task: s for i, s in self.task_statuses.items() if i.connector == connector}
        return ConnectorStateInfo(
            name=connector, connector=status, tasks=tuple(tasks.items()), type="source"
        )

    def _drop_stale_deadlines(self) -> None:
        self.timers = [
            (at_ms, timer)
            for at_ms, timer in self.timers
            if not (isinstance(timer, on.RequestDeadline) and timer.request_id in self.replies)
        ]


def generated_configs(connector: str, config: ConnectorConfig) -> tuple[ConnectorConfig, ...]:
    """What the fake connector makes of its config."""
    count = int(config.get(TASKS) or 1)
    text = config.get("text")
    return tuple({"task.class": "FakeTask", "text": text, "n": str(n)} for n in range(count))
