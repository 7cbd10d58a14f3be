"""Frames of several puts, and frames that were sent before an earlier one ended."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from pyconnect_agent.core.retry import RetryPolicy
from pyconnect_agent.java_processes.installation import find_installation
from pyconnect_agent.java_processes.launch import JavaOptions
from pyconnect_agent.java_processes.link import JavaLink, JavaRetriableError
from pyconnect_agent.java_processes.process import JavaProcess
from pyconnect_agent.tasks.in_java.sink_task import JavaSinkTask, compose_unconverted
from pyconnect_agent.tasks.records import Failure, Tolerance
from pyconnect_agent.tasks.sink.context import WorkerSinkTaskContext
from pyconnect_agent.tasks.sink.delivery import PutEnd
from pyconnect_agent.tasks.sink.pipeline import Intake
from pyconnect_api import ConnectException, SinkRecord, TopicPartition
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.fakes.fake_clients import FakeConsumer, FakeMessage
from tests.support.plugins.java_jars import test_connectors as compiled_connectors

pytestmark = pytest.mark.java

PLACE = TopicPartition("t", 0)
STRING = "org.apache.kafka.connect.storage.StringConverter"
HEADER = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
PUT_RECORDS = 2


class Sink:
    """A task of `NoteSink` in a Java process, and the notes of the task."""

    def __init__(self, jar: str, notes: Path, *, tolerates_all: bool) -> None:
        self.notes = notes
        self.failures: list[str] = []
        self.link = JavaLink(
            JavaProcess(find_installation({}), JavaOptions(heap="96m", quick=True)), {}
        )
        facts = self.link.begin(
            {
                "mode": "task",
                "connector": {"class": "io.pyconnect.tests.NoteSink", "jars": [jar]},
                "converters": {
                    "key": {"class": STRING, "config": {}},
                    "value": {"class": JSON, "config": {"schemas.enable": "false"}},
                    "header": {"class": HEADER, "config": {}},
                },
                "transforms": [],
                "toleratesAll": tolerates_all,
            }
        )
        self.task = JavaSinkTask(self.link, facts)
        self.task.put_records = PUT_RECORDS
        self.task.longest_ms = 60_000
        self.task.tolerance = Tolerance(
            tolerate_all=tolerates_all,
            policy=RetryPolicy(),
            reporters=(self,),
            stop_requested=threading.Event(),
        )
        context = WorkerSinkTaskContext(configs=dict, connector_paused=lambda: False, reporter=None)
        consumer = FakeConsumer()
        consumer.assigned.add(PLACE)
        context.connect(consumer)
        self.context = context
        self.convert = compose_unconverted(
            Intake(topic_used=None, is_assigned=consumer.is_assigned, check_error=lambda _: None)
        )
        self.task.initialize(context)
        self.task.start({"notes": str(notes)})
        self.task.open([PLACE])
        self.next_offset = 0

    def report(self, failure: Failure) -> Future[None] | None:
        message: Any = failure.record
        self.failures.append(f"{message.offset()} {failure.stage.value}")
        return None

    def begin(self, *values: str) -> tuple[Any, Any]:
        """Send a frame; return its records and the function that waits for its end."""
        messages = [
            FakeMessage("t", 0, self.next_offset + place, f'"{value}"'.encode())
            if value != "broken"
            else FakeMessage("t", 0, self.next_offset + place, b"{")
            for place, value in enumerate(values)
        ]
        self.next_offset += len(values)
        records, _ = self.convert(messages, {})
        return records, self.task.begin_put(records)

    def values(self) -> list[str]:
        lines = self.notes.read_text().splitlines()
        return [line.partition(" null=")[2] for line in lines if "=" in line]


@pytest.fixture(scope="module")
def jar(kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory) -> str:
    plugin_path = tmp_path_factory.mktemp("plugins")
    compiled_connectors(kafka_runtime, plugin_path)
    return str(plugin_path / "tests" / "tests.jar")


@pytest.fixture
def sink(jar: str, tmp_path: Path) -> Iterator[Sink]:
    made = Sink(jar, tmp_path / "notes", tolerates_all=False)
    yield made
    made.link.close()


def sizes(end: PutEnd) -> list[int]:
    return [size for size, _ in end.puts]


def test_frames_that_go_well(sink: Sink) -> None:
    """Records come in order, and a put has at most as many as one poll of Kafka's worker."""
    (_, first), (_, second) = sink.begin("a", "b", "c", "d", "e"), sink.begin("f")
    ends = first(), second()
    assert [(end.taken, sizes(end), end.stopped) for end in ends] == [
        (5, [2, 2, 1], False),
        (1, [1], False),
    ]
    assert sink.values() == ["a", "b", "c", "d", "e", "f"]


