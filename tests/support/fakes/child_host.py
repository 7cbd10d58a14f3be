"""A host for child processes that follows a script: `act` in the task or connector config."""

import ctypes
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable

from pyconnect_agent.channel import Channel, encode
from pyconnect_agent.channel.reports import (
    ReadOffsetsRequest,
    RequestFailed,
    StateReported,
    TaskConfigs,
    TopicUsed,
    WriteOffsetsRequest,
)
from pyconnect_agent.channel.requests import (
    GenerateTaskConfigsRequest,
    RunConnectorJob,
    RunTaskJob,
    SetTargetStateRequest,
    Stop,
)
from pyconnect_agent.core.ids import State, TargetState

STATES = {
    TargetState.STARTED: State.RUNNING,
    TargetState.PAUSED: State.PAUSED,
    TargetState.STOPPED: State.STOPPED,
}


def run(connection: socket.socket, last_words: int) -> None:
    """Serve one job."""
    channel = Channel(connection)
    job = channel.receive()
    if isinstance(job, RunTaskJob):
        act = job.task_config.get("act") or "run"
        target_state = job.target_state
    elif isinstance(job, RunConnectorJob):
        act = job.config.get("act") or "run"
        target_state = job.target_state
    else:
        os._exit(99)
    ACTS.get(act, _run)(channel, target_state)
    os._exit(0)


def tell_modules(connection: socket.socket, last_words: int) -> None:
    """Send the names of the loaded modules in JSON."""
    connection.sendall(json.dumps(list(sys.modules)).encode())
    connection.close()


def _run(channel: Channel, target_state: TargetState) -> None:
    channel.send(StateReported(state=STATES[target_state], version="1.2"))
    while (message := channel.receive()) is not None:
        if isinstance(message, Stop):
            channel.send(StateReported(state=State.UNASSIGNED, version="1.2"))
            return
        if isinstance(message, SetTargetStateRequest):
            channel.send(StateReported(state=STATES[message.target_state]))
        if isinstance(message, GenerateTaskConfigsRequest):
            _task_configs(channel, message)
    os._exit(70)


def _task_configs(channel: Channel, request: GenerateTaskConfigsRequest) -> None:
    if request.config.get("refuse"):
        channel.send(
            RequestFailed(
                request_id=request.request_id, error_class="ConnectException", message="no tasks"
            )
        )
        return
    if request.config.get("die"):
        os._exit(5)
    channel.send(
        TaskConfigs(
            request_id=request.request_id,
            configs=({"n": "0"}, {"n": "1"}),
            connector_config_changed=request.applied_config is None,
            values_digest=b"",
        )
    )


def _exit_3(channel: Channel, target_state: TargetState) -> None:
    channel.send(StateReported(state=State.RUNNING, version="1.2"))
    os._exit(3)


def _exit_now(channel: Channel, target_state: TargetState) -> None:
    os._exit(3)


def _hang(channel: Channel, target_state: TargetState) -> None:
    # Python code that never reads its channel and ignores SIGTERM.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    channel.send(StateReported(state=State.RUNNING, version="1.2"))
    threading.Event().wait()


def _late(channel: Channel, target_state: TargetState) -> None:
    """On SIGTERM, report after the graceful time is over."""

    def report(*_: object) -> None:
        channel.send(StateReported(state=State.FAILED, trace="too late"))
        os._exit(0)

    signal.signal(signal.SIGTERM, report)
    channel.send(StateReported(state=State.RUNNING, version="1.2"))
    while True:
        time.sleep(60)


def _topics(channel: Channel, target_state: TargetState) -> None:
    channel.send(TopicUsed(topic="t1"))
    _run(channel, target_state)


def _offsets(channel: Channel, target_state: TargetState) -> None:
    """Write an offset, read it, and report the result as the trace of a failure."""
    channel.send(
        WriteOffsetsRequest(request_id=1, entries={b"k": b"v", b"gone": None}, timeout_ms=1000)
    )
    written = channel.receive()
    channel.send(ReadOffsetsRequest(request_id=2, keys=(b"k", b"absent"), timeout_ms=1000))
    read = channel.receive()
    channel.send(StateReported(state=State.FAILED, trace=f"{written!r} {read!r}"))


def _garbage(channel: Channel, target_state: TargetState) -> None:
    channel._connection.sendall(b"\x00\x00\x00\x02\x63\x00")
    threading.Event().wait()


def _no_message(channel: Channel, target_state: TargetState) -> None:
    """Return a value that is not a message: plugins may return any value."""
    state = StateReported(state=State.RUNNING, version=3)  # type: ignore[arg-type]
    channel._connection.sendall(encode(state))
    threading.Event().wait()


def _raise(channel: Channel, target_state: TargetState) -> None:
    raise LookupError("nothing reports this")


def _long_last_words(channel: Channel, target_state: TargetState) -> None:
    raise LookupError("x" * 100_000 + "the end")


def _crash(channel: Channel, target_state: TargetState) -> None:
    ctypes.string_at(0)


def _last_words(channel: Channel, target_state: TargetState) -> None:
    """Run until any message comes, then report a failure and end."""
    channel.send(StateReported(state=State.RUNNING, version="1.2"))
    channel.receive()
    channel.send(StateReported(state=State.FAILED, trace="last words"))


ACTS: dict[str, Callable[[Channel, TargetState], None]] = {
    "run": _run,
    "exit-3": _exit_3,
    "exit-now": _exit_now,
    "hang": _hang,
    "late": _late,
    "topics": _topics,
    "offsets": _offsets,
    "garbage": _garbage,
    "no-message": _no_message,
    "raise": _raise,
    "crash": _crash,
    "long-last-words": _long_last_words,
    "last-words": _last_words,
}
