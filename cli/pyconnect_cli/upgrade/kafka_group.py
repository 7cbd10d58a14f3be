"""The group of a Connect cluster and its transactions, as the brokers report them.

This module only reads, and never disturbs a living producer. The layout of a member's bytes (big
endian, a text is its length as int16 and UTF-8):

    metadata    int16 version · text REST URL · int64 config offset [· nullable bytes]
    assignment  int16 version · int16 error · text leader's member id · text leader's URL · …
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyconnect_cli.errors import Forbidden, NotFound, ServerError, Unreachable
from pyconnect_cli.kafka.admin import refused
from pyconnect_cli.kafka.transactions import describe_transactions, list_transactional_ids
from pyconnect_cli.upgrade.plan.model import OpenTransaction

if TYPE_CHECKING:
    from pyconnect_clients.brokers.protocol import KafkaProtocol

CONNECT = "connect"
COORDINATOR_S = 15.0
COORDINATOR_PAUSE_S = 0.2
MEMBER_S = 30.0
MEMBER_PAUSE_S = 0.5
_NONE, _NOT_AUTHORIZED, _NO_SUCH_GROUP = 0, 30, 69
_WITH_INTROSPECTION = (3, 0)
_MARGIN_MS = 10_000
"""Beyond a transaction's timeout: how often a coordinator looks for expired ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One worker in the group; `url` has no slash at its end."""

    id: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerGroup:
    """A group; during a rebalance the members' URLs and the leader may be unknown."""

    id: str
    state: str = "Dead"
    type: str = ""
    protocol: str = ""
    members: tuple[Member, ...] = ()
    leader_url: str | None = None


def describe_group(protocol: KafkaProtocol, group_id: str) -> WorkerGroup:
    """Ask the group's coordinator; Forbidden without Describe on the group.

    A group that does not exist is Dead. The function waits while the coordinator moves.
    """
    until = time.monotonic() + COORDINATOR_S
    while not (found := _described(protocol, [group_id])):
        if time.monotonic() > until:
            raise ServerError(f"Kafka: no coordinator of group {group_id} answers")
        time.sleep(COORDINATOR_PAUSE_S)
    return found[0]


def connect_groups(protocol: KafkaProtocol) -> list[WorkerGroup]:
    """Return the groups of Connect clusters that this user may describe."""
    from kafka.protocol.admin import ListGroupsRequest

    requests = [(ListGroupsRequest(), node) for node in protocol.brokers()]
    answers = protocol.send_all("list groups", requests)
    groups = [group for answer in answers for group in answer.groups]
    names = sorted({group.group_id for group in groups if group.protocol_type == CONNECT})
    return _described(protocol, names) if names else []


def group_of_workers(protocol: KafkaProtocol, urls: Sequence[str]) -> str:
    """Return the group that one of these workers is a member of; NotFound otherwise.

    A worker that was just restarted becomes a member again, and a rebalance hides the members'
    URLs; the function waits for both.
    """
    wanted = {url.rstrip("/") for url in urls}
    until = time.monotonic() + MEMBER_S
    while True:
        groups = connect_groups(protocol)
        for group in groups:
            if wanted & {member.url for member in group.members}:
                return group.id
        if time.monotonic() > until:
            break
        time.sleep(MEMBER_PAUSE_S)
    names = ", ".join(group.id for group in groups) or "none"
    raise NotFound(
        f"no Connect group has {' or '.join(sorted(wanted))} as a member (groups: {names})",
        hint="name the group: --group NAME",
    )


def leader_claimed(protocol: KafkaProtocol, leader: str) -> bool | None:
    """Return whether the brokers know the leader's transactional id; None if undetermined.

    A leader at `preparing` or `enabled` initialises it before any other work (KIP-618).
    """
    if protocol.broker_version < _WITH_INTROSPECTION:
        return None
    from kafka.errors import KafkaError, TransactionalIdNotFoundError

    try:
        protocol.admin.describe_transactions([leader])
    except TransactionalIdNotFoundError:
        return False
    except KafkaError:
        return None
    return True


def open_transactions(
    protocol: KafkaProtocol, group_id: str, leader: str
) -> frozenset[OpenTransaction]:
    """Return the open transactions of the group's ids; none before Kafka 3.0."""
    if protocol.broker_version < _WITH_INTROSPECTION:
        return frozenset()
    ids = [
        name
        for name in list_transactional_ids(protocol, states=("Ongoing",))
        if name == leader or name.startswith(f"{group_id}-")
    ]
    return frozenset(
        OpenTransaction(
            transactional_id=found.transactional_id,
            started_ms=found.started_ms,
            timeout_ms=found.timeout_ms,
        )
        for found in describe_transactions(protocol, ids)
        if found.started_ms is not None
    )


def hanging(transactions: Iterable[OpenTransaction]) -> tuple[str, ...]:
    """Return the ids of transactions that are open beyond their timeout, sorted."""
    now_ms = time.time() * 1000
    return tuple(
        sorted(
            found.transactional_id
            for found in transactions
            if now_ms - found.started_ms > found.timeout_ms + _MARGIN_MS
        )
    )


def cluster_id(protocol: KafkaProtocol) -> str:
    """Return the id of the Kafka cluster, as its brokers report it."""
    return str(protocol.admin.describe_cluster()["cluster_id"])


def _described(protocol: KafkaProtocol, names: list[str]) -> list[WorkerGroup]:
    """Ask every broker: only the coordinators know the groups."""
    from kafka.protocol.admin import DescribeGroupsRequest

    requests = [(DescribeGroupsRequest(groups=names), node) for node in protocol.brokers()]
    if not requests:
        raise Unreachable("Kafka: no broker is known", hint="is --kafka-bootstrap right?")
    found = []
    for answer in protocol.send_all("describe groups", requests):
        for group in answer.groups:
            if group.error_code == _NOT_AUTHORIZED:
                raise Forbidden(
                    str(refused(group.error_code, f"describe {group.group_id}")),
                    hint="this command needs Describe on the workers' group",
                )
            if group.error_code == _NO_SUCH_GROUP:
                found.append(WorkerGroup(id=group.group_id))
            elif group.error_code == _NONE:
                found.append(_group(group))
    return found


# The library's answers have no types.
def _group(found: Any) -> WorkerGroup:
    of_connect = found.protocol_type == CONNECT
    members = []
    leader_url = None
    for member in found.members:
        url = _url_after(bytes(member.member_metadata or b""), 2) if of_connect else ""
        members.append(Member(id=member.member_id, url=url))
        assignment = bytes(member.member_assignment or b"")
        if of_connect and assignment:
            leader_url = _url_after(assignment, 4, skip=1) or leader_url
    return WorkerGroup(
        id=found.group_id,
        state=found.group_state,
        type=found.protocol_type,
        protocol=found.protocol_data,
        members=tuple(sorted(members, key=lambda member: member.url)),
        leader_url=leader_url,
    )


def _url_after(data: bytes, at: int, *, skip: int = 0) -> str:
    """Return the URL at `at`, or the text `skip` texts later; empty if there is none."""
    try:
        for _ in range(skip):
            at += 2 + int(struct.unpack_from(">h", data, at)[0])
        (length,) = struct.unpack_from(">h", data, at)
    except struct.error:
        return ""
    return data[at + 2 : at + 2 + length].decode("utf-8", errors="replace").rstrip("/")
