"""Messages on the pipe between supervisor and child."""

from __future__ import annotations

import pickle
import socket
from pathlib import PurePath

import pytest

from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.supervise.channel import (
    FRAME_HEADER,
    VERSION,
    Channel,
    ChannelError,
    Message,
    RunTask,
    StateReported,
    Stop,
    WorkerSettings,
    WriteOffsets,
    decode,
    encode,
)

TASK = RunTask(
    task_id=ConnectorTaskId("c", 3),
    worker=WorkerSettings(properties={"bootstrap.servers": "localhost:9092", "plugin.path": None}),
    connector_config={"name": "c"},
    task_config={"file": "ä"},
    target_state=TargetState.PAUSED,
    lease_ms=10_000,
)


@pytest.mark.parametrize(
    "message",
    [
        TASK,
        Stop(),
        StateReported(state=State.FAILED, trace="t\nu", version=None),
        WriteOffsets(request_id=7, entries={b"\x00k": None, b"l": b"v"}, timeout_ms=5),
    ],
)
def test_a_message_survives_the_pipe(message: Message) -> None:
    """What is sent is what is received, by value and type."""
    frame = encode(message)
    assert FRAME_HEADER.unpack(frame[:4])[0] == len(frame) - 4
    assert decode(frame[4:]) == message


def test_a_foreign_class_is_refused() -> None:
    """A plugin cannot make the supervisor construct anything but messages."""
    body = pickle.dumps(StateReported(state=State.RUNNING, trace=PurePath("x")))  # type: ignore[arg-type]
    with pytest.raises(ChannelError, match="may not contain pathlib"):
        decode(bytes((VERSION,)) + body)


def test_a_class_that_a_message_module_imports_is_refused() -> None:
    """Dotted names do not lead past the modules of messages."""
    body = b"\x80\x04\x8c(pyconnect_agent.supervise.channel.frames\x8c\tio.FileIO\x93."
    with pytest.raises(ChannelError, match="may not contain"):
        decode(bytes((VERSION,)) + body)


def test_code_in_a_pickle_is_refused() -> None:
    """The usual way to run code while unpickling is closed."""

    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return (eval, ("1 + 1",))

    with pytest.raises(ChannelError, match=r"may not contain builtins\.eval"):
        decode(bytes((VERSION,)) + pickle.dumps(Evil()))


def test_a_value_that_is_no_message_is_refused() -> None:
    """Only messages are messages."""
    with pytest.raises(ChannelError, match="not a message"):
        decode(bytes((VERSION,)) + pickle.dumps({"state": "RUNNING"}))


def test_another_version_is_refused() -> None:
    """A frame of another version is not guessed at."""
    frame = encode(Stop())[4:]
    with pytest.raises(ChannelError, match="channel version 02"):
        decode(b"\x02" + frame[1:])


def test_receive_returns_none_once_the_other_end_is_closed() -> None:
    """An end in the middle of a frame is an end too."""
    ours, theirs = socket.socketpair()
    channel = Channel(theirs)
    ours.sendall(encode(Stop()) + encode(TASK)[:30])
    ours.close()
    assert channel.receive() == Stop()
    assert channel.receive() is None
    channel.close()
