"""What supervisor and child processes say to each other, and how it looks on the pipe.

Layer: the only package that `children` and `tasks` share. No Kafka counterpart: a Java worker runs
its plugins in threads.

Messages are frozen dataclasses of plain values: a job (`jobs`), then requests to the child
(`requests`) and reports from it (`reports`). Reading (`frames`) admits no class but those and the
values of `core`, so what a plugin sends can never run code in the supervisor.
"""

from __future__ import annotations

import signal

from pyconnect_agent.channel.frames import (
    FRAME_HEADER,
    VERSION,
    ChannelError,
    Message,
    decode,
    encode,
)
from pyconnect_agent.channel.jobs import (
    ChangeOffsets,
    DescribePlugin,
    FenceProducers,
    Job,
    ReadConsumerOffsets,
    ReadOwnOffsets,
    RunConnector,
    RunTask,
    StringMap,
    ValidateConfig,
    WorkerSettings,
)
from pyconnect_agent.channel.pipe import Channel
from pyconnect_agent.channel.reports import (
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
from pyconnect_agent.channel.requests import (
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

EXIT_LEASE_EXPIRED = 71
"""Exit code of a child whose lease ran out."""
STACKS_SIGNAL = signal.SIGURG
"""Asks a child for its stacks. Ignored by default, so it harms no child that is not ready yet."""
STACKS_FILE = "pyconnect-stacks"
"""Name of the memory file into which a child writes them then."""

__all__ = [
    "EXIT_LEASE_EXPIRED",
    "FRAME_HEADER",
    "STACKS_FILE",
    "STACKS_SIGNAL",
    "VERSION",
    "ChangeOffsets",
    "Channel",
    "ChannelError",
    "ConfigTtlExpired",
    "ConfigValidated",
    "ConfirmOffsetChange",
    "ConfirmStart",
    "ConnectorOffsetsFound",
    "ConsumerOffsets",
    "DescribePlugin",
    "DumpStacks",
    "FenceProducers",
    "FindConnectorOffsets",
    "FindOffsetKeys",
    "GenerateTaskConfigs",
    "Job",
    "Lease",
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
    "ReadConsumerOffsets",
    "ReadOffsets",
    "ReadOwnOffsets",
    "ReportStats",
    "RequestFailed",
    "RunConnector",
    "RunTask",
    "SetLoggerLevel",
    "SetTargetState",
    "StacksDumped",
    "StartConfirmed",
    "StateReported",
    "StatsReported",
    "Stop",
    "StringMap",
    "TaskConfigs",
    "TaskReconfigurationRequested",
    "TopicUsed",
    "ValidateConfig",
    "WorkerSettings",
    "WriteOffsets",
    "decode",
    "encode",
]
