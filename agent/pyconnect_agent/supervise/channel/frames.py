"""Messages as bytes.

Layer: shared by supervise and tasks. A frame is: length of the rest (4 bytes, big-endian),
`VERSION` (1 byte), a pickled message.
"""

from __future__ import annotations

import builtins
import io
import pickle
import struct
from typing import Any, get_args

from pyconnect_agent.supervise.channel.jobs import Job
from pyconnect_agent.supervise.channel.reports import (
    ConfigTtlExpired,
    ConfigValidated,
    ConfirmOffsetChange,
    ConfirmStart,
    ConsumerOffsets,
    FindConnectorOffsets,
    FindOffsetKeys,
    OffsetChangeReached,
    OffsetsChanged,
    OwnOffsets,
    PluginDescribed,
    ProducersFenced,
    ReadOffsets,
    RequestFailed,
    StacksDumped,
    StateReported,
    StatsReported,
    TaskConfigs,
    TaskReconfigurationRequested,
    TopicUsed,
    WriteOffsets,
)
from pyconnect_agent.supervise.channel.requests import (
    ConnectorOffsetsFound,
    DumpStacks,
    GenerateTaskConfigs,
    Lease,
    OffsetChangeConfirmed,
    OffsetKeysFound,
    OffsetsRead,
    OffsetsWritten,
    ReportStats,
    SetLoggerLevel,
    SetTargetState,
    StartConfirmed,
    Stop,
)

VERSION = 1
FRAME_HEADER = struct.Struct(">I")

Message = (
    Job
    | SetLoggerLevel
    | SetTargetState
    | GenerateTaskConfigs
    | Stop
    | Lease
    | OffsetsRead
    | OffsetsWritten
    | OffsetKeysFound
    | ConnectorOffsetsFound
    | OffsetChangeConfirmed
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
    | FindOffsetKeys
    | FindConnectorOffsets
    | OffsetChangeReached
    | ConfirmOffsetChange
    | OffsetsChanged
    | ConfirmStart
    | ProducersFenced
    | ConfigValidated
    | ConsumerOffsets
    | OwnOffsets
    | PluginDescribed
    | StatsReported
    | StacksDumped
)
_MESSAGE_CLASSES = get_args(Message)
_MODULES = ("pyconnect_agent.supervise.channel.", "pyconnect_agent.core.")


class ChannelError(Exception):
    """The other side sent something that is no message of this version."""


def encode(message: Message) -> bytes:
    """Return the whole frame."""
    # Written in place: of a very large message there is no second copy.
    frame = io.BytesIO()
    frame.write(FRAME_HEADER.pack(0))
    frame.write(bytes((VERSION,)))
    pickle.dump(message, frame, protocol=5)
    length = frame.tell() - FRAME_HEADER.size
    frame.seek(0)
    frame.write(FRAME_HEADER.pack(length))
    return frame.getvalue()


def decode(frame: bytes) -> Message:
    """Read a frame without its length. Raises ChannelError."""
    if not frame or frame[0] != VERSION:
        raise ChannelError(
            f"channel version {frame[:1].hex() or 'missing'}, expected {VERSION:02x}"
        )
    try:
        body = io.BytesIO(frame)
        body.seek(1)
        message = _Reader(body).load()
    except ChannelError:
        raise
    except Exception as exc:  # pickle documents no narrower set for damaged input
        raise ChannelError(f"unreadable message: {exc}") from exc
    if not isinstance(message, _MESSAGE_CLASSES):
        raise ChannelError(f"not a message: {type(message).__name__}")
    return message  # type: ignore[no-any-return]  # checked above


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.startswith(_MODULES):
            found = super().find_class(module, name)
            # Names may be dotted: what a module imports must not be reached through it.
            if isinstance(found, type) and found.__module__ == module:
                return found
        elif module == "builtins" and name in {"frozenset", "set"}:
            return getattr(builtins, name)
        raise ChannelError(f"a message may not contain {module}.{name}")
