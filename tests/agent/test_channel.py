"""Messages on the pipe between worker process and child."""

import socket
import tracemalloc
from collections import OrderedDict, UserDict
from dataclasses import fields, is_dataclass
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType, NoneType
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.channel import (
    FRAME_HEADER,
    VERSION,
    Channel,
    ChannelError,
    Message,
    decode,
    encode,
    reports,
    requests,
)
from pyconnect_agent.channel.reports import (
    OwnOffsets,
    StateReported,
    TaskConfigs,
    WriteOffsetsRequest,
)
from pyconnect_agent.channel.requests import RunTaskJob, Stop, WorkerSettings
from pyconnect_agent.core.config.config_infos import ConfigInfo, ConfigInfos, ConfigValueInfo
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.metric_values import Metric
from pyconnect_agent.core.offsets.connector_offsets import ChangeStage, CommittedOffset
from pyconnect_agent.core.plugin_catalog import PluginDesc, PluginKind
from tests.support.cases import cases

WORKER = WorkerSettings(
    properties={"bootstrap.servers": "localhost:9092", "plugin.path": None},
    plugins=(
        PluginDesc(
            class_name="a.B",
            python_path="a:B",
            kind=PluginKind.SINK,
            version=None,
            extra_aliases=("b",),
        ),
    ),
    levels={"root": "INFO"},
)
TASK = RunTaskJob(
    task_id=ConnectorTaskId("c", 3),
    worker=WORKER,
    connector_config={"name": "c"},
    task_config={"file": "ä", "empty": None},
    target_state=TargetState.PAUSED,
    lease_ms=10_000,
)
KEY_INFO = {"name": "k", "required": True, "order_in_group": -1, "group": None, "dependents": ["a"]}
METRIC = Metric(group="g", name="n", value="text", tags={"transform": "t"})
MESSAGES: tuple[Message, ...] = (
    TASK,
    requests.ShareProcessJob(worker=WORKER),
    requests.RunConnectorJob(
        connector="c", worker=WORKER, config={"a": None}, target_state=TargetState.STOPPED
    ),
    requests.ValidateConfigJob(worker=WORKER, config={"a": "b"}),
    requests.DescribePluginJob(worker=WORKER, plugin="P", version=None),
    requests.FenceProducersJob(
        worker=WORKER, connector="c", connector_config={}, transactional_ids=("i",), timeout_ms=1
    ),
    requests.ReadOffsetsJob(worker=WORKER, connector="c", config={}, timeout_ms=1, own=True),
    requests.ChangeOffsetsJob(worker=WORKER, connector="c", config={}, offsets=None, timeout_ms=1),
    requests.TryConnectorJob(
        worker=WORKER,
        connector="c",
        config={},
        given=(
            requests.GivenRecord(
                topic="t",
                partition=0,
                offset=1,
                timestamp_ms=None,
                key=None,
                value=b"\xff",
                headers=(("h", b""),),
            ),
        ),
        most=1,
        time_ms=1,
    ),
    requests.SetLoggerLevel(namespace="n", level="DEBUG"),
    requests.SetTargetStateRequest(target_state=TargetState.STARTED),
    requests.GenerateTaskConfigsRequest(
        request_id=1, digest_key=b"\x00\xff", config={"a": "b"}, applied_config=None
    ),
    Stop(graceful_ms=5),
    requests.Lease(valid_until_s=1.25),
    requests.OffsetsRead(request_id=1, entries={b"\xff": b"\x00", b"gone": None}),
    requests.OffsetsWritten(request_id=1),
    requests.OffsetKeysFound(request_id=1, keys={b"k": (b"a", b"b"), b"l": ()}),
    requests.ConnectorOffsetsFound(request_id=1, entries={b"k": b"v"}),
    requests.OffsetChangeConfirmed(request_id=1),
    requests.StartConfirmed(request_id=1),
    requests.ReportStats(request_id=1),
    requests.DumpStacks(request_id=1),
    StateReported(state=State.FAILED, trace="t\nu", version=None),
    TaskConfigs(
        request_id=1,
        configs=({"a": "b", "none": None}, {}),
        connector_config_changed=True,
        values_digest=b"\x80",
    ),
    reports.RequestFailed(request_id=1, error_class="E", message="m", retriable=True),
    reports.TaskReconfigurationRequested(),
    reports.ConnectorIdle(),
    reports.ConnectorTried(records=("{}",), failure=None),
    reports.TopicUsed(topic="t"),
    reports.ConfigTtlExpired(),
    reports.ReadOffsetsRequest(request_id=1, keys=(b"k", b""), timeout_ms=5),
    WriteOffsetsRequest(request_id=7, entries={b"\x00k": None, b"l": b"v"}, timeout_ms=5),
    reports.FindOffsetKeys(request_id=1, keys=()),
    reports.FindConnectorOffsets(request_id=1, connector="c", timeout_ms=5),
    reports.OffsetChangeReached(kind="sink", stage=ChangeStage.CALLING),
    reports.ConfirmOffsetChange(request_id=1, complete=False),
    reports.OffsetsChanged(),
    reports.ConfirmStart(request_id=1),
    reports.ProducersFenced(),
    reports.ConfigValidated(
        result=ConfigInfos(
            name="n",
            error_count=1,
            groups=("g",),
            configs=(
                ConfigInfo(definition=KEY_INFO, value=None),  # type: ignore[arg-type]  # str keys
                ConfigInfo(
                    definition=None,
                    value=ConfigValueInfo(
                        name="k", value=None, recommended_values=(None, "v"), errors=("e",)
                    ),
                ),
            ),
        )
    ),
    reports.ConsumerOffsets(committed=(CommittedOffset("t", 0, 5),)),
    OwnOffsets(entries={b"k": b"v"}),
    reports.PluginDescribed(keys=(KEY_INFO,)),  # type: ignore[arg-type]  # str keys
    reports.StatsReported(
        request_id=1,
        last_activity_ms=2**40,
        metrics={"g": {"count": 3, "share": 0.5, "missing": float("-inf"), "state": "running"}},
        plugins=(METRIC,),
    ),
    reports.StacksDumped(request_id=1, text="t"),
    reports.LineLogged(time_ms=1, level="WARN", logger="l", text="t"),
)


