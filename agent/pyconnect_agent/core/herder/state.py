"""The state of the herder. All of it is immutable; `turn.Turn` makes the next state.

Work is kept per connector, so that a change to one connector does not touch the others' tasks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from pyconnect_agent.core.assign import LEADER_ID_KEY, Owners
from pyconnect_agent.core.config.agent_keys import NO_AGENT_KEYS, AgentKeys
from pyconnect_agent.core.errors import ServiceUnavailableError
from pyconnect_agent.core.group_protocol import Assignment, Work
from pyconnect_agent.core.herder.steps import Request, Waiter
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot, ConnectorConfig
from pyconnect_agent.core.internal_topics.configlog import RestartRequested
from pyconnect_agent.core.reporting import ConnectorStateInfo, Stage
from pyconnect_agent.core.restart_policy import Restarts


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKeySettings:
    """`inter.worker.key.*`: how the leader makes session keys (KIP-507)."""

    algorithm: str
    size_bits: int | None
    ttl_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HerderSettings:
    """The worker's settings for decisions. Durations in ms.

    `connector_type`: returns `source`, `sink` or `unknown` for a connector's raw config (None: it
    is removed), from this worker's list of plugins. `session_key`: None in a group of one, which
    signs nothing. `exactly_once_source`: `exactly.once.source.support` is enabled. `agent_keys`:
    the worker's, which a connector's config overrides.
    """

    worker_id: str
    connector_type: Callable[[ConnectorConfig | None], str]
    worker_sync_timeout_ms: int = 3_000
    worker_unsync_backoff_ms: int = 300_000
    scheduled_rebalance_max_delay_ms: int = 300_000
    validation_timeout_ms: int = 90_000
    standalone: bool = False
    session_key: SessionKeySettings | None = None
    config_topic: str = ""
    group_id: str = ""
    leader_transactional_id: str = ""
    exactly_once_source: bool = False
    agent_keys: AgentKeys = NO_AGENT_KEYS

    def needs_start_permission(self, config: ConnectorConfig | None) -> bool:
        """Return whether the connector's tasks start only after older ones are fenced.

        A connector of unknown type may be a source, as its class is not in the list of plugins.
        """
        return self.exactly_once_source and self.connector_type(config) != "sink"


class MembershipPhase(Enum):
    """The worker's step between two rebalances.

    STARTING → JOINING → REVOKING → FLUSHING → CATCHING_UP → RESOLVED → JOINING …; FLUSHING and
    CATCHING_UP are left out when there is nothing to do. BACKING_OFF is the pause between two
    attempts to catch up. UNRESOLVED: the assignment cannot be used. STOPPED is the end. Work starts
    in RESOLVED only. A drain goes DRAINING → LEAVING → DRAINED; it ends with UNRESOLVED.
    """

    STARTING = auto()
    JOINING = auto()
    REVOKING = auto()
    FLUSHING = auto()
    CATCHING_UP = auto()
    BACKING_OFF = auto()
    RESOLVED = auto()
    UNRESOLVED = auto()
    DRAINING = auto()
    LEAVING = auto()
    DRAINED = auto()
    STOPPED = auto()


class WritePrivilege(Enum):
    """The leader's right to write to the config topic (KIP-618)."""

    NONE = auto()
    CLAIMING = auto()
    HELD = auto()


