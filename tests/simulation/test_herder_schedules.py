"""One herder under schedules that hypothesis picks: delays, failures, crashes, any request."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pyconnect_agent.core.herder import requests as ask
from pyconnect_agent.core.herder.events import MembershipLost, RejoinNeeded, TaskStartAsked
from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.core.internal_topics import config_records
from tests.simulation.herder_world import World
from tests.simulation.requests import CONFIGS, CONNECTORS, TIMEOUTS_MS, requests

pytestmark = pytest.mark.simulation


class HerderMachine(RuleBasedStateMachine):
    standalone = False
    exactly_once = False

    def __init__(self) -> None:
        super().__init__()
        self.world = World(standalone=self.standalone, exactly_once=self.exactly_once)

    @rule(request=requests(), timeout_ms=TIMEOUTS_MS)
    def ask(self, request: ask.Request, timeout_ms: int) -> None:
        self.world.ask(request, timeout_ms=timeout_ms)

    @rule(connector=CONNECTORS, config=CONFIGS)
    def create(self, connector: str, config: dict[str, str]) -> None:
        self.world.ask(ask.PutConnectorConfig(connector=connector, config=config))

    @precondition(lambda self: self.world.inbox)
    @rule(count=st.integers(1, 5))
    def decide(self, count: int) -> None:
        for _ in range(min(count, len(self.world.inbox))):
            self.world.deliver()

    @precondition(lambda self: self.world.answers)
    @rule(data=st.data(), well=st.integers(0, 3).map(bool))
    def end_an_effect(self, data: st.DataObject, well: bool) -> None:
        self.world.answer(data.draw(st.sampled_from(self.world.answerable())), well=well)

    @rule()
    def run_on(self) -> None:
        self.world.settle()

    @precondition(lambda self: self.world.timers)
    @rule()
    def pass_time(self) -> None:
        self.world.pass_time()

    @precondition(lambda self: self.world.tailed < len(self.world.log))
    @rule(count=st.integers(1, 3))
    def read_some(self, count: int) -> None:
        self.world.read_log(until=self.world.tailed + count)

    @rule(connector=CONNECTORS, state=st.sampled_from([TargetState.STARTED, TargetState.PAUSED]))
    def pause_or_resume_elsewhere(self, connector: str, state: TargetState) -> None:
        if self.world.replayed().contains(connector):
            self.world.write_elsewhere(config_records.target_state(connector, state))

    @precondition(lambda self: self.world.tasks)
    @rule(data=st.data())
    def fail_a_task(self, data: st.DataObject) -> None:
        self.world.fail(data.draw(st.sampled_from(sorted(self.world.tasks))))

    @rule()
    def rebalance(self) -> None:
        self.world.inbox.append(RejoinNeeded())

    @rule()
    def lose_the_coordinator(self) -> None:
        self.world.inbox.append(MembershipLost())

    @rule()
    def crash(self) -> None:
        self.world.crash()

    @invariant()
    def requests_are_answered_in_time(self) -> None:
        self.world.check_replies()
        assert self.world.aborted is None

    def teardown(self) -> None:
        self.world.settle()
        while self.world.deadlines.keys() - self.world.replies.keys() - self.world.lost:
            self.world.pass_time()
            self.world.settle()
        self.world.check_rest()
        assert self.world.state.waiters == {}
        assert self.world.state.operations == {}
        assert self.world.state.lanes == {}
        self.crashed_worker_finds_the_same()

    def crashed_worker_finds_the_same(self) -> None:
        before = self.world.replayed()
        compacted = self.world.replayed(compacted=True)
        assert compacted.connector_configs == before.connector_configs
        # Task sets may differ: a commit older than its connector's latest config counts for nothing
        # once compaction has removed the earlier config. The owner then generates the task configs
        # again.
        for connector in before.connectors():
            assert compacted.target_state(connector) is before.target_state(connector)
        self.world.crash()
        self.world.settle()
        self.world.check_rest()


class StandaloneMachine(HerderMachine):
    standalone = True


class ExactlyOnceMachine(HerderMachine):
    """Older instances of every source task are fenced before it starts; rounds may fail."""

    exactly_once = True

    @precondition(lambda self: self.world.tasks)
    @rule(data=st.data())
    def ask_to_begin(self, data: st.DataObject) -> None:
        task_id = data.draw(st.sampled_from(sorted(self.world.tasks)))
        self.world.inbox.append(TaskStartAsked(task_id=task_id, request_id=1))


COMMON = settings(
    max_examples=150,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestHerderSchedules = HerderMachine.TestCase
TestHerderSchedules.settings = COMMON
TestExactlyOnceSchedules = ExactlyOnceMachine.TestCase
TestExactlyOnceSchedules.settings = COMMON
TestStandaloneSchedules = StandaloneMachine.TestCase
TestStandaloneSchedules.settings = COMMON
