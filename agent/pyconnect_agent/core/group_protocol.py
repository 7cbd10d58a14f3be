"""Subscription and assignment messages of the `connect` group, protocol versions 0, 1 and 2.

Kafka: ProtocolVersion and IncrementalCooperativeConnectProtocol (KIP-415, KIP-507). Big-endian;
`str` = int16 byte length + UTF-8, `nbytes` = int32 length (-1 = null) + bytes, arrays = int32 count
(-1 = null) + elements; no tagged fields.

    Subscription v0     int16 version, str url, int64 config offset
    Subscription v1/v2  the same, then nbytes allocation: an Assignment of the same version, or null
    Assignment v0       int16 version, int16 error, str leader, str leader url, int64 config offset,
                        array assigned
    Assignment v1/v2    the same, then array revoked, int32 delay (ms)
    array element       str connector, array of int32 task numbers (-1 = the connector instance)
    agent's suffix      4 bytes `pycn`, then fields of int16 tag, nbytes value. Of a subscription,
                        after a v0 allocation (null): a leader's id of its own (tag 1, UTF-8), and
                        that the member is an agent (tag 2, empty). Of a v1/v2 assignment: that
                        all members are agents (tag 2, empty)

The suffix is a project decision: Java's readers ignore bytes after the
fields they know. They read version 0 with version 1's layout, hence the null before it.

Version 2 has version 1's layout and says that internal requests are signed. A reader takes any
version >= 0, lets missing trailing fields default and ignores extra bytes, as Java's does. Encoding
is deterministic, because the broker compares metadata byte by byte.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from pyconnect_agent.core.ids import ConnectorTaskId

CONNECTOR_INSTANCE = -1

_SUFFIX = b"pycn"
_LEADER_ID_TAG = 1
_AGENT_TAG = 2


class ProtocolDecodeError(ValueError):
    """Bytes of another group member that are not a message of this protocol."""


class AssignmentError(IntEnum):
    """The error of an assignment.

    CONFIG_MISMATCH: a member has read further than the leader; all members join again.
    """

    NONE = 0
    CONFIG_MISMATCH = 1


class ProtocolVersion(IntEnum):
    """Versions of the group's protocol; the member's name is that in `connect.protocol`."""

    EAGER = 0
    COMPATIBLE = 1
    SESSIONED = 2

    @property
    def group_name(self) -> str:
        """The protocol's name for the group coordinator."""
        return {0: "default", 1: "compatible", 2: "sessioned"}[self.value]

    @classmethod
    def of_group_name(cls, name: str) -> ProtocolVersion:
        """Return the version of a protocol name. Raises ValueError for an unknown name."""
        for protocol in cls:
            if protocol.group_name == name:
                return protocol
        raise ValueError(f"unknown group protocol: {name}")

    def offered(self) -> tuple[ProtocolVersion, ...]:
        """Return the protocols that a worker configured for this one offers, preferred first."""
        return tuple(protocol for protocol in reversed(ProtocolVersion) if protocol <= self)


@dataclass(frozen=True, slots=True)
class Work:
    """Connector instances and tasks, both sorted so that equal work has equal bytes."""

    connectors: tuple[str, ...] = ()
    tasks: tuple[ConnectorTaskId, ...] = ()

    @classmethod
    def of(cls, connectors: Iterable[str] = (), tasks: Iterable[ConnectorTaskId] = ()) -> Work:
        # The input is mostly in order: sorting is quick then, and a set would lose the order.
        return cls(tuple(sorted(dict.fromkeys(connectors))), tuple(sorted(dict.fromkeys(tasks))))

    @property
    def empty(self) -> bool:
        return not self.connectors and not self.tasks

    def __or__(self, other: Work) -> Work:
        return Work.of(self.connectors + other.connectors, self.tasks + other.tasks)

    def __sub__(self, other: Work) -> Work:
        if other.empty:
            return self
        connectors, tasks = set(other.connectors), set(other.tasks)
        return Work(
            tuple(c for c in self.connectors if c not in connectors),
            tuple(t for t in self.tasks if t not in tasks),
        )

    def __and__(self, other: Work) -> Work:
        connectors, tasks = set(other.connectors), set(other.tasks)
        return Work(
            tuple(c for c in self.connectors if c in connectors),
            tuple(t for t in self.tasks if t in tasks),
        )


NO_WORK = Work()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The leader's message to one member.

    Versions 1 and 2 have increments in `assigned` and `revoked`. Version 0 has the member's whole
    work, with `revoked` empty and `delay_ms` 0. `agents_only`: no member is a Java worker; False
    when the leader does not say so.
    """

    version: int
    error: int = AssignmentError.NONE
    leader: str
    leader_url: str
    config_offset: int
    assigned: Work = NO_WORK
    revoked: Work = NO_WORK
    delay_ms: int = 0
    agents_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A member's report to the group; `allocation` None when it holds no assignment.

    `leader_transactional_id`: the id with which the member would write as leader; None: Apache's.
    `agent`: the member is a worker of this project, not a Java worker.
    """

    version: int
    url: str
    config_offset: int
    allocation: Assignment | None = None
    leader_transactional_id: str | None = None
    agent: bool = False


