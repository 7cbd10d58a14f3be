"""The herder's events. Every event is a value; the shell posts them in order."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyconnect_agent.core.assign import Owners
from pyconnect_agent.core.group_protocol import Assignment
from pyconnect_agent.core.herder.steps import Request, Timer
from pyconnect_agent.core.ids import ConnectorTaskId, Instance
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot
from pyconnect_agent.core.internal_topics.configlog import ConfigChange
from pyconnect_agent.core.reporting import Reported


@dataclass(frozen=True, slots=True, kw_only=True)
class Initializing:
    """The shell begins to start the stores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The stores are read to their ends; `snapshot` is the config topic's state at that time."""

    snapshot: ConfigSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """The worker shuts down: nothing new begins, and every request is answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A rebalance has completed. `member_id`: this worker's; the assignment names the leader's."""

    member_id: str
    generation: int
    assignment: Assignment
    owners: Owners | None = None
    """Only for the leader: the owner of each instance; None for followers and in a group of one."""
    ahead: tuple[str, ...] = ()
    """Only for the leader: URLs of workers that have read further in the config topic."""
    other_leader_ids: Mapping[str, str] = field(default_factory=dict)
    """Only for the leader: by worker URL, other members' leader ids that differ from its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentUnreadable:
    """A rebalance has completed, but this worker cannot decode its assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RejoinNeeded:
    """The group coordinator announces a rebalance; the worker joins when the herder asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipLost:
    """The coordinator cannot be reached: no work may run outside the group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """An operator asks this worker to release all work and leave its group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undrain:
    """An operator ends the drain: the worker may join its group again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFailed:
    """Membership has ended permanently (authorization, no protocol in common)."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigAdvanced:
    """The config topic was read further. `snapshot` is its state right after `changes`."""

    snapshot: ConfigSnapshot
    changes: tuple[ConfigChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestArrived:
    """A request of a client. `deadline_ms`: when the client gives up, on the clock of `decide`."""

    request_id: int
    request: Request
    deadline_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectDone:
    """An effect was performed. The docstring of the effect describes `result`."""

    effect_id: int
    result: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectFailed:
    effect_id: int
    error: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceReported:
    """A connector's or task's process reports its state, or has ended."""

    item: Instance
    report: Reported


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStartAsked:
    """An exactly-once source task has initialised its producer and asks to begin."""

    task_id: ConnectorTaskId
    request_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconfigurationRequested:
    """The connector has asked for new task configs."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigExpired:
    """A config provider's TTL is over: the connector restarts with newly resolved values."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerDue:
    """The time of a `WakeAt` has come. Its timer may be stale; the state shows it."""

    timer: Timer


WorkerEvent = (
    Initializing
    | Started
    | Stopping
    | Joined
    | AssignmentUnreadable
    | RejoinNeeded
    | MembershipLost
    | GroupFailed
    | Drain
    | Undrain
)

Event = (
    WorkerEvent
    | ConfigAdvanced
    | RequestArrived
    | EffectDone
    | EffectFailed
    | InstanceReported
    | TaskStartAsked
    | ReconfigurationRequested
    | ConfigExpired
    | TimerDue
)
