"""Several herders, one group, one log, one clock: `herder_world.World` times n.

Each worker is the real herder's `decide` with the real `ConnectGroup` (claims, elections,
assignor) on a fake member of a fake coordinator. The config log and the statuses are shared.
Clients' requests travel from worker to worker as the REST layer sends them. The rules of a cluster
are held here, at the moment an effect is emitted:

- no task is started by two workers of one generation, nor while another member of that generation
  runs it;
- a worker joins only when everything that it runs is claimed, from the newest task sets;
- only the leader that holds the privilege writes what only leaders write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyconnect_agent.core import config_records
from pyconnect_agent.core.config_snapshot import SessionKey
from pyconnect_agent.core.errors import (
    InternalError,
    NotAssignedError,
    NotLeaderError,
    PrivilegedWriteError,
)
from pyconnect_agent.core.herder import effects as do
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder.requests import Request, SubmitTaskConfigs
from pyconnect_agent.core.herder.state import (
    HerderSettings,
    Phase,
    SessionKeySettings,
    WritePrivilege,
    owned_work,
)
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.log_record import LogRecord
from pyconnect_agent.core.protocol.messages import ConnectProtocol, Work
from pyconnect_agent.core.reporting import Status
from pyconnect_agent.herder.connect_group import ConnectGroup, GroupOptions, GroupPorts
from pyconnect_agent.kafka.group import MembershipSettings
from tests.support.fake_group import FakeCoordinator, FakeMember, GroupState, member_maker
from tests.support.herder_world import Answer, World

MAX_DELAY_MS = 10_000
REQUEST_TIMEOUT_MS = 90_000
HOPS = 2
_PRIVILEGED = (
    do.WriteConnectorConfig
    | do.RemoveConnectorConfig
    | do.WriteTaskConfigs
    | do.WriteRestartRequest
    | do.WriteSessionKey
)
_FAR_MS = 600_000

Step = tuple[str, Callable[[], None]]


@dataclass(slots=True)
class ClientRequest:
    """A client's request on its way through the workers; `reply` is what the client gets."""

    request: Request
    hops_left: int = HOPS
    reply: do.Reply | None = None
    lost: bool = False


