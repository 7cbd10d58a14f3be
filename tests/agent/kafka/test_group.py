"""The group's thread with a membership that has no broker."""

import queue
import time
from collections.abc import Iterator, Mapping, Sequence
from unittest.mock import create_autospec

import pytest

from pyconnect_agent.core.errors import KafkaError, RetriableKafkaError
from pyconnect_agent.kafka import group
from pyconnect_agent.kafka.group import GroupThread, JoinedGroup, LeaderHooks
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fakes.fake_group import NO_SETTINGS

WAIT_S = 150
SETTINGS = NO_SETTINGS


class Membership:
    """A membership in place of kafka-python's: settled, until its heartbeats raise `failures`."""

    def __init__(self) -> None:
        self.failures: list[Exception] = []
        self.beats = 0
        self.coordinator_known = True
        self.needs_rejoin = False
        self.confirmed_s: float | None = time.monotonic()
        self.forgotten = 0

    def open(self, timeout_ms: int) -> None:
        """Do nothing: there is no broker."""

    def close(self, timeout_ms: int) -> None:
        """Do nothing: there is no broker."""

    def find_coordinator(self, timeout_ms: int) -> bool:
        return self.coordinator_known

    def forget_coordinator(self) -> None:
        self.confirmed_s = None
        self.forgotten += 1

    def poll_heartbeat(self) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.beats += 1


class Owner:
    """The hooks and the listener of a group's thread."""

    def __init__(self) -> None:
        self.events: queue.Queue[str | BaseException] = queue.Queue()

    def offered_protocols(self) -> Sequence[tuple[str, bytes]]:
        return ()

    def assign(
        self, leader: str, protocol_name: str, generation: int, members: Mapping[str, bytes]
    ) -> Mapping[str, bytes]:
        return {}

    def rejoin_needed(self) -> None:
        self.events.put("rejoin needed")

    def joined(self, joined: JoinedGroup) -> None:
        self.events.put("joined")

    def coordinator_lost(self) -> None:
        self.events.put("coordinator lost")

    def failed(self, error: BaseException) -> None:
        self.events.put(error)


class Group:
    """A running thread, with its membership and owner."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.membership, self.owner = Membership(), Owner()
        monkeypatch.setattr(group, "GroupMembership", lambda *_: self.membership)
        self.thread = GroupThread(SETTINGS, self.owner, self.owner, herder_alive=lambda: True)

    def fail(self, *failures: Exception) -> None:
        """Let the next heartbeats raise."""
        self.membership.failures.extend(failures)
        self.thread._wake()


@pytest.fixture
def member(monkeypatch: pytest.MonkeyPatch) -> Iterator[Group]:
    made = Group(monkeypatch)
    made.thread.start(0)
    eventually(lambda: made.membership.beats)
    yield made
    made.thread.stop(0)


@cases("error", KafkaError("denied"), RuntimeError("unforeseen"))
def test_an_incurable_error_fails_the_membership(member: Group, error: Exception) -> None:
    """The membership ends after any error that a retry does not cure, so work here must end."""
    assert member.thread.confirmed_s() is not None
    member.fail(error)
    assert member.owner.events.get(timeout=WAIT_S) is error
    member.thread._thread.join(WAIT_S)
    assert member.thread.confirmed_s() is None


def test_a_retriable_error_is_outlived(member: Group) -> None:
    """After a retriable error the thread goes on with the next step."""
    member.fail(RetriableKafkaError("away"), RetriableKafkaError("away"))
    beats = member.membership.beats
    eventually(lambda: member.membership.beats > beats)
    assert member.thread.confirmed_s() is not None
    assert member.owner.events.empty()


def test_a_silent_coordinator_ends_the_membership(member: Group) -> None:
    """The membership ends if the last answer is older than a session; work stops only once."""
    member.membership.confirmed_s -= SETTINGS.session_timeout_ms / 1000 + 1
    assert member.owner.events.get(timeout=WAIT_S) == "coordinator lost"
    assert member.membership.forgotten == 1
    assert member.thread.confirmed_s() is None
    beats = member.membership.beats
    eventually(lambda: member.membership.beats > beats + 1)
    assert member.owner.events.empty()


def test_a_coordinator_that_is_not_found_ends_the_work_once(member: Group) -> None:
    """The loss is reported once, and again only after the coordinator was found."""
    for _ in range(2):
        member.membership.coordinator_known = False
        assert member.owner.events.get(timeout=WAIT_S) == "coordinator lost"
        member.membership.coordinator_known = True
        beats = member.membership.beats
        eventually(lambda beats=beats: member.membership.beats > beats)
    assert member.owner.events.empty()


def test_a_thread_that_hangs_does_not_keep_its_work(member: Group) -> None:
    """A membership is confirmed at the latest by the last turn of its thread."""
    member.thread.stop(0)
    turned_s = member.thread._turned_s
    member.membership.confirmed_s = turned_s + 5
    member.thread._thread.is_alive = lambda: True  # type: ignore[method-assign]
    assert member.thread.confirmed_s() == turned_s


def test_a_broken_membership_can_be_closed() -> None:
    """The worker ends in order even if leaving its group fails in an unforeseen way."""

    class Broken:
        closed = 0

        def close(self, **_: int) -> None:
            self.closed += 1
            raise RuntimeError("unforeseen")

    broken = Broken()
    membership = group.GroupMembership(SETTINGS, create_autospec(LeaderHooks), lambda: None)
    membership._client = membership._coordinator = broken  # type: ignore[assignment]
    membership.close(0)
    assert broken.closed == 2
