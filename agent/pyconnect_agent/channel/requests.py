"""Messages of the worker process to a running child.

Layer: shared by children and tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyconnect_agent.channel.jobs import StringMap
from pyconnect_agent.core.ids import TargetState


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTargetStateRequest:
    target_state: TargetState


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateTaskConfigsRequest:
    """Answered by `TaskConfigs` or `RequestFailed`. `applied_config`: see `children.ports`.

    `digest_key`: of the answer's `values_digest`.
    """

    request_id: int
    digest_key: bytes
    config: StringMap
    applied_config: StringMap | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End in order: final commits, the plugin's `stop`, a last status, exit.

    `graceful_ms`: the time limit; SIGTERM before its end is not from the worker process.
    """

    graceful_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """`valid_until_s` on the host's monotonic clock, which all its processes share.

    A term after the group has last confirmed the worker's membership. A lease counts only if that
    was before the end of the previous one: after a gap another worker may run the task.
    """

    valid_until_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsRead:
    """Answer to `ReadOffsets`; keys without an offset are left out."""

    request_id: int
    entries: Mapping[bytes, bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsWritten:
    request_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetKeysFound:
    """By requested key: the raw keys of equal content in use, newest first."""

    request_id: int
    keys: Mapping[bytes, tuple[bytes, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorOffsetsFound:
    """Raw entries of a connector in the worker's store."""

    request_id: int
    entries: Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetChangeConfirmed:
    """Answer to `ConfirmOffsetChange`: write it."""

    request_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConfirmed:
    """Answer to `ConfirmStart`."""

    request_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportStats:
    """Answered by `StatsReported`, also while the plugin hangs in Python code.

    `mbeans`: also those of a Java task's plugins.
    """

    request_id: int
    mbeans: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLoggerLevel:
    """The Log4j level of all loggers that start with `namespace`, as for the worker itself."""

    namespace: str
    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpStacks:
    """Answered by `StacksDumped`, also while the plugin hangs in Python code."""

    request_id: int


ChildRequest = (
    SetTargetStateRequest
    | GenerateTaskConfigsRequest
    | Stop
    | Lease
    | OffsetsRead
    | OffsetsWritten
    | OffsetKeysFound
    | ConnectorOffsetsFound
    | OffsetChangeConfirmed
    | StartConfirmed
    | ReportStats
    | SetLoggerLevel
    | DumpStacks
)