@dataclass(slots=True)
class Cluster:
    """`started`: (generation, task) -> worker. `epoch`: of the last claim of the config topic."""

    size: int
    protocol: ConnectProtocol = ConnectProtocol.SESSIONED
    max_delay_ms: int = MAX_DELAY_MS
    now_ms: int = 1_000_000
    log: list[LogRecord] = field(default_factory=list)
    connector_statuses: dict[str, Status] = field(default_factory=dict)
    task_statuses: dict[ConnectorTaskId, Status] = field(default_factory=dict)
    coordinator: FakeCoordinator = field(default_factory=FakeCoordinator)
    epoch: int = 0
    started: dict[tuple[int, ConnectorTaskId], str] = field(default_factory=dict)
    starts: list[tuple[int, str, ConnectorTaskId]] = field(default_factory=list)
    requests: list[ClientRequest] = field(default_factory=list)
    workers: list[Worker] = field(init=False)

    def __post_init__(self) -> None:
        self.workers = [Worker(self, f"w{number}") for number in range(self.size)]

    # What a test may let happen

    def ask(
        self, worker: Worker, request: Request, *, timeout_ms: int = REQUEST_TIMEOUT_MS
    ) -> ClientRequest:
        asked = ClientRequest(request)
        self.requests.append(asked)
        self._send(worker, asked, timeout_ms)
        return asked

    def add_worker(self) -> Worker:
        worker = Worker(self, f"w{len(self.workers)}")
        self.workers.append(worker)
        return worker

    def group_steps(self) -> list[Step]:
        steps = [
            (f"{worker.name} {name}", step)
            for worker in self.workers
            for name, step in worker.member.steps()
        ]
        if self.coordinator.electable:
            steps.append(("elect", self.coordinator.elect))
        return steps

    def expirable(self) -> list[str]:
        """Members whose session may end: all but those that wait for an answer and live."""
        return [
            member_id
            for member_id, seat in self.coordinator.seats.items()
            if not (seat.waiting and seat.member.alive)
        ]

    def dead_members(self) -> list[str]:
        return [m for m, seat in self.coordinator.seats.items() if not seat.member.alive]

    def pass_time(self) -> None:
        """To the next timer of any worker, after everybody has decided what is to be decided."""
        for worker in self.running():
            while worker.inbox:
                worker.deliver()
        due = [at_ms for worker in self.running() for at_ms, _ in worker.timers]
        if not due:
            return
        self.now_ms = max(self.now_ms, min(due))
        for worker in self.running():
            worker.fire_due()

    def settle(self, rounds: int = 20_000) -> None:
        """Let everything go well until nothing is left to happen."""
        for _ in range(rounds):
            if not self.take_step():
                return
        raise AssertionError(f"never at rest: {[worker.state.phase for worker in self.workers]}")

    def take_step(self) -> bool:
        """Let one thing happen, time last; False at rest."""
        for worker in self.running():
            if worker.inbox:
                worker.deliver()
                return True
            if worker.tailed < len(worker.log) and not worker.lagging:
                worker.read_log()
                return True
            if worker.answers:
                answer = worker.answerable()[0]
                worker.answer(answer, well=not (worker.lagging and answer.queue == "reads"))
                return True
        if steps := self.group_steps():
            steps[0][1]()
            return True
        if dead := self.dead_members():
            self.coordinator.expire(dead[0])
            return True
        if any(worker.urgent_timers() for worker in self.running()):
            self.pass_time()
            return True
        return False

    def running(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.up]

    # The rules

    def check_replies(self) -> None:
        for worker in self.running():
            worker.check_replies()
            assert worker.aborted is None

    def check_rest(self) -> None:
        """Everything runs once, evenly, from the newest configs, and its status says so."""
        workers = self.running()
        if not workers:
            return
        assert self.coordinator.state is GroupState.STABLE
        assert len(self.coordinator.seats) == len(workers)
        snapshot = workers[0].replayed()
        for worker in workers:
            assert worker.state.phase is Phase.RESOLVED
            assert worker.state.snapshot == snapshot
            assert not worker.state.scheduled_rebalance
            assert worker.state.waiters == {}
            assert worker.state.operations == {}
            self._check_runs_what_it_owns(worker)
        owned = [owned_work(worker.state.work) for worker in workers]
        self._check_once([w.connectors for w in owned], set(snapshot.connectors()))
        wanted = {t for c in snapshot.connectors() for t in snapshot.tasks(c)}
        self._check_once([w.tasks for w in owned], wanted)
        assert sum(worker.state.is_leader for worker in workers) == 1
        assert self.connector_statuses.keys() == snapshot.connector_configs.keys()
        assert self.task_statuses.keys() == wanted

    def _check_runs_what_it_owns(self, worker: Worker) -> None:
        snapshot = worker.state.snapshot
        owned = owned_work(worker.state.work)
        assert worker.connectors.keys() == set(owned.connectors)
        startable = {
            task_id
            for task_id in owned.tasks
            if snapshot.target_state(task_id.connector) is not TargetState.STOPPED
        }
        assert worker.tasks.keys() == startable
        for connector, running in worker.connectors.items():
            assert running.config == snapshot.connector_config(connector)
            assert running.target_state is snapshot.target_state(connector)
            assert self.connector_statuses[connector].worker_id == worker.name
        for task_id, task in worker.tasks.items():
            assert task.config == snapshot.task_config(task_id)
            assert task.target_state is snapshot.target_state(task_id.connector)
            status = self.task_statuses[task_id]
            assert status.worker_id == worker.name
            assert status.state in (State.RUNNING, State.PAUSED, State.FAILED)

    def _check_once(self, shares: list[tuple[Any, ...]], wanted: set[Any]) -> None:
        everything = [item for share in shares for item in share]
        assert len(everything) == len(set(everything)), "owned twice"
        assert set(everything) == wanted
        loads = sorted(map(len, shares))
        assert loads[-1] - loads[0] <= 1, f"uneven: {loads}"

    # REST between clients and workers

    def replied(self, worker: Worker, number: int, reply: do.Reply) -> None:
        """A worker has answered: to a client, to the REST layer that forwards, or to a follower."""
        waiting = worker.waiting.pop(number, None)
        if waiting is not None:
            waiting(reply)

    def _send(self, worker: Worker, asked: ClientRequest, timeout_ms: int) -> None:
        if not worker.up:
            asked.lost = True
            return
        number = worker.ask(asked.request, timeout_ms=timeout_ms)
        worker.waiting[number] = partial(self._answered, asked)

    def _answered(self, asked: ClientRequest, reply: do.Reply | None) -> None:
        """`reply` None: the connection broke."""
        error = None if reply is None else reply.error
        target_url = None
        if isinstance(error, NotLeaderError | NotAssignedError):
            target_url = error.target_url
        if target_url and asked.hops_left:
            asked.hops_left -= 1
            self._send(self.at(target_url), asked, REQUEST_TIMEOUT_MS)
            return
        assert asked.reply is None, "a client was answered twice"
        asked.reply, asked.lost = reply, reply is None

    def at(self, url: str) -> Worker:
        return next(worker for worker in self.workers if worker.url == url)


