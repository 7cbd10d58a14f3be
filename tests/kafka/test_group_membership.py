"""Membership in a real group: joins only when permitted, heartbeats only while the herder runs."""

import json
import queue
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from pyconnect_agent.kafka.group import GroupThread, JoinedGroup, MembershipSettings
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker

pytestmark = pytest.mark.kafka


class Member:
    """A member whose metadata is its name; as leader it sends each member all names."""

    def __init__(
        self,
        name: str,
        bootstrap: str,
        group: str,
        *,
        client: Mapping[str, object] | None = None,
        **settings: int,
    ) -> None:
        self.name = name
        self.events: queue.Queue[Any] = queue.Queue()
        self.herder_alive = True
        values = {
            "session_timeout_ms": 6_000,
            "heartbeat_interval_ms": 200,
            "rebalance_timeout_ms": 10_000,
            "request_timeout_ms": 10_000,
            "retry_backoff_ms": 100,
            **settings,
        }
        self.thread = GroupThread(
            MembershipSettings(
                group_id=group,
                client=client or {"bootstrap_servers": bootstrap, "client_id": name},
                **values,
            ),
            self,
            self,
            herder_alive=lambda: self.herder_alive,
        )

    def offered_protocols(self) -> Sequence[tuple[str, bytes]]:
        return [("sessioned", self.name.encode())]

    def assign(
        self, leader: str, protocol_name: str, generation: int, members: Mapping[str, bytes]
    ) -> Mapping[str, bytes]:
        names = sorted(metadata.decode() for metadata in members.values())
        return dict.fromkeys(members, json.dumps({"leader": leader, "names": names}).encode())

    def rejoin_needed(self) -> None:
        self.events.put("rejoin needed")

    def joined(self, joined: JoinedGroup) -> None:
        self.events.put(joined)

    def coordinator_lost(self) -> None:
        self.events.put("coordinator lost")

    def failed(self, error: BaseException) -> None:
        self.events.put(error)

    def next(self, timeout_s: float = 60.0) -> Any:
        return self.events.get(timeout=timeout_s)

    def await_rejoin_needed(self) -> None:
        """Skip losses of a coordinator that is loading or whose broker is busy."""
        while (event := self.next()) == "coordinator lost":
            pass
        assert event == "rejoin needed", event

    def join(self) -> dict[str, Any]:
        """Permit joins until one completes; return the member's assignment."""
        while True:
            self.thread.permit_join()
            event = self.next()
            if isinstance(event, JoinedGroup):
                assert event.protocol_name == "sessioned"
                return dict(json.loads(event.assignment))
            assert event in ("rejoin needed", "coordinator lost"), event


@contextmanager
def members(*made: Member) -> Iterator[None]:
    try:
        for member in made:
            member.thread.start(60_000)
        yield
    finally:
        for member in made:
            member.thread.stop(5_000)


def test_two_members_share_the_leaders_assignment(kafka_broker: SharedBroker) -> None:
    """The second member's arrival makes the first one rejoin, and both know each other."""
    group = unique_name("group")
    first, second = (Member(n, kafka_broker.bootstrap_servers, group) for n in ("a", "b"))
    with members(first, second):
        first.await_rejoin_needed()
        assert first.join()["names"] == ["a"]
        second.await_rejoin_needed()
        second.thread.permit_join()
        first.await_rejoin_needed()
        first.thread.permit_join()
        assert json.loads(first.next().assignment)["names"] == ["a", "b"]
        assert json.loads(second.next().assignment)["names"] == ["a", "b"]
        assert first.thread.member_id != second.thread.member_id


def test_no_join_is_sent_before_it_is_permitted(kafka_broker: SharedBroker) -> None:
    """A member without permission is not in the group that another member forms."""
    group = unique_name("group")
    silent, active = (Member(n, kafka_broker.bootstrap_servers, group) for n in ("a", "b"))
    with members(silent, active):
        silent.await_rejoin_needed()
        assert active.join()["names"] == ["b"]
        assert silent.thread.member_id == ""


def test_a_member_whose_herder_hangs_leaves_the_group(kafka_broker: SharedBroker) -> None:
    """After `rebalance.timeout.ms` without a sign of the herder, the member leaves the group."""
    group = unique_name("group")
    wedged = Member("a", kafka_broker.bootstrap_servers, group, rebalance_timeout_ms=2_000)
    other = Member("b", kafka_broker.bootstrap_servers, group)
    with members(wedged, other):
        wedged.join()
        other.thread.permit_join()
        wedged.await_rejoin_needed()
        wedged.thread.permit_join()
        assert isinstance(wedged.next(), JoinedGroup)
        wedged.herder_alive = False
        eventually(
            lambda: other.join()["names"] == ["b"], 30, "the other member is alone in the group"
        )
        assert wedged.thread.member_id == ""


def test_leaving_and_joining_again_makes_a_new_member(kafka_broker: SharedBroker) -> None:
    """`leave` ends the membership at once; the next permitted join has a new member id."""
    member = Member("a", kafka_broker.bootstrap_servers, unique_name("group"))
    with members(member):
        member.join()
        before = member.thread.member_id
        member.thread.leave("taking too long to read the log")
        member.await_rejoin_needed()
        member.join()
        assert before
        assert member.thread.member_id not in ("", before)


def test_an_assignment_that_raises_fails_the_membership(kafka_broker: SharedBroker) -> None:
    """The exception of a hook fails the join and ends the worker."""
    member = Member("a", kafka_broker.bootstrap_servers, unique_name("group"))
    error = RuntimeError("unforeseen")

    def assign(*_: Any) -> Mapping[str, bytes]:
        raise error

    member.assign = assign  # type: ignore[method-assign]
    with members(member):
        member.await_rejoin_needed()
        member.thread.permit_join()
        assert member.next() is error
        assert member.thread.confirmed_s() is None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_network_thread_that_has_died_fails_the_membership(kafka_broker: SharedBroker) -> None:
    """Without the thread's heartbeats the group gives this member's work to others."""
    member = Member("a", kafka_broker.bootstrap_servers, unique_name("group"))
    error = RuntimeError("unforeseen")

    def crash(*_: Any) -> None:
        raise error

    with members(member):
        member.join()
        assert member.thread.confirmed_s() is not None
        net = member.thread._membership._client._net
        net._poll_once = crash
        assert member.next() is error
        assert member.thread.confirmed_s() is None
        # Else the sockets would stay open.
        del net._poll_once
        net._exception = net._io_thread = None
        net.start()