def test_put_that_is_to_be_repeated(sink: Sink) -> None:
    """Neither the rest of the frame nor the next frame is put before the repetition."""
    (records, first), (_, second) = sink.begin("a", "b", "c", "again", "e"), sink.begin("f")
    end = first()
    assert isinstance(end.error, JavaRetriableError)
    assert (end.taken, end.due, sizes(end), end.stopped) == (2, 2, [2], True)
    refused = second()
    assert (refused.taken, sizes(refused), refused.stopped) == (0, [], True)
    due: list[SinkRecord] = records[2:4]
    repeated = sink.task.begin_put(due)()
    assert (repeated.taken, sizes(repeated), repeated.stopped) == (2, [2], False)
    _, again = sink.begin("e", "f")
    assert again().taken == 2
    # The task had noted `c` before it threw.
    assert sink.values() == ["a", "b", "c", "c", "again", "e", "f"]


def test_part_of_a_put_that_is_to_be_repeated(sink: Sink) -> None:
    """The records of a revoked partition are not put again."""
    records, first = sink.begin("a", "again")
    assert first().due == 2
    assert sink.task.begin_put(records[1:])().taken == 1
    assert sink.values() == ["a", "again"]


def test_slow_puts(sink: Sink) -> None:
    """A frame ends with the put that exceeds its time; the rest and the next frame wait."""
    sink.task.longest_ms = 0
    (_, first), (_, second) = sink.begin("a", "b", "c"), sink.begin("d")
    ends = first(), second()
    assert [(end.taken, end.due, end.stopped) for end in ends] == [(2, 0, True), (0, 0, True)]
    assert sink.values() == ["a", "b"]


def test_frames_are_refused_again(sink: Sink) -> None:
    """Each early end refuses the following frame, however many were refused before."""
    sink.task.longest_ms = 0
    for _ in range(3):
        (_, first), (_, second) = sink.begin("a", "b", "c"), sink.begin("d")
        assert (first().taken, second().taken) == (2, 0)
    assert sink.values() == ["a", "b"] * 3


@pytest.mark.parametrize("deed", ["pause", "rewind"])
def test_task_that_goes_on_elsewhere(sink: Sink, deed: str) -> None:
    """A task that pauses or rewinds gets no record that was sent before the worker knew it."""
    (_, first), (_, second) = sink.begin("a", deed, "c"), sink.begin("d")
    assert (first().taken, second().taken) == (2, 0)
    assert sink.values() == ["a", deed]
    assert (sink.context.paused, sink.context.wants_offsets) == (
        ({PLACE}, False) if deed == "pause" else (set(), True)
    )


def test_failed_conversion_comes_in_its_turn(sink: Sink) -> None:
    """The puts before the failure count, and the following frame is refused."""
    (_, first), (_, second) = sink.begin("a", "b", "c", "broken", "e"), sink.begin("f")
    end = first()
    assert type(end.error) is ConnectException
    assert (end.taken, end.due, sizes(end), end.stopped) == (2, 0, [2], True)
    assert second().taken == 0
    assert sink.values() == ["a", "b"]
    assert sink.failures == ["3 VALUE_CONVERTER"]


def test_failed_conversions_are_skipped(jar: str, tmp_path: Path) -> None:
    """Each failure is reported once, even when its put is repeated."""
    sink = Sink(jar, tmp_path / "notes", tolerates_all=True)
    records, first = sink.begin("a", "broken", "again", "broken", "broken")
    end = first()
    assert (end.taken, end.due, sizes(end)) == (2, 2, [1])
    assert sink.failures == ["1 VALUE_CONVERTER", "3 VALUE_CONVERTER"]
    repeated = sink.task.begin_put(list(records[2:4]))()
    assert (repeated.taken, sizes(repeated)) == (2, [1])
    _, rest = sink.begin("broken")
    assert sizes(rest()) == [0]
    assert sink.values() == ["a", "again"]
    sink.link.close()
