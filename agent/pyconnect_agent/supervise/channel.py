"""What supervisor and child processes say to each other, and how it looks on the pipe.

Layer: the only module that `supervise` and `tasks` share. No Kafka counterpart: a Java worker runs
its plugins in threads.

A frame is: length of the rest (4 bytes, big-endian), `VERSION` (1 byte), a pickled message.
Messages are frozen dataclasses of plain values. Reading admits no class but those of this module
and the values of `core`, so what a plugin sends can never run code in the supervisor.

Threads: `Channel.send` may be called from any thread; `Channel.receive` from one.
"""

from __future__ import annotations

import builtins
import io
import pickle
import signal
import socket
import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyconnect_agent.core.connector_offsets import CommittedOffset
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.plugin_catalog import PluginDesc

if TYPE_CHECKING:
    from pyconnect_agent.core.config.validation import ConfigInfos

VERSION = 1
EXIT_LEASE_EXPIRED = 71
"""Exit code of a child whose lease ran out."""
STACKS_SIGNAL = signal.SIGURG
"""Asks a child for its stacks. Ignored by default, so it harms no child that is not ready yet."""
STACKS_FILE = "pyconnect-stacks"
"""Name of the memory file into which a child writes them then."""
FRAME_HEADER = struct.Struct(">I")

StringMap = Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """What every job needs of the worker: its properties with Java's keys, and its plugins.

    `plugins` empty: those of the distribution and of installed entry points. `levels`: Log4j level
    by logger name; `log_format`: `text` or `json`.
    """

    properties: StringMap
    plugins: tuple[PluginDesc, ...] = ()
    levels: Mapping[str, str] = field(default_factory=dict)
    log_format: str = "text"


# --- the job: first message to a new child, says what the process is for ---


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConnector:
    """`config` is raw. `lease_ms`: a child without a lease for so long ends itself; None: never."""

    connector: str
    worker: WorkerSettings
    config: StringMap
    target_state: TargetState
    lease_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTask:
    """Configs are raw; `lease_ms` as for `RunConnector`."""

    task_id: ConnectorTaskId
    worker: WorkerSettings
    connector_config: StringMap
    task_config: StringMap
    target_state: TargetState
    lease_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateConfig:
    """Answered by `ConfigValidated` or `RequestFailed`, then the process ends."""

    worker: WorkerSettings
    config: StringMap


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribePlugin:
    """Answered by `PluginDescribed` or `RequestFailed`, then the process ends."""

    worker: WorkerSettings
    plugin: str
    version: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceProducers:
    """Answered by `ProducersFenced` or `RequestFailed`, then the process ends.

    `connector_config` is raw. All ids together have `timeout_ms`.
    """

    worker: WorkerSettings
    connector: str
    connector_config: StringMap
    transactional_ids: tuple[str, ...]
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadConsumerOffsets:
    """Answered by `ConsumerOffsets` or `RequestFailed`, then the process ends. `config` is raw."""

    worker: WorkerSettings
    connector: str
    config: StringMap
    timeout_ms: int


Job = (
    RunConnector | RunTask | ValidateConfig | DescribePlugin | FenceProducers | ReadConsumerOffsets
)


# --- later messages to the child ---


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTargetState:
    target_state: TargetState


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateTaskConfigs:
    """Answered by `TaskConfigs` or `RequestFailed`. `applied_config`: see `supervise.ports`."""

    request_id: int
    config: StringMap
    applied_config: StringMap | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End in order: final commits, the plugin's `stop`, a last status, exit.

    `graceful_ms`: how long that may take; SIGTERM before then is not from the supervisor.
    """

    graceful_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """`valid_until_s` on the host's monotonic clock, which all its processes share.

    It counts only if it was issued before the one before had run out: after a gap another worker
    may run the task.
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
class StartConfirmed:
    """Answer to `ConfirmStart`."""

    request_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportStats:
    """Answered by `StatsReported`, also while the plugin hangs in Python code."""

    request_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpStacks:
    """Answered by `StacksDumped`, also while the plugin hangs in Python code."""

    request_id: int