def body(frame: bytearray) -> bytes:
    return bytes(frame[FRAME_HEADER.size :])


def test_every_field_of_every_message_is_declared() -> None:
    """All messages are among the examples, and a reader constructs only declared types."""
    assert {type(message) for message in MESSAGES} == set(get_args(Message))
    found = constructed_by(Message)
    assert found > set(get_args(Message))
    for kind in found:
        assert kind.__module__.startswith(("pyconnect_agent.core.", "pyconnect_agent.channel."))
        assert is_dataclass(kind) or issubclass(kind, Enum | tuple)
    (name, sent) = msgspec.msgpack.decode(body(encode(TASK))[1:], strict=False)
    assert name == "RunTaskJob"
    assert list(sent) == [field.name for field in fields(TASK)]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_survives_the_pipe(message: Message) -> None:
    """A received message equals the sent one in value and type."""
    frame = encode(message)
    assert FRAME_HEADER.unpack(frame[:4])[0] == len(frame) - 4
    received = decode(body(frame))
    assert received == message
    assert repr(received) == repr(message)


def test_a_frame_has_the_documented_layout() -> None:
    """A process in another language can write and read the bytes of a frame."""
    assert encode(StateReported(state=State.RUNNING, version="1")) == (
        b"\x00\x00\x00\x3b\x02\x92\xadStateReported"
        b"\x84\xa5state\xa7RUNNING\xa5trace\xc0\xa7version\xa11\xa9permanent\xc2"
    )
    shorter = b"\x02\x92\xa4Stop\x81\xa3new\x01"
    assert decode(shorter) == Stop()


PLAIN = {str, bytes, bool, int, float, NoneType}


def constructed_by(kind: Any) -> set[type]:
    """Return the classes that reading a value of a declared type may construct."""
    if arguments := get_args(kind):
        return set().union(*(constructed_by(argument) for argument in arguments if argument != ...))
    if not isinstance(kind, type) or kind in PLAIN or kind in (dict, list, tuple):
        assert kind in PLAIN, f"{kind} admits values of any type"
        return set()
    hints = get_type_hints(kind) if is_dataclass(kind) or issubclass(kind, tuple) else {}
    return {kind}.union(*(constructed_by(hint) for hint in hints.values()))


@cases(
    "value, text",
    (["NoSuchMessage", {}], "no message 'NoSuchMessage'"),
    (["WorkerSettings", {"properties": {}}], "no message 'WorkerSettings'"),
    ({"state": "RUNNING"}, "damaged: Expected `array`, got `object`"),
    (["StateReported", {"state": "ASLEEP"}], "StateReported is not valid: Invalid enum value"),
    (["StateReported", {}], "missing required field `state`"),
    (
        ["TopicUsed", {"topic": msgspec.msgpack.Ext(1, b"x")}],
        r"TopicUsed is not valid: Expected `str`, got `ext` - at `\$.topic`",
    ),
    (["TopicUsed", {"topic": "t"}, 3], "damaged"),
)
def test_bytes_that_are_not_a_message_are_refused_with_the_reason(value: object, text: str) -> None:
    """The reason is for the trace of the child that sent the bytes."""
    with pytest.raises(ChannelError, match=text):
        decode(bytes((VERSION,)) + msgspec.msgpack.encode(value))


@given(
    st.sampled_from(MESSAGES),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4),
    st.integers(0, 40),
)
def test_damaged_frames_are_refused_or_read(
    message: Message, changes: list[tuple[int, int]], cut: int
) -> None:
    """A damaged frame raises only ChannelError."""
    frame = encode(message)[FRAME_HEADER.size :]
    for position, value in changes:
        frame[position % len(frame)] = value
    try:
        found = decode(bytes(frame[: len(frame) - cut]))
    except ChannelError:
        return
    assert isinstance(found, get_args(Message))


