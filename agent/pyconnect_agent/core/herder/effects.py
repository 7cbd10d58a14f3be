"""The herder's effects. The shell performs them in order and never decides anything.

Effects with an `effect_id` are answered by `EffectDone` or `EffectFailed`, once. The result of a
read or write of the config topic is the `ConfigSnapshot` after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyconnect_agent.core.herder.events import Timer
from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot, ConnectorConfig
from pyconnect_agent.core.protocol.messages import Work
from pyconnect_agent.core.reporting import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRejoin:
    """Join the group; answered by `Joined`. `owned` is the work that this worker claims."""

    snapshot: ConfigSnapshot
    owned: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroup:
    """Leave, because catching up with the config topic takes too long; work goes on."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WarnOfOtherConfigTopic:
    """Warn the operator that `others` (URLs) seem to have another config topic in this group."""

    own_topic: str
    own_offset: int
    others: tuple[str, ...]
    their_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadConfigToEnd:
    """-> ConfigSnapshot."""

    effect_id: int
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimWrites:
    """Fence earlier leaders from the config topic (KIP-618). -> None."""

    effect_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteConnectorConfig:
    """-> ConfigSnapshot."""

    effect_id: int
    connector: str
    config: ConnectorConfig
    target_state: TargetState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveConnectorConfig:
    """-> ConfigSnapshot."""

    effect_id: int
    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTaskConfigs:
    """The complete task set and its commit record. -> ConfigSnapshot."""

    effect_id: int
    connector: str
    configs: tuple[ConnectorConfig, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTargetState:
    """Acknowledged, not read back. -> ConfigSnapshot as known then."""

    effect_id: int
    connector: str
    target_state: TargetState


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRestartRequest:
    """-> ConfigSnapshot."""

    effect_id: int
    connector: str
    only_failed: bool
    include_tasks: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTaskCountRecord:
    """Every producer of older task sets is fenced (KIP-618). -> ConfigSnapshot."""

    effect_id: int
    connector: str
    task_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceProducers:
    """As leader: initialise these ids as the connector's admin client would connect. -> None.

    `ids_if_permitted`: a denial is not a failure, because no earlier producer can have used the id.
    """

    effect_id: int
    connector: str
    config: ConnectorConfig
    transactional_ids: tuple[str, ...]
    ids_if_permitted: tuple[str, ...]
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareOffsetChange:
    """Ask the connector about a change of its offsets (KIP-875), write nothing yet. -> bool.

    `offsets`: see `requests.ChangeOffsets`; None: reset all. True: the connector did all that is
    to be done outside of Kafka Connect. All of the change has `timeout_ms`; it ends by
    `CommitOffsetChange` or `AbandonOffsetChange`, or when its time is over.
    """

    effect_id: int
    connector: str
    config: ConnectorConfig
    offsets: bytes | None
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOffsetChange:
    """Write the prepared change, and read it back. -> None."""

    effect_id: int
    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AbandonOffsetChange:
    """Drop the prepared change: its conditions do not hold any more."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFencing:
    """Ask the leader for a round of zombie fencing, signed when it asks for it. -> None.

    `leader_url` None: this worker leads, and submits the request to itself.
    """

    effect_id: int
    leader_url: str | None
    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTaskStart:
    """Permit a task whose producer is initialised to begin, or refuse it (`refusal`)."""

    task_id: ConnectorTaskId
    request_id: int
    refusal: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSessionKey:
    """Make a new key of `length_bytes` and write it. -> ConfigSnapshot."""

    effect_id: int
    algorithm: str
    length_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SendTaskConfigs:
    """Give newly generated task configs to the leader, signed when it asks for it. -> None."""

    effect_id: int
    leader_url: str
    connector: str
    configs: tuple[ConnectorConfig, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConnector:
    connector: str
    config: ConnectorConfig
    target_state: TargetState


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTask:
    """`generation` and `task_count` are those of the task set which `task_config` belongs to."""

    task_id: ConnectorTaskId
    connector_config: ConnectorConfig
    task_config: ConnectorConfig
    target_state: TargetState
    generation: int
    task_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopWork:
    """Answered with None when all of it is gone."""

    effect_id: int
    connectors: tuple[str, ...]
    tasks: tuple[ConnectorTaskId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionConnector:
    connector: str
    target_state: TargetState


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionTask:
    task_id: ConnectorTaskId
    target_state: TargetState


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateTaskConfigs:
    """-> children.ports.TaskConfigsGenerated."""

    effect_id: int
    connector: str
    config: ConnectorConfig
    applied_config: ConnectorConfig | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateConfig:
    """-> None when valid; a BadRequestError with the texts of all field errors otherwise."""

    effect_id: int
    connector: str
    config: ConnectorConfig
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStatus:
    """-> ConnectorStateInfo from the status store, None when the connector has no status."""

    effect_id: int
    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PutConnectorStatus:
    """`safe`: not over a status that another worker wrote in a later generation.

    `late`: this worker is not a member, so the topic has to be read before that is known.
    """

    connector: str
    status: Status
    safe: bool
    late: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PutTaskStatus:
    """`safe` and `late` as of a connector's."""

    task_id: ConnectorTaskId
    status: Status
    safe: bool
    late: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushStatuses:
    """Answered with None when all status writes are acknowledged."""

    effect_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanStatuses:
    """Leader: tombstone statuses of work that `snapshot` does not have.

    `revoked` has just been stopped here: its last statuses may not have been read back yet.
    """

    snapshot: ConfigSnapshot
    revoked: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetTopics:
    """Tombstone the active topics of connectors that are gone."""

    connectors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyLoggerLevel:
    namespace: str
    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Answer a request; exactly one per `RequestArrived`. `error` None means success."""

    request_id: int
    result: Any = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeAt:
    """Post `TimerDue(timer)` at `at_ms`. Timers are never cancelled; stale ones are ignored."""

    at_ms: int
    timer: Timer


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort:
    """The worker cannot go on; it must stop in order with an exit code other than 0."""

    reason: str


ConfigWrite = (
    WriteConnectorConfig
    | RemoveConnectorConfig
    | WriteTaskConfigs
    | WriteTargetState
    | WriteRestartRequest
    | WriteSessionKey
    | WriteTaskCountRecord
)

GroupEffect = RequestRejoin | LeaveGroup | WarnOfOtherConfigTopic

ChildEffect = (
    StartConnector
    | StartTask
    | StopWork
    | TransitionConnector
    | TransitionTask
    | GenerateTaskConfigs
    | ValidateConfig
    | FenceProducers
    | AnswerTaskStart
    | PrepareOffsetChange
    | CommitOffsetChange
    | AbandonOffsetChange
)

StatusEffect = (
    ReadStatus | PutConnectorStatus | PutTaskStatus | FlushStatuses | CleanStatuses | ForgetTopics
)

PerformedEffect = (
    GroupEffect
    | ChildEffect
    | StatusEffect
    | ConfigWrite
    | ReadConfigToEnd
    | ClaimWrites
    | SendTaskConfigs
    | RequestFencing
    | ApplyLoggerLevel
    | Reply
    | WakeAt
)

Effect = PerformedEffect | Abort