# --- messages to the supervisor ---


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReported:
    """`trace` is the failure's whole traceback; `version` the plugin's, None when not known yet."""

    state: State
    trace: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfigs:
    """Raw task configs: see `supervise.ports.TaskConfigsGenerated`."""

    request_id: int
    configs: tuple[StringMap, ...]
    connector_config_changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOffsets:
    """What a sink connector's group has committed."""

    committed: tuple[CommittedOffset, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFailed:
    """Either side's negative answer.

    `error_class`: the exception's class name without module, or Java's whole name of it.
    """

    request_id: int
    error_class: str
    message: str
    retriable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReconfigurationRequested:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicUsed:
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigTtlExpired:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOffsets:
    request_id: int
    keys: tuple[bytes, ...]
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOffsets:
    """None values are tombstones."""

    request_id: int
    entries: Mapping[bytes, bytes | None]
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmStart:
    """An exactly-once source task, its producer initialised, asks to begin (KIP-618).

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
    keys: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsReported:
    """For the admin interface. Times are epoch milliseconds, None before the first.

    `last_activity_ms`: a source's last poll, a sink's last put. `transaction_began_ms`: None
    outside a transaction. `queue_size`: records taken in and not yet acknowledged or put.
    """

    request_id: int
    last_activity_ms: int | None = None
    last_commit_ms: int | None = None
    transaction_began_ms: int | None = None
    queue_size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StacksDumped:
    """`text` names every thread of the process and shows its Python stack."""

    request_id: int
    text: str


Message = (
    Job
    | SetTargetState
    | GenerateTaskConfigs
    | Stop
    | Lease
    | OffsetsRead
    | OffsetsWritten
    | StartConfirmed
    | ReportStats
    | DumpStacks
    | StateReported
    | TaskConfigs
    | RequestFailed
    | TaskReconfigurationRequested
    | TopicUsed
    | ConfigTtlExpired
    | ReadOffsets
    | WriteOffsets
    | ConfirmStart
    | ProducersFenced
    | ConfigValidated
    | ConsumerOffsets
    | PluginDescribed
    | StatsReported
    | StacksDumped
)


class ChannelError(Exception):
    """The other side sent something that is no message of this version."""


def encode(message: Message) -> bytes:
    """Return the whole frame."""
    body = pickle.dumps(message, protocol=5)
    return FRAME_HEADER.pack(len(body) + 1) + bytes((VERSION,)) + body


def decode(frame: bytes) -> Message:
    """Read a frame without its length. Raises ChannelError."""
    if not frame or frame[0] != VERSION:
        raise ChannelError(
            f"channel version {frame[:1].hex() or 'missing'}, expected {VERSION:02x}"
        )
    try:
        message = _Reader(io.BytesIO(frame[1:])).load()
    except ChannelError:
        raise
    except Exception as exc:  # pickle documents no narrower set for damaged input
        raise ChannelError(f"unreadable message: {exc}") from exc
    if type(message).__module__ != __name__:
        raise ChannelError(f"not a message: {type(message).__name__}")
    return message  # type: ignore[no-any-return]  # checked above


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == __name__ or module.startswith("pyconnect_agent.core."):
            found = super().find_class(module, name)
            if isinstance(found, type):
                return found
        elif module == "builtins" and name in {"frozenset", "set"}:
            return getattr(builtins, name)
        raise ChannelError(f"a message may not contain {module}.{name}")


class Channel:
    """The child's end of the pipe: blocking, whole messages."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._send_lock = threading.Lock()

    def fileno(self) -> int:
        return self._connection.fileno()

    def send(self, message: Message) -> None:
        """Raises OSError once the supervisor is gone."""
        frame = encode(message)
        with self._send_lock:
            self._connection.sendall(frame)

    def receive(self) -> Message | None:
        """Block for the next message; None when the supervisor is gone."""
        header = self._read_exactly(FRAME_HEADER.size)
        if header is None:
            return None
        frame = self._read_exactly(FRAME_HEADER.unpack(header)[0])
        return None if frame is None else decode(frame)

    def close(self) -> None:
        self._connection.close()

    def _read_exactly(self, size: int) -> bytes | None:
        received = bytearray()
        while len(received) < size:
            try:
                part = self._connection.recv(size - len(received))
            except ConnectionError:
                return None
            if not part:
                return None
            received += part
        return bytes(received)
