"""The herder's effects. The shell performs them in order and never decides anything.

An `Awaited` effect is answered by `EffectDone` or `EffectFailed`, once. `->` precedes its result.
The result of a read or write of the config topic is the `ConfigSnapshot` after it.
"""

from dataclasses import dataclass
from typing import Any

from pyconnect_agent.core.group_protocol import Work
from pyconnect_agent.core.herder.steps import Timer
from pyconnect_agent.core.ids import ConnectorTaskId, Instance, TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot, ConnectorConfig
from pyconnect_agent.core.reporting import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The base of all effects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited(Effect):
    """An effect that is answered; `Turn.ask` sets its id."""

    effect_id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRejoin(Effect):
    """Join the group; answered by `Joined`. `owned` is the work that this worker claims."""

    snapshot: ConfigSnapshot
    owned: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroup(Effect):
    """Leave the group, for a drain or because catching up with the config topic takes too long."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WarnOfOtherConfigTopic(Effect):
    """Warn the operator that `others` (URLs) seem to have another config topic in this group."""

    own_topic: str
    own_offset: int
    others: tuple[str, ...]
    their_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadConfigToEnd(Awaited):
    """-> ConfigSnapshot."""

    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimWrites(Awaited):
    """Fence earlier leaders from the config topic (KIP-618). -> None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteConnectorConfig(Awaited):
    """-> ConfigSnapshot."""

    connector: str
    config: ConnectorConfig
    target_state: TargetState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveConnectorConfig(Awaited):
    """-> ConfigSnapshot."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTaskConfigs(Awaited):
    """Write the complete task set and its commit record. -> ConfigSnapshot."""

    connector: str
    configs: tuple[ConnectorConfig, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTargetState(Awaited):
    """Write a target state, without reading it back. -> the last known ConfigSnapshot."""

    connector: str
    target_state: TargetState


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRestartRequest(Awaited):
    """-> ConfigSnapshot."""

    connector: str
    only_failed: bool
    include_tasks: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTaskCountRecord(Awaited):
    """Record that every producer of older task sets is fenced (KIP-618). -> ConfigSnapshot."""

    connector: str
    task_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceProducers(Awaited):
    """As leader, initialise these ids, connected as the connector's admin client would be. -> None.

    `ids_if_permitted`: a denial is not a failure, because no earlier producer can have used the id.
    """

    connector: str
    config: ConnectorConfig
    transactional_ids: tuple[str, ...]
    ids_if_permitted: tuple[str, ...]
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareOffsetChange(Awaited):
    """Ask the connector about a change of its offsets (KIP-875), write nothing yet. -> bool.

    `offsets`: see `requests.ChangeOffsets`; None: reset all. True: nothing is left to
    do outside of Kafka Connect. `timeout_ms` limits the whole change, which ends with
    `CommitOffsetChange`, with `AbandonOffsetChange` or at its timeout.
    """

    connector: str
    config: ConnectorConfig
    offsets: bytes | None
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOffsetChange(Awaited):
    """Write the prepared change, and read it back. -> None."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AbandonOffsetChange(Effect):
    """Drop the prepared change, because its conditions no longer hold."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFencing(Awaited):
    """Ask the leader for a round of zombie fencing, signed if the protocol says so. -> None.

    `leader_url` None: this worker leads, and submits the request to itself.
    """

    leader_url: str | None
    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTaskStart(Effect):
    """Allow a task whose producer is initialised to begin, or refuse it with the text `refusal`."""

    task_id: ConnectorTaskId
    request_id: int
    refusal: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSessionKey(Awaited):
    """Make a new key of `length_bytes` and write it. -> ConfigSnapshot."""

    algorithm: str
    length_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SendTaskConfigs(Awaited):
    """Send new task configs to the leader, signed if the group's protocol says so. -> None."""

    leader_url: str
    connector: str
    configs: tuple[ConnectorConfig, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConnector(Effect):
    connector: str
    config: ConnectorConfig
    target_state: TargetState


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTask(Effect):
    """Start a task. `generation` and `task_count` are those of the task set of `task_config`."""

    task_id: ConnectorTaskId
    connector_config: ConnectorConfig
    task_config: ConnectorConfig
    target_state: TargetState
    generation: int
    task_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopWork(Awaited):
    """Stop work. Answered with None when all of it has ended."""

    connectors: tuple[str, ...]
    tasks: tuple[ConnectorTaskId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionConnector(Effect):
    connector: str
    target_state: TargetState


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionTask(Effect):
    task_id: ConnectorTaskId
    target_state: TargetState


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateTaskConfigs(Awaited):
    """-> children.ports.TaskConfigsGenerated."""

    connector: str
    config: ConnectorConfig
    applied_config: ConnectorConfig | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateConfig(Awaited):
    """-> None when valid; a BadRequestError with the texts of all field errors otherwise."""

    connector: str
    config: ConnectorConfig
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStatus(Awaited):
    """-> ConnectorStateInfo from the status store, None when the connector has no status."""

    connector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PutStatus(Effect):
    """Write a status. `safe`: do not overwrite another worker's status of a later generation.

    `late`: this worker is not a member, so the topic has to be read before that is known.
    """

    item: Instance
    status: Status
    safe: bool
    late: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushStatuses(Awaited):
    """Wait until all status writes are acknowledged. -> None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanStatuses(Effect):
    """As leader, write tombstones for the statuses of work that `snapshot` does not have.

    `revoked` has just been stopped here: its last statuses may not have been read back yet.
    """

    snapshot: ConfigSnapshot
    revoked: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetTopics(Effect):
    """Write tombstones for the active topics of removed connectors."""

    connectors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyLoggerLevel(Effect):
    namespace: str
    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Effect):
    """Answer a request; exactly one per `RequestArrived`. `error` None means success."""

    request_id: int
    result: Any = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeAt(Effect):
    """Post `TimerDue(timer)` at `at_ms`. Timers are never cancelled; stale ones are ignored."""

    at_ms: int
    timer: Timer


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort(Effect):
    """Stop the worker in order with an exit code other than 0, because it cannot go on."""

    reason: str
