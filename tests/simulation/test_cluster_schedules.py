"""Two to four herders in one group under schedules that hypothesis picks.

`tests.simulation.cluster_world` checks the rules of a cluster when an effect is emitted. This
module only has the possible steps: any interleaving of decisions, effects, reads of the log and
group requests, crashes, returns, sessions that end while the worker lives, lost coordinators,
assignments that cannot be decoded, requests to any worker.
"""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pyconnect_agent.core.group_protocol import ProtocolVersion
from pyconnect_agent.core.herder import requests as ask
from pyconnect_agent.core.herder.events import RejoinNeeded
from tests.simulation.cluster_worker import Worker
from tests.simulation.cluster_world import Cluster
from tests.simulation.herder_world import TASKS
from tests.simulation.requests import CONFIGS, CONNECTOR_NAMES, CONNECTORS, TIMEOUTS_MS, requests
from tests.support.seeds import LONG

pytestmark = [pytest.mark.simulation, pytest.mark.long, pytest.mark.timeout(3_600)]

MOST_WORKERS = 4
INDEXES = st.integers(0, MOST_WORKERS - 1)


class ClusterMachine(RuleBasedStateMachine):
    protocol = ProtocolVersion.SESSIONED
    exactly_once = False

    @initialize(
        size=st.integers(2, MOST_WORKERS), task_counts=st.lists(st.integers(0, 4), max_size=2)
    )
    def begin(self, size: int, task_counts: list[int]) -> None:
        """Make a settled cluster with connectors, or workers that have just been started."""
        self.cluster = Cluster(size, protocol=self.protocol, exactly_once=self.exactly_once)
        for connector, count in zip(CONNECTOR_NAMES, task_counts, strict=False):
            config = {TASKS: str(count), "text": "x"}
            request = ask.PutConnectorConfig(connector=connector, config=config)
            self.cluster.settled(self.cluster.workers[-1], request)

    def worker(self, index: int) -> Worker:
        return self.cluster.workers[index % len(self.cluster.workers)]

    @rule(index=INDEXES, request=requests(), timeout_ms=TIMEOUTS_MS)
    def ask(self, index: int, request: ask.Request, timeout_ms: int) -> None:
        self.cluster.ask(self.worker(index), request, timeout_ms=timeout_ms)

    @rule(index=INDEXES, connector=CONNECTORS, config=CONFIGS)
    def create(self, index: int, connector: str, config: dict[str, str]) -> None:
        request = ask.PutConnectorConfig(connector=connector, config=config)
        self.cluster.ask(self.worker(index), request)

    @rule(index=INDEXES, count=st.integers(1, 5))
    def decide(self, index: int, count: int) -> None:
        worker = self.worker(index)
        for _ in range(min(count, len(worker.inbox))):
            worker.deliver()

    @rule(index=INDEXES, data=st.data(), well=st.integers(0, 3).map(bool))
    def end_an_effect(self, index: int, data: st.DataObject, well: bool) -> None:
        worker = self.worker(index)
        if worker.up and worker.answers:
            worker.answer(data.draw(st.sampled_from(worker.answerable())), well=well)

    @rule(index=INDEXES, count=st.integers(1, 3))
    def read_some(self, index: int, count: int) -> None:
        worker = self.worker(index)
        if worker.up:
            worker.read_log(until=worker.tailed + count)

    @precondition(lambda self: self.cluster.group_steps())
    @rule(data=st.data())
    def take_a_group_step(self, data: st.DataObject) -> None:
        steps = dict(self.cluster.group_steps())
        steps[data.draw(st.sampled_from(sorted(steps)))]()

    @rule()
    def pass_time(self) -> None:
        self.cluster.pass_time()

    @rule(count=st.integers(1, 200))
    def run_on(self, count: int) -> None:
        for _ in range(count):
            if not self.cluster.take_step():
                return

    @rule(index=INDEXES)
    def leave_out_of_assignments(self, index: int) -> None:
        """Let the leader leave a worker out of all assignments, until the cluster settles."""
        self.cluster.coordinator.left_out.add(self.worker(index).name)

    @rule()
    def settle(self) -> None:
        self.cluster.coordinator.left_out.clear()
        self.cluster.settle()
        self.cluster.check_rest()

    @rule(index=INDEXES)
    def crash_or_boot(self, index: int) -> None:
        worker = self.worker(index)
        if worker.up:
            worker.crash()
        else:
            worker.boot()

    @precondition(lambda self: self.cluster.expirable())
    @rule(data=st.data())
    def end_a_session(self, data: st.DataObject) -> None:
        """End a session, also of a living worker, whose network was away or which stood still."""
        member_id = data.draw(st.sampled_from(self.cluster.expirable()))
        self.cluster.coordinator.expire(member_id)

    @rule(index=INDEXES)
    def lose_the_coordinator(self, index: int) -> None:
        worker = self.worker(index)
        if worker.up:
            worker.member.lose_coordinator()

    @rule(index=INDEXES)
    def rebalance(self, index: int) -> None:
        worker = self.worker(index)
        if worker.up:
            worker.inbox.append(RejoinNeeded())

    @precondition(lambda self: any(worker.tasks for worker in self.cluster.workers))
    @rule(data=st.data())
    def fail_a_task(self, data: st.DataObject) -> None:
        running = [(w.name, t) for w in self.cluster.running() for t in sorted(w.tasks)]
        name, task_id = data.draw(st.sampled_from(running))
        next(w for w in self.cluster.workers if w.name == name).fail(task_id)

    @invariant()
    def requests_are_answered_in_time(self) -> None:
        if hasattr(self, "cluster"):
            self.cluster.check_replies()

    def teardown(self) -> None:
        if not hasattr(self, "cluster"):
            return
        cluster = self.cluster
        cluster.coordinator.left_out.clear()
        cluster.settle()
        cluster.check_rest()
        for asked in cluster.requests:
            assert asked.lost or asked.reply is not None, f"never answered: {asked.request}"
        for worker in cluster.workers:
            if not worker.up:
                worker.boot()
        cluster.settle()
        cluster.check_rest()
        self.replaying_the_log_gives_the_same_state()

    def replaying_the_log_gives_the_same_state(self) -> None:
        worker = self.cluster.workers[0]
        whole, compacted = worker.replayed(), worker.replayed(compacted=True)
        assert worker.state.snapshot == whole
        assert compacted.connector_configs == whole.connector_configs
        assert compacted.session_key == whole.session_key
        for connector in whole.connectors():
            assert compacted.target_state(connector) is whole.target_state(connector)


class EagerClusterMachine(ClusterMachine):
    protocol = ProtocolVersion.EAGER


class CompatibleClusterMachine(ClusterMachine):
    protocol = ProtocolVersion.COMPATIBLE


class ExactlyOnceClusterMachine(ClusterMachine):
    """`tests.simulation.cluster_producers` checks which tasks are fenced, cleared and writing."""

    exactly_once = True


def schedules(examples: int) -> settings:
    return settings(
        max_examples=examples * (50 if LONG else 1),
        stateful_step_count=60,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )


TestClusterSchedules = ClusterMachine.TestCase
TestClusterSchedules.settings = schedules(60)
TestEagerClusterSchedules = EagerClusterMachine.TestCase
TestEagerClusterSchedules.settings = schedules(15)
TestCompatibleClusterSchedules = CompatibleClusterMachine.TestCase
TestCompatibleClusterSchedules.settings = schedules(10)
TestExactlyOnceClusterSchedules = ExactlyOnceClusterMachine.TestCase
TestExactlyOnceClusterSchedules.settings = schedules(40)
