"""Membership in the herder's view, over a group's thread that does nothing by itself."""

from typing import Any, cast

from pyconnect_agent.core.assign import LeaderIds
from pyconnect_agent.core.group_protocol import (
    Assignment,
    ProtocolVersion,
    Work,
    decode_subscription,
    encode_assignment,
)
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder.effects import RequestRejoin
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot
from pyconnect_agent.herder.connect_group import ConnectGroup, GroupOptions, GroupPorts
from pyconnect_agent.herder.port import WorkerClock
from pyconnect_agent.kafka.group import JoinedGroup
from tests.support.fakes.fake_group import NO_SETTINGS

OWNED = Work(("c",), (ConnectorTaskId("c", 0),))


class Group:
    """A group with this object as its thread; `calls` are the calls of the thread."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.posted: list[on.Event] = []
        self.group = ConnectGroup(
            GroupOptions(
                membership=NO_SETTINGS,
                worker_url="http://w/",
                protocol=ProtocolVersion.SESSIONED,
                scheduled_rebalance_max_delay_ms=0,
                open_timeout_ms=0,
                leader_ids=LeaderIds(own="own", apaches="own", fencing=False),
            ),
            GroupPorts(
                post=self.posted.append,
                config_snapshot=ConfigSnapshot,
                herder_alive=lambda: True,
                failed=self.posted.append,  # type: ignore[arg-type]  # never called
            ),
            WorkerClock(),
            lambda *_, **__: cast("Any", self),
        )

    def permit_join(self) -> None:
        self.calls.append("permit join")

    def join(self, assignment: bytes) -> None:
        """Complete a join."""
        joined = JoinedGroup(
            generation=1, member_id="m", protocol_name="sessioned", assignment=assignment
        )
        self.group.joined(joined)

    def claims(self) -> Assignment | None:
        """Return the claims in the next subscription, None without any."""
        offered = dict(self.group.offered_protocols())
        return decode_subscription(offered["sessioned"]).allocation


def assignment() -> bytes:
    return encode_assignment(
        Assignment(
            version=ProtocolVersion.SESSIONED,
            leader="m",
            leader_url="http://w/",
            config_offset=3,
            assigned=OWNED,
        )
    )


def test_an_assignment_that_cannot_be_decoded_permits_no_join() -> None:
    """An unreadable assignment permits no join, because only the herder may permit one."""
    group = Group()
    group.join(b"")
    assert group.posted == [on.AssignmentUnreadable()]
    assert group.calls == []


def test_a_join_claims_owned_work_and_the_last_assignment() -> None:
    """A join claims nothing before the worker's first assignment."""
    group = Group()
    rejoin = RequestRejoin(snapshot=ConfigSnapshot(), owned=OWNED)
    group.group.request_rejoin(rejoin)
    assert group.claims() is None
    group.join(assignment())
    claims = group.claims()
    assert claims is not None
    assert (claims.assigned, claims.config_offset) == (OWNED, 3)


def test_a_loss_of_the_coordinator_during_a_wish_to_join_is_not_undone() -> None:
    """Work that another worker may have is not claimed, even if two threads act at once."""
    group = Group()
    group.join(assignment())

    class Rejoin:
        """A request during whose reading the group's thread loses the coordinator."""

        @property
        def owned(self) -> Work:
            group.group.coordinator_lost()
            return OWNED

    group.group.request_rejoin(cast("RequestRejoin", Rejoin()))
    assert group.claims() is None
