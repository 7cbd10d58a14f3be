"""The assignment of work: Apache's worked cases, rules of every assignment, the leader's answer."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyconnect_agent.core.assign import (
    AssignorState,
    Elected,
    Election,
    LeaderIds,
    Round,
    RoundResult,
    assign_eagerly,
    assign_incrementally,
    perform_assignment,
    successive_delay_ms,
)
from pyconnect_agent.core.group_protocol import (
    Assignment,
    AssignmentError,
    ProtocolVersion,
    Subscription,
    Work,
)
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot
from tests.support.cases import cases

MAX_DELAY_MS = 300_000


def configured(connectors: int, tasks_each: int) -> Work:
    names = [f"c{number:03}" for number in range(1, connectors + 1)]
    return Work.of(names, [ConnectorTaskId(c, n) for c in names for n in range(tasks_each)])


class Group:
    """A group whose members apply each increment at once; has the time and the leader's state."""

    def __init__(self, work: Work, max_delay_ms: int = MAX_DELAY_MS) -> None:
        self.configured = work
        self.owned: dict[str, Work] = {}
        self.state = AssignorState()
        self.generation = 0
        self.now_ms = 0
        self.max_delay_ms = max_delay_ms

    def rebalance(self, now_ms: int | None = None) -> RoundResult:
        if now_ms is not None:
            self.now_ms = now_ms
        before = dict(self.owned)
        self.state, result = assign_incrementally(
            self.state,
            Round(
                configured=self.configured,
                owned=self.owned,
                last_completed_generation=self.generation or -1,
                generation=self.generation + 1,
                max_delay_ms=self.max_delay_ms,
                now_ms=self.now_ms,
            ),
        )
        self.generation += 1
        for member, increment in result.increments.items():
            # Work may be assigned and be surplus in one round. Then it is only revoked, which makes
            # its member join again, so that the next round assigns it.
            assert (increment.assigned & increment.revoked).empty
            self.owned[member] = (before[member] - increment.revoked) | increment.assigned
        return result

    def settle(self) -> int:
        """Rebalance until nothing changes, with delays passing; return the number of rounds."""
        for round_number in range(1, 60):
            result = self.rebalance()
            moved = any(
                not i.assigned.empty or not i.revoked.empty for i in result.increments.values()
            )
            if not moved and result.delay_ms == 0:
                return round_number
            self.now_ms += result.delay_ms
        raise AssertionError("the group does not settle")

    def check_settled(self) -> None:
        connectors = [c for w in self.owned.values() for c in w.connectors]
        tasks = [t for w in self.owned.values() for t in w.tasks]
        assert sorted(connectors) == list(self.configured.connectors)
        assert sorted(tasks) == list(self.configured.tasks)
        for counts in (
            [len(w.connectors) for w in self.owned.values()],
            [len(w.tasks) for w in self.owned.values()],
        ):
            assert max(counts) - min(counts) <= 1


def settled_group(work: Work, members: int, max_delay_ms: int = MAX_DELAY_MS) -> Group:
    """Return a group whose members `w1`, `w2`, … share the work."""
    group = Group(work, max_delay_ms)
    group.owned = {f"w{number + 1}": Work() for number in range(members)}
    group.settle()
    return group


def counts(work: Work) -> tuple[int, int]:
    return len(work.connectors), len(work.tasks)


def test_eager_deals_tasks_on_where_connectors_ended() -> None:
    """Tasks go on with the member after the last connector's."""
    dealt = assign_eagerly(["b", "a"], configured(3, 1))
    assert dealt["a"] == Work.of(["c001", "c003"], [ConnectorTaskId("c002", 0)])
    assert dealt["b"] == Work.of(["c002"], [ConnectorTaskId("c001", 0), ConnectorTaskId("c003", 0)])


def test_a_departed_worker_is_waited_for_and_its_successor_gets_its_work() -> None:
    """Lost work waits for the delay, then goes to the member that came meanwhile."""
    group = Group(configured(2, 4))
    group.owned = {"w1": Work()}
    first = group.rebalance(0)
    assert counts(first.increments["w1"].assigned) == (2, 8)

    group.owned["w2"] = Work()
    second = group.rebalance(1_000)
    assert counts(second.increments["w1"].revoked) == (1, 4)
    assert second.increments["w2"].assigned.empty
    assert second.delay_ms == 0

    third = group.rebalance(1_100)
    assert counts(third.increments["w2"].assigned) == (1, 4)
    assert not group.state.revoked_in_previous

    lost = group.owned.pop("w2")
    fourth = group.rebalance(5_000)
    assert fourth.delay_ms == MAX_DELAY_MS
    assert fourth.increments["w1"].assigned.empty

    group.owned["w3"] = Work()
    fifth = group.rebalance(65_000)
    assert fifth.delay_ms == 240_000
    assert group.state.candidates == ("w3",)
    assert all(increment.assigned.empty for increment in fifth.increments.values())

    sixth = group.rebalance(305_000)
    assert sixth.increments["w3"].assigned == lost
    assert sixth.delay_ms == 0
    group.check_settled()