class Life(Enum):
    """The life of an instance: one that failed stays STARTED until it is stopped.

    PAUSED, AWAITING and REFUSED are states of exactly-once source tasks without a process. PAUSED:
    nothing is fenced before the connector is resumed. AWAITING: older producers are being fenced.
    REFUSED: they could not be fenced.
    """

    PAUSED = auto()
    AWAITING = auto()
    REFUSED = auto()
    STARTED = auto()
    STOPPING = auto()

    @property
    def has_process(self) -> bool:
        return self in (Life.STARTED, Life.STOPPING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """The last completed join. `assignment` is as received; the herder's `work` has the owned work.

    `owners`, `ahead` and `other_leader_ids`: see `events.Joined`.
    """

    member_id: str
    generation: int
    assignment: Assignment
    owners: Owners | None = None
    ahead: tuple[str, ...] = ()
    other_leader_ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_leader(self) -> bool:
        return self.member_id == self.assignment.leader

    @property
    def may_write(self) -> bool:
        """Whether this worker may claim the write privilege: it is the leader, and undisputed."""
        return self.is_leader and not self.other_leader_ids

    @property
    def incremental(self) -> bool:
        return self.assignment.version > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningConnector:
    """`config`: the one it was started with; `reported`: the last state by its process."""

    config: ConnectorConfig
    target_state: TargetState
    reported: State | None = None
    life: Life = Life.STARTED


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTask:
    """`generation`: of the task set that the task was started from."""

    generation: int
    target_state: TargetState
    life: Life = Life.STARTED


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorWork:
    """One connector's share of this worker: its assigned and its running work.

    `restarting_*`: shown as RESTARTING once they have stopped. `restarts`: the history of failures
    here, by task number; None is the connector.
    """

    connector_assigned: bool = False
    tasks_assigned: frozenset[int] = frozenset()
    connector: RunningConnector | None = None
    tasks: Mapping[int, RunningTask] = field(default_factory=dict)
    restarting_connector: bool = False
    restarting_tasks: frozenset[int] = frozenset()
    restarts: Mapping[int | None, Restarts] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        return not (self.connector_assigned or self.tasks_assigned or self.connector or self.tasks)


NO_CONNECTOR_WORK = ConnectorWork()


class Step(Enum):
    """The step of a request's operation; QUEUED has not begun.

    SETTLING, in standalone mode: the change is written, the reply waits for the connector and its
    task configs. PREPARING, CONFIRMING, CHANGING: the connector is asked about a change of its
    offsets, the configs are checked once more, the change is written.
    """

    QUEUED = auto()
    VALIDATING = auto()
    WRITING = auto()
    SENDING = auto()
    WRITING_TARGET_STATE = auto()
    READING_CONFIG = auto()
    FENCING = auto()
    READING_AGAIN = auto()
    READING_BACK = auto()
    READING_STATUS = auto()
    STOPPING = auto()
    STARTING = auto()
    SETTLING = auto()
    PREPARING = auto()
    CONFIRMING = auto()
    CHANGING = auto()


WRITING = frozenset({Step.WRITING, Step.WRITING_TARGET_STATE, Step.READING_BACK})
"""Steps that must be complete before a rebalance."""
# Offsets are not in the config topic: a rebalance does not wait for their change.
FINISHED_ONCE_BEGUN = WRITING | {Step.CHANGING}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A request that is being served. `deadline_ms` None: the herder's own.

    `lane` is the connector whose operations run one after another; None does not queue.
    `answered`: the client's time was over; a write that has begun is still completed.
    `complete`: the connector's answer about a change of its offsets. This, `config`, `created` and
    `status` are kept for the reply. `generation`: of the task set before which a fencing round
    fences.
    """

    request_id: int
    request: Request
    deadline_ms: int | None
    lane: str | None
    step: Step = Step.QUEUED
    stage: Stage | None = None
    answered: bool = False
    config: ConnectorConfig | None = None
    created: bool = False
    status: ConnectorStateInfo | None = None
    generation: int = 0
    complete: bool = False

    @property
    def wants_answer(self) -> bool:
        return self.deadline_ms is not None and not self.answered


class ReconfigurationStep(Enum):
    GENERATING = auto()
    APPLYING = auto()
    BACKING_OFF = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconfiguration:
    """A running connector's task configs are being generated. `again`: requested again meanwhile.

    `values_changed` as in `ApplyTaskConfigs`: reported once, kept until it was applied.
    """

    step: ReconfigurationStep
    attempt: int = 0
    again: bool = False
    values_changed: bool = False


class PermissionStep(Enum):
    """FENCING: older producers are being fenced; READING: the configs are read once more.

    READING includes the pauses between two attempts. BACKING_OFF: the leader could not be reached,
    or temporarily could not fence.
    """

    FENCING = auto()
    BACKING_OFF = auto()
    READING = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPermission:
    """The start of exactly-once source tasks of `generation`, until it is allowed.

    `number` distinguishes this step's effect or timer from those of earlier ones. `attempt` counts
    the failures of the step: requests for fencing since `since_ms`, or reads.
    """

    step: PermissionStep
    generation: int
    number: int
    since_ms: int
    attempt: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HerderState:
    """The herder's state. `status_generation` is written into statuses.

    `status_generation` follows the group's generation after revocations. `operations` are in order
    of arrival; `lanes`: connector -> request ids, the first one is active. `stops_in_flight` counts
    unanswered `StopWork` effects. `claims_outdated`: work was given up while a join that claims it
    is under way. `rebalance_expected`: the config topic asks for a join whose assignment has not
    come yet.
    """

    settings: HerderSettings
    phase: MembershipPhase = MembershipPhase.STARTING
    membership: Membership | None = None
    status_generation: int = 0
    snapshot: ConfigSnapshot = field(default_factory=ConfigSnapshot)
    work: Mapping[str, ConnectorWork] = field(default_factory=dict)
    operations: Mapping[int, Operation] = field(default_factory=dict)
    lanes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    restarts: Mapping[str, RestartRequested] = field(default_factory=dict)
    reconfigurations: Mapping[str, Reconfiguration] = field(default_factory=dict)
    start_permissions: Mapping[str, StartPermission] = field(default_factory=dict)
    waiters: Mapping[int, Waiter] = field(default_factory=dict)
    stops_in_flight: int = 0
    rejoin_wanted: bool = False
    rebalance_expected: bool = False
    drain_wanted: bool = False
    claims_outdated: bool = False
    revoked: Work = field(default_factory=Work)
    scheduled_rebalance: bool = False
    backoff_retries: int = 5
    privilege: WritePrivilege = WritePrivilege.NONE
    writing_session_key: bool = False
    stage: Stage | None = None
    next_id: int = 1
    ready: bool = False

    @property
    def is_leader(self) -> bool:
        """Whether this worker leads. False during a rebalance: the leader may have changed."""
        return (
            self.phase not in (MembershipPhase.JOINING, MembershipPhase.BACKING_OFF)
            and self.membership is not None
            and self.membership.is_leader
        )

    @property
    def agents_only(self) -> bool:
        """Whether the leader says that the group has no Java worker.

        True without a membership, when this is unknown: no work starts then, and a restart that is
        planned then is checked again when it is due.
        """
        membership = self.membership
        return self.settings.standalone or membership is None or membership.assignment.agents_only

    @property
    def leader_url(self) -> str | None:
        if self.membership is None:
            return None
        return self.membership.assignment.leader_url or None

    def owner_url(self, item: str | ConnectorTaskId) -> str | None:
        """Return the URL of the worker that the leader assigned an item to; None if unknown."""
        if self.membership is None or self.membership.owners is None or self.rejoin_wanted:
            return None
        owners = self.membership.owners
        if isinstance(item, ConnectorTaskId):
            return owners.tasks.get(item)
        return owners.connectors.get(item)

    @property
    def may_start_work(self) -> bool:
        return self.phase is MembershipPhase.RESOLVED and not self.rejoin_wanted

    @property
    def serving(self) -> bool:
        """Whether queued requests may begin; most of them are refused in a drain or dispute."""
        if self.phase is MembershipPhase.DRAINED:
            return True
        writes = self.privilege is WritePrivilege.HELD
        return self.may_start_work and (not self.is_leader or writes or self.disputed)

    @property
    def disputed(self) -> bool:
        """Whether this leader must not claim or write, as a member would lead under another id."""
        membership = self.membership
        return self.is_leader and membership is not None and not membership.may_write

    def dispute(self) -> ServiceUnavailableError | None:
        """Return why this worker, leader of its group, does not write; None when it may."""
        if self.membership is None or not self.disputed:
            return None
        others = ", ".join(
            f"{url} ({told})" for url, told in self.membership.other_leader_ids.items()
        )
        return ServiceUnavailableError(
            "The leader writes nothing to the config topic, because members of its group would lead"
            " under another transactional id than its own"
            f" ({self.settings.leader_transactional_id}): {others}. Two ids do not fence each"
            f" other. Stop all workers, give {LEADER_ID_KEY} the same value on each or remove it"
            " from each, and start them again."
        )


def owned_work(work: Mapping[str, ConnectorWork]) -> Work:
    """Return everything assigned to this worker, running or not."""
    # Tasks are in order already: sorting those of a large cluster would take most of a decision.
    names = sorted(work)
    return Work(
        tuple(name for name in names if work[name].connector_assigned),
        tuple(
            ConnectorTaskId(name, number)
            for name in names
            for number in sorted(work[name].tasks_assigned)
        ),
    )
