"""The messages between the worker process and its children, and their form on the pipe.

Layer: the only package that `children` and `tasks` share. No Kafka counterpart: a Java worker runs
its plugins in threads.

Messages are frozen dataclasses of plain values: a job (`requests`), then requests to the child
(`requests`) and reports from it (`reports`). Reading (`frames`) admits no class but those and the
values of `core`, so what a plugin sends can never run code in the worker process.
"""

from __future__ import annotations

import signal
import struct

from pyconnect_agent.channel.pipe import (
    FRAME_HEADER,
    MAX_FRAME_BYTES,
    VERSION,
    Channel,
    ChannelError,
    Message,
    decode,
    encode,
)
from pyconnect_agent.channel.reports import (
    ConfigTtlExpired,
    ConfigValidated,
    ConfirmOffsetChange,
    ConfirmStart,
    ConnectorIdle,
    ConnectorTried,
    ConsumerOffsets,
    FindConnectorOffsets,
    FindOffsetKeys,
    LineLogged,
    OffsetChangeReached,
    OffsetsChanged,
    OwnOffsets,
    PluginDescribed,
    ProducersFenced,
    ReadOffsetsRequest,
    RequestFailed,
    StacksDumped,
    StateReported,
    StatsReported,
    TaskConfigs,
    TaskReconfigurationRequested,
    TopicUsed,
    WriteOffsetsRequest,
)
from pyconnect_agent.channel.requests import (
    ChangeOffsetsJob,
    ConnectorOffsetsFound,
    DescribePluginJob,
    DumpStacks,
    FenceProducersJob,
    GenerateTaskConfigsRequest,
    GivenRecord,
    Job,
    Lease,
    OffsetChangeConfirmed,
    OffsetKeysFound,
    OffsetsRead,
    OffsetsWritten,
    ReadOffsetsJob,
    ReportStats,
    RunConnectorJob,
    RunTaskJob,
    SetLoggerLevel,
    SetTargetStateRequest,
    ShareProcessJob,
    StartConfirmed,
    Stop,
    StringMap,
    TryConnectorJob,
    ValidateConfigJob,
    WorkerSettings,
)

EXIT_LEASE_EXPIRED = 71
"""Exit code of a child whose lease ran out."""
STACKS_SIGNAL = signal.SIGURG
"""Asks a child for its stacks. Ignored by default, so it is harmless before the child is ready."""
STACKS_FILE = "pyconnect-stacks"
"""Name of the memory file into which a child writes its stacks at this signal."""

TASK_FOLLOWS = b"\x00"
"""The byte that brings a shared process a task's descriptors."""
NUMBER = struct.Struct("<q")
"""A pid or exit code in a fate."""
LAST_WORDS_BYTES = 4000
"""Of a fate. With the exit code less than a page, which any pipe takes at once."""

__all__ = [
    "EXIT_LEASE_EXPIRED",
    "FRAME_HEADER",
    "LAST_WORDS_BYTES",
    "MAX_FRAME_BYTES",
    "NUMBER",
    "STACKS_FILE",
    "STACKS_SIGNAL",
    "TASK_FOLLOWS",
    "VERSION",
    "ChangeOffsetsJob",
    "Channel",
    "ChannelError",
    "ConfigTtlExpired",
    "ConfigValidated",
    "ConfirmOffsetChange",
    "ConfirmStart",
    "ConnectorIdle",
    "ConnectorOffsetsFound",
    "ConnectorTried",
    "ConsumerOffsets",
    "DescribePluginJob",
    "DumpStacks",
    "FenceProducersJob",
    "FindConnectorOffsets",
    "FindOffsetKeys",
    "GenerateTaskConfigsRequest",
    "GivenRecord",
    "Job",
    "Lease",
    "LineLogged",
    "Message",
    "OffsetChangeConfirmed",
    "OffsetChangeReached",
    "OffsetKeysFound",
    "OffsetsChanged",
    "OffsetsRead",
    "OffsetsWritten",
    "OwnOffsets",
    "PluginDescribed",
    "ProducersFenced",
    "ReadOffsetsJob",
    "ReadOffsetsRequest",
    "ReportStats",
    "RequestFailed",
    "RunConnectorJob",
    "RunTaskJob",
    "SetLoggerLevel",
    "SetTargetStateRequest",
    "ShareProcessJob",
    "StacksDumped",
    "StartConfirmed",
    "StateReported",
    "StatsReported",
    "Stop",
    "StringMap",
    "TaskConfigs",
    "TaskReconfigurationRequested",
    "TopicUsed",
    "TryConnectorJob",
    "ValidateConfigJob",
    "WorkerSettings",
    "WriteOffsetsRequest",
    "decode",
    "encode",
]