def test_lost_work_moves_at_once_without_a_delay_or_a_memory() -> None:
    """Lost work moves at once if the delay is 0 ms or a new leader does not know it."""
    group = settled_group(configured(4, 2), 2, max_delay_ms=0)
    del group.owned["w2"]
    group.rebalance()
    group.check_settled()
    group = settled_group(configured(4, 2), 2)
    del group.owned["w1"]
    group.state = AssignorState()
    assert group.rebalance().delay_ms == 0
    group.check_settled()


def test_work_created_during_a_delay_is_assigned_at_once() -> None:
    """Only lost work waits for a delay."""
    group = settled_group(configured(2, 1), 2)
    del group.owned["w2"]
    assert group.rebalance().delay_ms > 0
    group.configured = configured(3, 1)
    result = group.rebalance()
    assert "c003" in result.increments["w1"].assigned.connectors


def test_deleted_and_duplicated_work_is_taken_first() -> None:
    """Deleted work is revoked, and work with two owners is revoked from both."""
    group = Group(configured(1, 1))
    group.owned = {"w1": Work.of(["c001", "gone"], [ConnectorTaskId("gone", 0)])}
    result = group.rebalance()
    assert result.increments["w1"].revoked == Work.of(["gone"], [ConnectorTaskId("gone", 0)])
    group = Group(configured(1, 1))
    both = configured(1, 1)
    group.owned = {"w1": both, "w2": both}
    result = group.rebalance()
    assert result.increments["w1"].revoked == both
    assert result.increments["w2"].revoked == both
    group.settle()
    group.check_settled()


def test_an_assignment_that_no_member_received_is_assigned_again() -> None:
    """If all members stayed, missing work is assigned again without a delay."""
    group = settled_group(configured(2, 2), 2)
    group.owned["w2"] = Work()
    result = group.rebalance()
    assert result.delay_ms == 0
    group.check_settled()


@cases("successive, expected_ms", (1, 40), (2, 1_600), (3, 64_000), (4, 300_000), (9, 300_000))
def test_successive_revocations_back_off(successive: int, expected_ms: int) -> None:
    """The delay is 40 ms to the power of the number of revocations, up to the maximum."""
    assert successive_delay_ms(successive, MAX_DELAY_MS) == expected_ms


@cases("maximum", 0, 1)
def test_a_tiny_maximum_is_the_delay(maximum: int) -> None:
    """A maximum of 0 or 1 ms is the delay itself."""
    assert successive_delay_ms(5, maximum) == maximum


def test_adding_a_worker_moves_only_what_balance_needs() -> None:
    """A fourth worker gets a quarter of the work of three, and nothing else moves."""
    group = settled_group(configured(100, 2), 3)
    before = dict(group.owned)
    group.owned["w4"] = Work()
    group.settle()
    group.check_settled()
    assert counts(group.owned["w4"]) == (25, 50)
    for member, work in before.items():
        assert (group.owned[member] - work).empty


churn = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.integers(1, 6)),
        st.tuples(st.just("leave"), st.integers(1, 6)),
        st.tuples(st.just("configure"), st.integers(0, 8)),
        st.tuples(st.just("wait"), st.integers(0, 400_000)),
        st.tuples(st.just("new leader"), st.just(0)),
        st.tuples(st.just("miss"), st.integers(1, 6)),
    ),
    max_size=14,
)


@settings(max_examples=150)
@given(churn, st.sampled_from([0, 1, 5_000, MAX_DELAY_MS]))
def test_churn_ends_balanced_owned_once(steps: list[tuple[str, int]], max_delay_ms: int) -> None:
    """No sequence of joins, departures, changes and missed rounds loses or doubles work."""
    group = Group(configured(3, 2), max_delay_ms)
    group.owned = {"w1": Work()}
    for action, number in steps:
        member = f"w{number}"
        if action == "join":
            group.owned.setdefault(member, Work())
        elif action == "leave" and len(group.owned) > 1:
            group.owned.pop(member, None)
        elif action == "configure":
            group.configured = configured(number, 3 - number % 3)
        elif action == "wait":
            group.now_ms += number
        elif action == "new leader":
            group.state = AssignorState()
        elif action == "miss" and member in group.owned:
            group.owned[member] = Work()
        group.rebalance()
        held = [c for w in group.owned.values() for c in w.connectors]
        assert len(held) == len(set(held))
    group.settle()
    group.check_settled()


def snapshot(offset: int, **task_counts: int) -> ConfigSnapshot:
    return ConfigSnapshot(
        offset=offset,
        connector_configs={name: {"name": name} for name in task_counts},
        task_counts=task_counts,
    )


def elect(
    members: dict[str, Subscription],
    joined_with: ConfigSnapshot,
    latest: ConfigSnapshot | None = None,
    protocol: ProtocolVersion = ProtocolVersion.SESSIONED,
) -> Elected:
    _, verdict = perform_assignment(
        AssignorState(),
        Election(
            protocol=protocol,
            leader="m1",
            generation=3,
            last_completed_generation=2,
            members=members,
            joined_with=joined_with,
            latest=latest or joined_with,
            max_delay_ms=300_000,
            now_ms=0,
        ),
    )
    return verdict