class Worker(World):
    """One worker of the cluster.

    `up` False after a crash, until `boot`; `lagging`: it cannot read the config log for now;
    `stray`: its config topic is not that of the others, or theirs not its own.
    """

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.url = f"http://{name}:8083/"
        self.up = True
        self.lagging = False
        self.stray = False
        self.warnings: list[do.WarnOfOtherConfigTopic] = []
        self.epoch = -1
        self.claimed = False
        self.waiting: dict[int, Callable[[do.Reply | None], None]] = {}
        super().__init__(
            log=cluster.log,
            connector_statuses=cluster.connector_statuses,
            task_statuses=cluster.task_statuses,
            now_ms=cluster.now_ms,
        )

    @property
    def now_ms(self) -> int:  # type: ignore[override]  # the cluster's clock
        return self.cluster.now_ms

    @now_ms.setter
    def now_ms(self, value: int) -> None:
        self.cluster.now_ms = max(value, self.cluster.now_ms)

    def crash(self) -> None:
        """Gone with all children; the group notices only when the session is over."""
        self.up = False
        self.member.alive = False
        self.lost |= self.deadlines.keys() - self.replies.keys()
        self.connectors, self.tasks = {}, {}
        self.inbox.clear()
        waiting, self.waiting = self.waiting, {}
        for answer in waiting.values():
            answer(None)

    def boot(self) -> None:
        self.up = True
        self.claimed = False
        self._start_worker()

    def fire_due(self) -> None:
        due = [timer for at_ms, timer in self.timers if at_ms <= self.now_ms]
        self.timers = [entry for entry in self.timers if entry[0] > self.now_ms]
        for timer in due:
            self.inbox.append(on.TimerDue(timer=timer))
            self.deliver()

    def urgent_timers(self) -> bool:
        """Whether something is due that is no deadline of an answered request."""
        self._drop_stale_deadlines()
        return any(at_ms < self.now_ms + _FAR_MS for at_ms, _ in self.timers)

    # World's parts that are different in a cluster

    def _start_worker(self) -> None:
        super()._start_worker()
        self.state = type(self.state)(settings=self._settings())
        options = GroupOptions(
            membership=_NO_SETTINGS,
            worker_url=self.url,
            protocol=self.cluster.protocol,
            scheduled_rebalance_max_delay_ms=self.cluster.max_delay_ms,
            open_timeout_ms=0,
        )
        ports = GroupPorts(
            post=self._posted,
            # A crashed worker is a new one, with a log of its own, after `boot`.
            config_snapshot=lambda: self.tail.snapshot(),  # noqa: PLW0108
            herder_alive=lambda: True,
            failed=_fail,
        )
        make = member_maker(self.cluster.coordinator, self.name, self._made)
        self.group = ConnectGroup(options, ports, _Clock(self.cluster), make)

    def _settings(self) -> HerderSettings:
        return HerderSettings(
            worker_id=self.name,
            connector_type=lambda config: "source" if config is not None else "unknown",
            scheduled_rebalance_max_delay_ms=self.cluster.max_delay_ms,
            session_key=SessionKeySettings(
                algorithm="HmacSHA256", size_bits=None, ttl_ms=3_600_000
            ),
        )

    def _made(self, member: FakeMember) -> None:
        self.member = member

    def _posted(self, event: on.Event) -> None:
        if isinstance(event, on.Joined):
            self.generation = event.generation
            self.claimed = self.claimed and event.assignment.leader == event.member_id
            assert 0 <= event.assignment.delay_ms <= self.cluster.max_delay_ms
        self.inbox.append(event)

    def _perform(self, effect: do.Effect) -> None:
        super()._perform(effect)
        if isinstance(effect, do.Reply):
            self.cluster.replied(self, effect.request_id, effect)
        elif isinstance(effect, do.LeaveGroup):
            self.group.leave(effect.reason)
        elif isinstance(effect, do.WarnOfOtherConfigTopic):
            assert self.stray, "warned of another config topic, but there is only one"
            self.warnings.append(effect)

    def _rejoin(self, effect: do.RequestRejoin) -> None:
        claimed = set(effect.owned.tasks)
        for task_id, task in self.tasks.items():
            generations = effect.snapshot.task_config_generations
            assert task.generation == generations[task_id.connector], f"{task_id} is stale"
            assert task_id in claimed, f"{task_id} still runs, and is not claimed"
        assert self.connectors.keys() <= set(effect.owned.connectors)
        self.group.request_rejoin(effect)

    def _perform_on_topics(self, effect: do.Effect) -> None:
        if isinstance(effect, _PRIVILEGED):
            assert self.state.membership is not None
            assert self.state.is_leader, "a follower writes"
            assert self.state.privilege is WritePrivilege.HELD
            assert self.claimed, "claimed during an earlier leadership only"
        match effect:
            case do.ClaimWrites(effect_id=effect_id):
                self._later("writes", effect_id, self._claim)
            case do.WriteSessionKey(effect_id=effect_id):
                key = SessionKey(
                    key=bytes(effect.length_bytes),
                    algorithm=effect.algorithm,
                    created_ms=self.now_ms,
                )
                self._write(effect_id, config_records.session_key(key))
            case do.WriteTargetState():
                record = config_records.target_state(effect.connector, effect.target_state)
                self._write_plainly(effect.effect_id, record)
            case do.SendTaskConfigs():
                self._send_to_leader(effect)
            case _:
                super()._perform_on_topics(effect)

    def _perform_on_statuses(self, effect: do.Effect) -> None:
        match effect:
            case do.PutConnectorStatus(connector=connector, status=status, safe=True):
                if _newer(self.connector_statuses.get(connector), status):
                    return
            case do.PutTaskStatus(task_id=task_id, status=status, safe=True):
                if _newer(self.task_statuses.get(task_id), status):
                    return
            case _:
                pass
        super()._perform_on_statuses(effect)

    def _claim(self) -> None:
        self.claimed = True
        self.cluster.epoch += 1
        self.epoch = self.cluster.epoch

    def _write(self, effect_id: int, *records: LogRecord) -> None:
        """As the leader: fenced when another one has claimed the topic since."""
        super()._write(effect_id, *records)
        written = self.answers.pop()

        def finish(well: bool) -> None:
            if self.epoch == self.cluster.epoch:
                written.finish(well)
                return
            error = PrivilegedWriteError("Failed to perform fencable send to config topic")
            self.inbox.append(on.EffectFailed(effect_id=effect_id, error=error))

        self.answers.append(Answer("writes", finish))

    def _write_plainly(self, effect_id: int, record: LogRecord) -> None:
        super()._write(effect_id, record)
        self.answers[-1].queue = "target states"

    def _start_task(self, effect: do.StartTask) -> None:
        super()._start_task(effect)
        task_id = effect.task_id
        owner = self.cluster.started.setdefault((self.generation, task_id), self.name)
        assert owner == self.name, f"{task_id} was started by {owner} in the same generation"
        members = self.cluster.coordinator.generations[self.generation]
        for other in self.cluster.running():
            if other is not self and task_id in other.tasks:
                assert other.member.member_id not in members, f"{task_id} runs at {other.name} too"
        self.cluster.starts.append((self.now_ms, self.name, task_id))

    def _send_to_leader(self, effect: do.SendTaskConfigs) -> None:
        """The leader answers when it has written them; a broken connection is a failure too."""

        def sent(well: bool) -> None:
            leader = self.cluster.at(effect.leader_url)
            if not well or not leader.up:
                answered(None)
                return
            request = SubmitTaskConfigs(connector=effect.connector, configs=effect.configs)
            leader.waiting[leader.ask(request)] = answered

        member = self.member

        def answered(reply: do.Reply | None) -> None:
            if member is not self.member:
                return
            error = InternalError("IO Error") if reply is None else reply.error
            if error is None:
                self.inbox.append(on.EffectDone(effect_id=effect.effect_id))
            else:
                self.inbox.append(on.EffectFailed(effect_id=effect.effect_id, error=error))

        self.answers.append(Answer(f"send {effect.effect_id}", sent))


class _Clock:
    """The cluster's, as the group asks for it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def now_ms(self) -> int:
        return self._cluster.now_ms


def work_of(worker: Worker) -> Work:
    """What really runs there."""
    return Work.of(worker.connectors, worker.tasks)


def settled_cluster(size: int, requests: Iterable[Request] = ()) -> Cluster:
    """A cluster at rest after `requests`, asked of its workers in turn."""
    cluster = Cluster(size)
    cluster.settle()
    for number, request in enumerate(requests):
        cluster.ask(cluster.workers[number % size], request)
        cluster.settle()
    return cluster


def _newer(existing: Status | None, status: Status) -> bool:
    """Another worker has written since: a safe write gives way (internal-topics.md §4.3)."""
    return (
        existing is not None
        and existing.worker_id != status.worker_id
        and existing.generation > status.generation
    )


def _fail(error: Exception) -> None:
    raise error


_NO_SETTINGS = MembershipSettings(
    group_id="connect",
    client={},
    session_timeout_ms=10_000,
    heartbeat_interval_ms=3_000,
    rebalance_timeout_ms=60_000,
    request_timeout_ms=40_000,
    retry_backoff_ms=100,
)
