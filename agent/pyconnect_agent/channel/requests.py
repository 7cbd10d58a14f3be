"""Messages of the worker process to a child: its job first, then requests.

Layer: shared by children and tasks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.plugin_catalog import PluginDesc

StringMap = Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """The worker's part of every job: its properties with Java's keys, and its plugins.

    An empty `plugins` stands for the plugins of the distribution and of installed entry points.
    `levels`: Log4j level by logger name; `log_format`: `text` or `json`.
    """

    properties: StringMap
    plugins: tuple[PluginDesc, ...] = ()
    levels: Mapping[str, str] = field(default_factory=dict)
    log_format: str = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConnectorJob:
    """Run a connector; `config` is raw.

    `lease_ms`: time without a lease after which a child ends; None: never. `may_sleep`: the child
    reports `ConnectorIdle`.
    """

    connector: str
    worker: WorkerSettings
    config: StringMap
    target_state: TargetState
    lease_ms: int | None = None
    may_sleep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTaskJob:
    """Run a task; configs are raw, `lease_ms` as for `RunConnectorJob`.

    `task_count`: of the connector's whole set, 0 if its size is not checked.
    """

    task_id: ConnectorTaskId
    worker: WorkerSettings
    connector_config: StringMap
    task_config: StringMap
    target_state: TargetState
    task_count: int = 0
    lease_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareProcessJob:
    """Run tasks in threads; each comes as one byte with two descriptors, its pipe and its *fate*.

    A `RunTaskJob` is the first message of the pipe. At the end of the task the fate has an exit
    code, and the reason if that is not 0: see `fork_server`.
    """

    worker: WorkerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateConfigJob:
    """Validate a config. Answered by `ConfigValidated` or `RequestFailed`, then the process ends.

    With `keep` the process waits for another such job instead, if it has a Java process.
    """

    worker: WorkerSettings
    config: StringMap
    keep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribePluginJob:
    """Describe a plugin.

    Answered by `PluginDescribed` or `RequestFailed`, then the process ends.
    """

    worker: WorkerSettings
    plugin: str
    version: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceProducersJob:
    """Fence producers. Answered by `ProducersFenced` or `RequestFailed`, then the process ends.

    `connector_config` is raw. `timeout_ms` is for all ids together. A denied id is not a failure if
    it is one of `ids_if_permitted`.
    """

    worker: WorkerSettings
    connector: str
    connector_config: StringMap
    transactional_ids: tuple[str, ...]
    timeout_ms: int
    ids_if_permitted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOffsetsJob:
    """Read a sink's committed offsets, or with `own` the entries of a source's own offsets topic.

    Answered by `ConsumerOffsets` or `OwnOffsets`, or by `RequestFailed`, then the process ends.
    `config` is raw.
    """

    worker: WorkerSettings
    connector: str
    config: StringMap
    timeout_ms: int
    own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOffsetsJob:
    """Ask a stopped connector about new offsets, then write them (KIP-875). `config` is raw.

    `offsets`: JSON text; None: reset all. The child reports its next step by
    `OffsetChangeReached`, asks by `ConfirmOffsetChange` before it writes, and ends with
    `OffsetsChanged` or `RequestFailed`.
    """

    worker: WorkerSettings
    connector: str
    config: StringMap
    offsets: bytes | None
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenRecord:
    """A record of Kafka; `timestamp_ms` is None without a timestamp."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TryConnectorJob:
    """Show the outcomes of records, without a producer, a consumer and stored offsets.

    Answered by `ConnectorTried` or `RequestFailed`, then the process ends. Configs are raw. With
    `given` None the records are `most` of the source task of `task_config`, which is polled for
    `time_ms`; else they are those that a sink would get of `given`.
    """

    worker: WorkerSettings
    connector: str
    config: StringMap
    task_config: StringMap = field(default_factory=dict)
    given: tuple[GivenRecord, ...] | None
    most: int
    time_ms: int


Job = (
    RunConnectorJob
    | RunTaskJob
    | ValidateConfigJob
    | DescribePluginJob
    | FenceProducersJob
    | ReadOffsetsJob
    | ChangeOffsetsJob
    | TryConnectorJob
    | ShareProcessJob
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTargetStateRequest:
    target_state: TargetState


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateTaskConfigsRequest:
    """Make task configs. Answered by `TaskConfigs` or `RequestFailed`.

    `applied_config`: see `children.ports`. `digest_key`: of the answer's `values_digest`.
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
    """A lease until `valid_until_s` on the host's monotonic clock, which all its processes share.

    The lease is a term after the group has last confirmed the worker's membership. It counts only
    if that was before the end of the previous one: after a gap another worker may run the task.
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
    """The raw keys of equal content in use, newest first, by requested key."""

    request_id: int
    keys: Mapping[bytes, tuple[bytes, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorOffsetsFound:
    """Raw entries of a connector in the worker's store."""

    request_id: int
    entries: Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetChangeConfirmed:
    """Answer to `ConfirmOffsetChange`: the child may write."""

    request_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConfirmed:
    """Answer to `ConfirmStart`: the task may start."""

    request_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportStats:
    """Ask for figures; answered by `StatsReported`, also while the plugin hangs in Python code.

    `mbeans`: also those of a Java task's plugins.
    """

    request_id: int
    mbeans: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLoggerLevel:
    """Set the Log4j level of all loggers that start with `namespace`, as for the worker itself."""

    namespace: str
    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpStacks:
    """Ask for stacks; answered by `StacksDumped`, also while the plugin hangs in Python code."""

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