def encode_subscription(subscription: Subscription) -> bytes:
    """Return a member's metadata; equal subscriptions have equal bytes."""
    parts = [
        struct.pack(">h", subscription.version),
        _string(subscription.url),
        struct.pack(">q", subscription.config_offset),
    ]
    leader_id = subscription.leader_transactional_id
    if subscription.version > 0 and subscription.allocation is not None:
        parts.append(_nbytes(encode_assignment(subscription.allocation)))
    elif subscription.version > 0 or leader_id is not None or subscription.agent:
        parts.append(struct.pack(">i", -1))
    fields = {} if leader_id is None else {_LEADER_ID_TAG: leader_id.encode()}
    if subscription.agent:
        fields[_AGENT_TAG] = b""
    parts.append(_suffix(fields))
    return b"".join(parts)


def encode_assignment(assignment: Assignment) -> bytes:
    """Return a member's assignment; equal assignments have equal bytes."""
    parts = [
        struct.pack(">hh", assignment.version, assignment.error),
        _string(assignment.leader),
        _string(assignment.leader_url),
        struct.pack(">q", assignment.config_offset),
        _work(assignment.assigned),
    ]
    if assignment.version > 0:
        parts += [_work(assignment.revoked), struct.pack(">i", assignment.delay_ms)]
        parts.append(_suffix({_AGENT_TAG: b""} if assignment.agents_only else {}))
    return b"".join(parts)


def decode_subscription(data: bytes) -> Subscription:
    """Decode a member's metadata. Raises ProtocolDecodeError."""
    reader = _Reader(data)
    version = reader.version()
    url, offset = reader.string(), reader.integer(">q", 8)
    allocation = None
    if not reader.at_end:
        length = reader.integer(">i", 4)
        if length >= 0:
            allocation = decode_assignment(reader.take(length))
    fields = _fields(reader)
    leader_id = fields.get(_LEADER_ID_TAG)
    return Subscription(
        version=version,
        url=url,
        config_offset=offset,
        allocation=allocation,
        leader_transactional_id=None if leader_id is None else _text(leader_id),
        agent=_AGENT_TAG in fields,
    )


def decode_assignment(data: bytes) -> Assignment:
    """Decode an assignment. Raises ProtocolDecodeError, also if the leader left the member out."""
    reader = _Reader(data)
    version = reader.version()
    error = reader.integer(">h", 2)
    leader, leader_url = reader.string(), reader.string()
    offset = reader.integer(">q", 8)
    return Assignment(
        version=version,
        error=error,
        leader=leader,
        leader_url=leader_url,
        config_offset=offset,
        assigned=Work() if reader.at_end else reader.work(),
        revoked=Work() if reader.at_end else reader.work(),
        delay_ms=0 if reader.at_end else reader.integer(">i", 4),
        agents_only=_AGENT_TAG in _fields(reader),
    )


def _suffix(fields: Mapping[int, bytes]) -> bytes:
    """Return an agent's suffix; empty without fields, as an Apache worker's message ends."""
    if not fields:
        return b""
    encoded = (struct.pack(">h", tag) + _nbytes(value) for tag, value in sorted(fields.items()))
    return _SUFFIX + b"".join(encoded)


def _fields(reader: _Reader) -> dict[int, bytes]:
    """Read an agent's suffix; other extra bytes are ignored."""
    fields: dict[int, bytes] = {}
    if reader.starts_with(_SUFFIX):
        reader.take(len(_SUFFIX))
        while not reader.at_end:
            tag = reader.integer(">h", 2)
            fields[tag] = reader.take(reader.integer(">i", 4))
    return fields


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        raise ProtocolDecodeError(f"text is not UTF-8: {exc}") from exc


def _nbytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def _work(work: Work) -> bytes:
    numbers: dict[str, list[int]] = {name: [CONNECTOR_INSTANCE] for name in work.connectors}
    for task in work.tasks:
        numbers.setdefault(task.connector, []).append(task.task)
    parts = [struct.pack(">i", len(numbers))]
    for connector in sorted(numbers):
        tasks = numbers[connector]
        parts.append(_string(connector))
        parts.append(struct.pack(f">i{len(tasks)}i", len(tasks), *tasks))
    return b"".join(parts)


class _Reader:
    """A reader of primitives from one message; every short read is a ProtocolDecodeError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def at_end(self) -> bool:
        return self._position >= len(self._data)

    def starts_with(self, expected: bytes) -> bool:
        return self._data.startswith(expected, self._position)

    def take(self, length: int) -> bytes:
        end = self._position + length
        if length < 0 or end > len(self._data):
            raise ProtocolDecodeError(
                f"message of {len(self._data)} bytes ends inside a field at byte {self._position}"
            )
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def integer(self, layout: str, size: int) -> int:
        (value,) = struct.unpack(layout, self.take(size))
        return int(value)

    def integers(self, count: int) -> tuple[int, ...]:
        """Read `count` int32 values."""
        numbers: tuple[int, ...] = struct.unpack(f">{count}i", self.take(4 * count))
        return numbers

    def version(self) -> int:
        version = self.integer(">h", 2)
        if version < 0:
            raise ProtocolDecodeError(f"negative protocol version {version}")
        return version

    def string(self) -> str:
        return _text(self.take(self.integer(">h", 2)))

    def work(self) -> Work:
        connectors: list[str] = []
        tasks: list[ConnectorTaskId] = []
        for _ in range(max(self.integer(">i", 4), 0)):
            connector = self.string()
            for number in self.integers(max(self.integer(">i", 4), 0)):
                if number == CONNECTOR_INSTANCE:
                    connectors.append(connector)
                else:
                    tasks.append(ConnectorTaskId(connector, number))
        return Work.of(connectors, tasks)
