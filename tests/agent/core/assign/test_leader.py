"""The elected leader's answer: whose log decides, what each member gets, who owns what."""

from dataclasses import replace

import pytest

from pyconnect_agent.core.assign.incremental import AssignorState
from pyconnect_agent.core.assign.leader import Elected, Election, perform_assignment
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
    """CONFIG_MISMATCH goes to all with the offset to reach; its newest snapshot counts."""
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
    """Its instance is assigned so that it can produce a complete task set."""
    damaged = ConfigSnapshot(
        offset=3, connector_configs={"c": {}}, task_counts={"c": 4}, inconsistent=frozenset({"c"})
    )
    verdict = elect({"m1": member("m1", 3)}, damaged)
    assert verdict.assignments["m1"].assigned == Work.of(["c"])


@pytest.mark.parametrize("protocol", list(ProtocolVersion))
def test_owners_name_the_advertised_url_of_every_item(protocol: ProtocolVersion) -> None:
    """Also of work that a member keeps from before."""
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
    """A member that does not mark itself is a Java worker, or an agent of earlier."""
    members = {"m1": replace(member("w1", 7), agent=True), "m2": member("w2", 7)}
    if not java:
        members["m2"] = replace(members["m2"], agent=True)
    verdict = elect(members, snapshot(7))
    assert {found.agents_only for found in verdict.assignments.values()} == {not java}
