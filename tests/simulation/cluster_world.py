"""Several herders, one group, one log, one clock: several `cluster_worker.Worker`s.

The config log and the statuses are shared. Clients' requests go from worker to worker, as the REST
layer sends them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyconnect_agent.core.errors import ForwardableError
from pyconnect_agent.core.group_protocol import ProtocolVersion, Work
from pyconnect_agent.core.herder import effects as do
from pyconnect_agent.core.herder.requests import Request
from pyconnect_agent.core.herder.state import Life, MembershipPhase, owned_work
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_agent.core.reporting import Status
from tests.simulation.cluster_producers import ExactlyOnceWorker, Producers
from tests.simulation.cluster_worker import Worker
from tests.simulation.herder_world import check_count_records
from tests.support.fakes.fake_group import FakeCoordinator, GroupState

MAX_DELAY_MS = 10_000
REQUEST_TIMEOUT_MS = 90_000
HOPS = 2
MANY_STEPS = 5_000

Step = tuple[str, Callable[[], None]]


@dataclass(slots=True)
class ClientRequest:
    """A client's request on its way through the workers; `reply` is what the client gets."""

    request: Request
    hops_left: int = HOPS
    reply: do.Reply | None = None
    lost: bool = False

    @property
    def error(self) -> Exception | None:
        """The error of the reply, which must have come."""
        assert self.reply is not None
        return self.reply.error


@dataclass(slots=True)
class Cluster:
    """A cluster. `started`: (generation, task) -> worker. `epoch`: of the topic's last claim."""

    size: int
    exactly_once: bool = False
    protocol: ProtocolVersion = ProtocolVersion.SESSIONED
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
    producers: Producers = field(init=False)
    workers: list[Worker] = field(init=False)

    def __post_init__(self) -> None:
        self.producers = Producers(self.log)
        self.workers = []
        for _ in range(self.size):
            self.add_worker()

    # Steps that a test may let happen

    def ask(
        self, worker: Worker, request: Request, *, timeout_ms: int = REQUEST_TIMEOUT_MS
    ) -> ClientRequest:
        asked = ClientRequest(request)
        self.requests.append(asked)
        self._send(worker, asked, timeout_ms)
        return asked

    def settled(self, worker: Worker, request: Request) -> ClientRequest:
        """Send a request, and let all steps succeed until rest."""
        asked = self.ask(worker, request)
        self.settle()
        return asked

    def add_worker(self) -> Worker:
        kind = ExactlyOnceWorker if self.exactly_once else Worker
        worker = kind(self, f"w{len(self.workers)}")
        self.workers.append(worker)
        return worker

    def group_steps(self) -> list[Step]:
        steps = [
            (f"{worker.name} {name}", step)
            for worker in self.workers
            if not worker.frozen
            for name, step in worker.member.steps()
        ]
        if self.coordinator.electable:
            steps.append(("elect", self.coordinator.elect))
        return steps

    def expirable(self) -> list[str]:
        """Return the members whose session may end: all but living ones that wait for an answer."""
        return [
            member_id
            for member_id, seat in self.coordinator.seats.items()
            if not (seat.waiting and seat.member.alive)
        ]

    def dead_members(self) -> list[str]:
        return [m for m, seat in self.coordinator.seats.items() if not seat.member.alive]

    def pass_time(self) -> None:
        """Go to the next timer of any worker, after all workers have handled their events."""
        for worker in self.awake():
            while worker.inbox:
                worker.deliver()
        due = [at_ms for worker in self.awake() for at_ms, _ in worker.timers]
        if not due:
            return
        self.now_ms = max(self.now_ms, min(due))
        for worker in self.awake():
            worker.fire_due()

    def settle(self, rounds: int = 20_000) -> None:
        """Let all steps succeed until none is left."""
        for _ in range(rounds):
            if not self.take_step():
                return
        raise AssertionError(f"never at rest: {[worker.state.phase for worker in self.workers]}")

    def take_step(self) -> bool:
        """Let one thing happen, time last; return False at rest."""
        for worker in self.awake():
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
        if any(worker.urgent_timers() for worker in self.awake()):
            self.pass_time()
            return True
        return False

    def run_until(self, reached: Callable[[], bool]) -> None:
        """Take steps until `reached`; fail if none is left before."""
        for _ in range(MANY_STEPS):
            if reached():
                return
            assert self.take_step(), "nothing happens any more"
        raise AssertionError("never reached")

    def leader(self) -> Worker:
        return next(worker for worker in self.running() if worker.state.is_leader)

    def follower(self) -> Worker:
        return next(worker for worker in self.running() if not worker.state.is_leader)

    def awake(self) -> list[Worker]:
        return [worker for worker in self.running() if not worker.frozen]

    def running(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.up]

    # The rules

    def check_replies(self) -> None:
        for worker in self.running():
            worker.check_replies()
            assert worker.aborted is None

    def check_rest(self) -> None:
        """Check that all work runs once, evenly, from the newest configs, as its status says."""
        workers = self.running()
        if not workers:
            return
        assert self.coordinator.state is GroupState.STABLE
        assert len(self.coordinator.seats) == len(workers)
        snapshot = workers[0].replayed()
        check_count_records(snapshot)
        for worker in workers:
            assert worker.state.phase is MembershipPhase.RESOLVED
            assert worker.state.snapshot == snapshot
            assert not worker.state.scheduled_rebalance
            assert not worker.state.rebalance_expected
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
        waiting = worker.tasks_in(Life.REFUSED) | worker.tasks_in(Life.PAUSED)
        assert worker.tasks.keys() == startable - waiting
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
        """Pass an answer on: to a client, to the REST layer that forwards, or to a follower."""
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
        """Take the answer of one worker; `reply` None: the connection broke."""
        error = None if reply is None else reply.error
        target_url = None
        if isinstance(error, ForwardableError):
            target_url = error.target_url
        if target_url and asked.hops_left:
            asked.hops_left -= 1
            self._send(self.at(target_url), asked, REQUEST_TIMEOUT_MS)
            return
        assert asked.reply is None, "a client was answered twice"
        asked.reply, asked.lost = reply, reply is None

    def at(self, url: str) -> Worker:
        return next(worker for worker in self.workers if worker.url == url)


def work_of(worker: Worker) -> Work:
    """Return the work that a worker really runs."""
    return Work.of(worker.connectors, worker.tasks)


def settled_cluster(size: int, requests: Iterable[Request] = ()) -> Cluster:
    """Return a cluster at rest after `requests`, sent to its workers in turn."""
    cluster = Cluster(size)
    cluster.settle()
    for number, request in enumerate(requests):
        cluster.settled(cluster.workers[number % size], request)
    return cluster