@cases("frame", b"", b"\x01", b"\x03" + body(encode(Stop()))[1:])
def test_another_version_is_refused(frame: bytes) -> None:
    """A frame of another version is not decoded."""
    with pytest.raises(ChannelError, match=r"has version (none|01|03), expected 02"):
        decode(frame)


class Colour(StrEnum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


class Loud(str):
    """A text with a conversion of its own, like numpy's."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.upper()


class Share(float):
    pass


class Data(bytes):
    pass


class Count(int):
    pass


def test_subclasses_of_plain_types_arrive_as_plain_values() -> None:
    """Values of a plugin may be enums, subclasses of plain types and any mapping."""
    configs: Any = (
        MappingProxyType({Colour.RED: Loud("quiet")}),
        UserDict({Loud("key"): Colour.RED}),
        OrderedDict(a=None),
    )
    sent = TaskConfigs(
        request_id=Number.ONE,
        configs=configs,
        connector_config_changed=False,
        values_digest=Data(b"d"),
    )
    received = decode(body(encode(sent)))
    assert isinstance(received, TaskConfigs)
    assert received.configs == ({"red": "quiet"}, {"key": "red"}, {"a": None})
    texts = [text for config in received.configs for pair in config.items() for text in pair]
    kinds = {type(text) for text in texts}
    assert kinds == {str, NoneType}
    assert (type(received.request_id), type(received.values_digest)) == (int, bytes)
    figures = reports.StatsReported(request_id=Count(2), metrics={"g": {"n": Share(0.5)}})
    assert decode(body(encode(figures))) == figures


def test_a_lone_surrogate_arrives_as_its_escape() -> None:
    """A trace may quote a file name that is not UTF-8."""
    sent = StateReported(state=State.FAILED, trace="no file caf\udce9", version="1")
    expected = StateReported(state=State.FAILED, trace="no file caf\\udce9", version="1")
    assert decode(body(encode(sent))) == expected
    offsets = WriteOffsetsRequest(request_id=1, entries={b"\xff": None}, timeout_ms=1)
    assert decode(body(encode(offsets))) == offsets


def cyclic() -> Any:
    config: dict[str, Any] = {}
    config["self"] = config
    return config


@cases(
    "message, text",
    (StateReported(state=State.RUNNING, version=3), "Expected `str | null`, got `int`"),  # type: ignore[arg-type]
    (reports.TopicUsed(topic=object()), "builtins.object is not a type of any field"),  # type: ignore[arg-type]
    (reports.PluginDescribed(keys=({1: "x"},)), "Expected `str`, got `int`"),  # type: ignore[dict-item]
    (reports.PluginDescribed(keys=({"order": 2**80},)), "can't serialize ints"),
    (reports.PluginDescribed(keys=(cyclic(),)), "PluginDescribed cannot be sent: .*recursion"),
)
def test_a_wrong_value_of_a_plugin_is_an_error_of_its_sender(message: Message, text: str) -> None:
    """The sender gets the error and can report it; the worker process gets no bytes."""
    ours, theirs = socket.socketpair()
    connection = Channel(theirs)
    with pytest.raises(ChannelError, match=text):
        connection.send(message)
    connection.close()
    assert ours.recv(1) == b""
    ours.close()


def test_a_very_large_message_is_not_copied() -> None:
    """Encoding and decoding copy little, as offsets come by the hundred thousand."""
    entries = {b'["connector",{"p":"%d"}]' % n: b'{"position":%d}' % n for n in range(100_000)}
    message = OwnOffsets(entries=entries)
    tracemalloc.start()
    try:
        frame = encode(message)
        assert tracemalloc.get_traced_memory()[1] < 1.6 * len(frame)
        received = memoryview(frame)[FRAME_HEADER.size :]
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        found = decode(received)
        after, peak = tracemalloc.get_traced_memory()
        assert peak - after < 0.1 * (after - before)
    finally:
        tracemalloc.stop()
    assert found == message


def test_a_message_too_large_is_an_error_of_its_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message is not sent, as the worker process would kill the child."""
    ours, theirs = socket.socketpair()
    connection = Channel(theirs)
    monkeypatch.setattr("pyconnect_agent.channel.MAX_FRAME_BYTES", 1_000)
    with pytest.raises(ChannelError, match=r"StateReported cannot be sent: it has \d+ bytes"):
        connection.send(StateReported(state=State.FAILED, trace="x" * 1_000))
    connection.close()
    assert ours.recv(1) == b""
    ours.close()


def test_the_end_of_a_channel_is_known_on_both_sides() -> None:
    """A child notices the end also within a frame, and when it sends."""
    ours, theirs = socket.socketpair()
    connection = Channel(theirs)
    ours.sendall(encode(Stop()) + encode(TASK)[:30])
    ours.close()
    assert connection.receive() == Stop()
    assert connection.receive() is None
    connection.close()
    ours, theirs = socket.socketpair()
    connection = Channel(theirs)
    assert not connection.is_broken
    ours.close()
    with pytest.raises(OSError, match="pipe"):
        connection.send(Stop())
    assert connection.is_broken
    connection.close()