def member(name: str, offset: int, work: Work | None = None) -> Subscription:
    allocation = None
    if work is not None:
        allocation = Assignment(
            version=2, leader="m1", leader_url="u", config_offset=offset, assigned=work
        )
    return Subscription(
        version=2, url=f"http://{name}:8083/", config_offset=offset, allocation=allocation
    )


def test_a_leader_that_lags_behind_catches_up_or_lets_all_join() -> None:
    """If no snapshot of the leader is new enough, all get CONFIG_MISMATCH with the offset."""
    verdict = elect({"m1": member("m1", 5), "m2": member("m2", 9)}, snapshot(5, c=1))
    assert verdict.owners is None
    for assignment in verdict.assignments.values():
        assert assignment.error == AssignmentError.CONFIG_MISMATCH
        assert assignment.config_offset == 9
        assert assignment.assigned.empty
    verdict = elect(
        {"m1": member("m1", 5), "m2": member("m2", 9)}, snapshot(5, old=1), snapshot(11, c=2)
    )
    assert {a.config_offset for a in verdict.assignments.values()} == {11}
    assert verdict.owners is not None
    assert set(verdict.owners.connectors) == {"c"}


def test_an_inconsistent_connector_contributes_no_tasks() -> None:
    """The connector instance is assigned, so that it can generate a complete task set."""
    damaged = ConfigSnapshot(
        offset=3, connector_configs={"c": {}}, task_counts={"c": 4}, inconsistent=frozenset({"c"})
    )
    verdict = elect({"m1": member("m1", 3)}, damaged)
    assert verdict.assignments["m1"].assigned == Work.of(["c"])


@pytest.mark.parametrize("protocol", list(ProtocolVersion))
def test_owners_name_the_advertised_url_of_every_item(protocol: ProtocolVersion) -> None:
    """The owners include work that a member keeps from earlier rounds."""
    kept = Work.of(["a"], [ConnectorTaskId("a", 0)])
    verdict = elect(
        {"m1": member("m1", 4, kept), "m2": member("m2", 4)},
        snapshot(4, a=1, b=1),
        protocol=protocol,
    )
    assert verdict.owners is not None
    assert set(verdict.owners.connectors) == {"a", "b"}
    assert set(verdict.owners.tasks) == {ConnectorTaskId("a", 0), ConnectorTaskId("b", 0)}
    assert verdict.owners.connectors["a"] == "http://m1:8083/"
    assert verdict.owners.connectors["b"] == "http://m2:8083/"
    assert verdict.assignments["m2"].leader_url == "http://m1:8083/"
    if protocol is not ProtocolVersion.EAGER:
        assert verdict.assignments["m1"].assigned.empty, "kept work is not sent again"


@cases("java", False, True)
def test_assignments_say_whether_all_members_are_agents(java: bool) -> None:
    """An unmarked member is a Java worker or an older agent."""
    members = {"m1": replace(member("w1", 7), agent=True), "m2": member("w2", 7)}
    if not java:
        members["m2"] = replace(members["m2"], agent=True)
    verdict = elect(members, snapshot(7))
    assert {found.agents_only for found in verdict.assignments.values()} == {not java}


KAFKAS = "connect-cluster-g"


def leader_ids(own: str, *, fencing: bool = True) -> LeaderIds:
    return LeaderIds(own=own, apaches=KAFKAS, fencing=fencing)


def telling(*told: str | None) -> dict[str, Subscription]:
    """Return members `m0`, `m1`, … at `http://w0/`, `http://w1/`, … with these ids."""
    return {
        f"m{number}": Subscription(
            version=2, url=f"http://w{number}/", config_offset=0, leader_transactional_id=leader_id
        )
        for number, leader_id in enumerate(told)
    }


@cases(
    "own, told, others",
    (KAFKAS, (None, None), {}),
    (KAFKAS, (None, KAFKAS), {}),
    ("own", ("own", "own"), {}),
    ("own", ("own", None), {"http://w1/": KAFKAS}),
    ("own", ("own", "b", "own", "c"), {"http://w1/": "b", "http://w3/": "c"}),
    (KAFKAS, (None, "own"), {"http://w1/": "own"}),
)
def test_members_with_another_leader_id_are_named(
    own: str, told: tuple[str | None, ...], others: dict[str, str]
) -> None:
    """A member without an id in its subscription, as a Java worker, leads with Kafka's id."""
    assert leader_ids(own).others(telling(*told)) == others


def test_an_id_counts_for_fencing_only() -> None:
    """At `disabled` no id is wrong; Kafka's own id is not sent, so that bytes are Apache's."""
    assert leader_ids("own", fencing=False).others(telling("own", None)) == {}
    assert leader_ids(KAFKAS).told is None
    assert leader_ids("own").told == "own"


def test_a_member_that_cannot_be_understood_is_named_by_its_member_id() -> None:
    """An unreadable member has no URL, and counts as one with Kafka's id."""
    unreadable = {"m9": Subscription(version=0, url="", config_offset=-1)}
    assert leader_ids("own").others(unreadable) == {"m9": KAFKAS}
