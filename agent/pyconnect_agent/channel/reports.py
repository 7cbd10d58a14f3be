"""Messages of a child to its worker process, and the refusal of either side.

Layer: shared by children and tasks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_agent.channel.requests import StringMap
from pyconnect_agent.core.config.config_infos import ConfigInfos
from pyconnect_agent.core.ids import State
from pyconnect_agent.core.metric_values import GroupValues, Metric
from pyconnect_agent.core.offsets.connector_offsets import ChangeStage, CommittedOffset
from pyconnect_agent.core.reporting import Reported
from pyconnect_agent.core.restart_policy import NoRestart
from pyconnect_api.configdef import KeyInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReported:
    """A state; `trace` is the failure's whole traceback, `version` the plugin's or None.

    `permanent`: FAILED with a cause that a restart does not remove, such as a wrong setting. The
    version is None while it is not known.
    """

    state: State
    trace: str | None = None
    version: str | None = None
    permanent: bool = False

    def reported(self, version: str | None) -> Reported:
        """Return the state for the herder, with this message's version or an earlier one's."""
        return Reported(
            state=self.state,
            trace=self.trace,
            version=version,
            no_restart=NoRestart.PERMANENT if self.permanent else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfigs:
    """Raw task configs: see `children.ports.TaskConfigsGenerated`.

    `values_digest`: a keyed digest of the resolved connector config. By it the worker process
    notices changed values of the config providers, without knowing the values.
    """

    request_id: int
    configs: tuple[StringMap, ...]
    connector_config_changed: bool
    values_digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOffsets:
    """The committed offsets of a sink connector's group, None for a source."""

    committed: tuple[CommittedOffset, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnOffsets:
    """Raw entries of a connector in its own offsets topic; empty without such a topic."""

    entries: Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFailed:
    """Either side's negative answer.

    `error_class`: the exception's class name without module, or its whole name in Java.
    `permanent`: as in `StateReported`.
    """

    request_id: int
    error_class: str
    message: str
    retriable: bool = False
    permanent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReconfigurationRequested:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorIdle:
    """The connector has nothing to do until the next request, which may already be on its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicUsed:
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigTtlExpired:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOffsetsRequest:
    request_id: int
    keys: tuple[bytes, ...]
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOffsetsRequest:
    """Write offsets through the worker's store; None values are tombstones."""

    request_id: int
    entries: Mapping[bytes, bytes | None]
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FindOffsetKeys:
    """Ask for raw keys in use. Answered by `OffsetKeysFound` or `RequestFailed`."""

    request_id: int
    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindConnectorOffsets:
    """Ask for a connector's raw entries, after reading to the end.

    Answered by `ConnectorOffsetsFound` or `RequestFailed`.
    """

    request_id: int
    connector: str
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetChangeReached:
    """The next step of a change of offsets, `stage`; `kind`: source or sink connector."""

    kind: str
    stage: ChangeStage


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmOffsetChange:
    """The child is ready to write; answered by `OffsetChangeConfirmed`.

    `complete`: the connector's answer, see `effects.PrepareOffsetChange`.
    """

    request_id: int
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsChanged:
    """Answer to `ChangeOffsets`: the offsets are written and read back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmStart:
    """An exactly-once source task, its producer initialised, asks to start (KIP-618).

    Answered by `StartConfirmed` or `RequestFailed`, after the config topic was read to its end.
    """

    request_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducersFenced:
    """Answer to `FenceProducers`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigValidated:
    result: ConfigInfos


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginDescribed:
    keys: tuple[KeyInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorTried:
    """The outcomes of records, each an object in JSON, secrets hidden; see `tasks.trial`.

    `failure`: the trace of the error that ended the trial early.
    """

    records: tuple[str, ...]
    failure: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsReported:
    """A task's figures for the admin interface and metrics.

    Times are epoch milliseconds, None before the first. Sent when asked for, and with `request_id`
    0 by a task that ends FAILED. In the task, single values are written by its threads and read by
    others at any time, so no lock is needed. `last_activity_ms`: a source's last poll, a sink's
    last put. `transaction_began_ms`: None outside a transaction. `queue_size`: records taken in and
    not yet acknowledged or put. `plugins`: classes and versions, `mbeans`: numbers of MBeans; the
    worker process adds the tags of connector and task. `shared_java_pid`: of the Java process that
    the task shares with others.
    """

    request_id: int = 0
    last_activity_ms: int | None = None
    last_commit_ms: int | None = None
    transaction_began_ms: int | None = None
    queue_size: int = 0
    metrics: GroupValues = field(default_factory=dict)
    plugins: tuple[Metric, ...] = ()
    mbeans: tuple[Metric, ...] = ()
    shared_java_pid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineLogged:
    """A line of the log of a connector or task, secrets hidden; `time_ms` is epoch milliseconds.

    `level`: Log4j's name. `text`: the event with its fields, and a trace on further lines.
    """

    time_ms: int
    level: str
    logger: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StacksDumped:
    """The stacks: `text` names every thread of the process and shows its Python stack."""

    request_id: int
    text: str


Report = (
    StateReported
    | TaskConfigs
    | ConsumerOffsets
    | OwnOffsets
    | RequestFailed
    | TaskReconfigurationRequested
    | ConnectorIdle
    | TopicUsed
    | ConfigTtlExpired
    | ReadOffsetsRequest
    | WriteOffsetsRequest
    | FindOffsetKeys
    | FindConnectorOffsets
    | OffsetChangeReached
    | ConfirmOffsetChange
    | OffsetsChanged
    | ConfirmStart
    | ProducersFenced
    | ConfigValidated
    | ConnectorTried
    | PluginDescribed
    | StatsReported
    | LineLogged
    | StacksDumped
)
