"""Promises of Kafka's worker to the code of plugins, asked of a Java process without a worker."""

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import psutil
import pytest

from pyconnect_agent.core.offsets.source import offset_value
from pyconnect_agent.core.retry import RetryPolicy
from pyconnect_agent.java_processes.frames import (
    FrameKind,
    JavaSourceRecords,
    decode_source,
    json_bytes,
)
from pyconnect_agent.java_processes.installation import find_installation
from pyconnect_agent.java_processes.launch import JavaOptions, remove_leftovers
from pyconnect_agent.java_processes.link import Answer, JavaFailure, JavaLink
from pyconnect_agent.java_processes.process import JavaProcess
from pyconnect_agent.tasks.in_java.sink_task import JavaSinkTask, compose_unconverted
from pyconnect_agent.tasks.records import Failure, Tolerance
from pyconnect_agent.tasks.sink.context import WorkerSinkTaskContext
from pyconnect_agent.tasks.sink.dead_letters import ErrantRecords
from pyconnect_agent.tasks.sink.delivery import PutEnd
from pyconnect_agent.tasks.sink.pipeline import Intake
from pyconnect_api import DataException, RetriableException, TopicPartition
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.java_sources import compiled
from tests.support.eventually import eventually
from tests.support.fakes.fake_clients import FakeConsumer, FakeMessage

pytestmark = pytest.mark.java

WAIT_S = 150
PLACE = TopicPartition("t", 0)


class World:
    """The Java process of one test; its connectors and its other plugins have a location each."""

    def __init__(self, connectors: Path, plugins: Path, directory: Path) -> None:
        self._connectors = [f"{connectors}/"]
        self._plugins = [f"{plugins}/"]
        self.directory = directory
        self.answers: dict[str, Answer] = {}
        options = JavaOptions(heap="96m", quick=True)
        self.link = JavaLink(JavaProcess(find_installation({}), options), self.answers)

    def begin(self, connector: str, **job: Any) -> Any:
        text = self.plugin("Text", config={**self.config, "converter.type": "header"})
        return self.link.begin(
            {
                "mode": "task",
                "connector": {"class": f"told.{connector}", "jars": self._connectors},
                "converters": {"key": text, "value": text, "header": text},
                "transforms": [],
                **job,
            }
        )

    def plugin(self, name: str, **more: Any) -> Mapping[str, Any]:
        return {"class": f"told.{name}", "jars": self._plugins, "config": self.config, **more}

    def source(self, deed: str, **job: Any) -> None:
        self.begin("Source", **job)
        self.link.call("start", config={**self.config, "deed": deed})

    def poll(self, times: int = 1) -> None:
        for _ in range(times):
            self.link.tell(FrameKind.CREDIT)

    def polled(self) -> JavaSourceRecords:
        payload = self.link.batches.get(timeout=WAIT_S)
        assert payload is not None
        return JavaSourceRecords.of(decode_source(payload))

    def tell(self, method: str) -> None:
        self.link.tell(FrameKind.CALL, json_bytes({"method": method}))

    def stop(self) -> Future[Any]:
        return self.link.send(FrameKind.CALL, json_bytes({"method": "stop"}))

    def go(self) -> None:
        (self.directory / "go").touch()

    @property
    def config(self) -> Mapping[str, str]:
        return {"notes": str(self.directory / "notes")}

    def notes(self) -> list[str]:
        file = self.directory / "notes"
        return file.read_text().splitlines() if file.exists() else []

    def noted(self, *first_words: str) -> list[str]:
        return [note for note in self.notes() if note.split()[0] in first_words]

    def await_note(self, note: str) -> None:
        eventually(lambda: note in self.notes(), WAIT_S, self.notes)


@pytest.fixture(scope="module")
def locations(
    kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    directory = tmp_path_factory.mktemp("locations")
    sources = {
        f"told.{file.stem}": file.read_text() for file in Path(__file__).parent.glob("*.java")
    }
    connectors = compiled(kafka_runtime, sources, directory / "connectors")
    return connectors, shutil.copytree(connectors, directory / "plugins")


@pytest.fixture
def world(locations: tuple[Path, Path], tmp_path: Path) -> Iterator[World]:
    made = World(*locations, tmp_path)
    yield made
    made.link.close()


def test_the_last_commit_comes_before_the_stop(world: World) -> None:
    """The host stops a task only after its last commit, which another thread runs, has ended."""
    world.source("commit slowly")
    world.tell("commit")
    world.stop().result(WAIT_S)
    assert world.noted("commit", "stop") == ["commit", "stop"]


@pytest.mark.parametrize("exactly_once", [True, False])
def test_errors_of_notifications_end_nothing(world: World, *, exactly_once: bool) -> None:
    """The host logs any Throwable of `commit` and `commitRecord`, and goes on."""
    world.source("throw errors", exactlyOnce=exactly_once)
    for number in range(2):
        world.poll()
        assert world.polled().numbers == range(number, number + 1)
        world.link.tell(FrameKind.ACKS, json_bytes({"results": [[number]]}))
        world.tell("commit")
        eventually(lambda: world.noted("commit") == ["commit"] * (number + 1), WAIT_S)  # noqa: B023
    assert world.noted("commitRecord") == ["commitRecord"] * 2


def test_a_task_that_takes_results_slowly_is_not_polled_meanwhile(world: World) -> None:
    """The host polls again once the task has taken its results: else they would fill the heap."""
    world.source("take results slowly")
    world.poll()
    world.polled()
    results = [[number] for number in range(10_001)]
    world.link.tell(FrameKind.ACKS, json_bytes({"results": results}))
    world.poll()
    world.polled()
    assert world.noted("poll", "commitRecord") == ["poll", "commitRecord", "poll"]


def test_metadata_of_a_record_has_the_sizes_of_its_key_and_value(world: World) -> None:
    """`RecordMetadata` has the serialized sizes of key and value, and -1 for a null key."""
    world.source("note sizes")
    world.poll()
    ((key, value),) = [(record.key, record.value) for record in world.polled()]
    world.link.tell(FrameKind.ACKS, json_bytes({"results": [[0, "t", 0, 5, 7]]}))
    world.await_note(f"sizes {-1 if key is None else len(key)} {len(value)}")


def test_an_error_that_only_wraps_another_is_shown_with_that_one(world: World) -> None:
    """The failure shows the cause of an error without a message, as of a static initializer."""
    with pytest.raises(JavaFailure, match="no library of this name") as raised:
        world.begin("Bad")
    assert "IllegalStateException: no library of this name" in str(raised.value)


def test_numbers_of_mbeans_are_read_without_a_port(world: World) -> None:
    """The host reads a plugin's MBeans within the process; a map gives a number for each entry."""
    world.source("show beans")
    found = {(name, tuple(label.values())): value for *_, name, label, value in world.link.mbeans()}
    assert found == {("Behind", ()): 17, ("Connected", ()): 1, ("Rows", ("shop.orders",)): 3}
    domain, keys, *_ = world.link.mbeans()[0]
    assert domain == "told.source"
    assert keys == {"type": "task-metrics", "server": "a,b=c", "context": "streaming"}


def test_temporary_files_end_with_the_process(
    locations: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Temporary files go even if the Java process is killed together with its parent."""
    base = tmp_path / "temporary"
    base.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(base))
    for end in ("close", "kill", "kill both"):
        world = World(*locations, tmp_path)
        world.source("leave files")
        (directory,) = base.iterdir()
        assert [file.name[:5] for file in directory.iterdir()] == ["told-"]
        if end == "close":
            world.link.close()
        elif end == "kill":
            psutil.Process(world.link._process.pid).kill()
            eventually(lambda: not list(base.iterdir()), WAIT_S)
        else:
            # Stands for the end of this process, at which the kernel closes the descriptor.
            os.close(world.link._process._temporary.descriptor)
            world.link._process._temporary.descriptor = -1
            remove_leftovers(base)
            assert directory.exists()
            world.link.close()
            remove_leftovers(base)
        assert list(base.iterdir()) == []
        world.link.close()


def test_plugins_are_closed_after_a_stop_that_fails(world: World) -> None:
    """The host closes every plugin even if `stop` or the close of a transformation fails."""
    stage = world.plugin("Change", predicate=world.plugin("Always"))
    world.source("throw errors", transforms=[stage])
    assert "thrown by stop" in world.stop().result(WAIT_S)["error"]["trace"]
    assert world.notes()[-4:] == ["Always closed", *["Text closed"] * 3]


def test_nothing_is_polled_after_a_stop(world: World) -> None:
    """The host drops the polls that are already requested when `stop` is called."""
    world.source("poll slowly")
    world.poll(2)
    world.await_note("poll")
    stopped = world.stop()
    world.go()
    stopped.result(WAIT_S)
    assert world.noted("poll", "stop") == ["poll", "stop"]


def test_nothing_is_polled_after_a_failure(world: World) -> None:
    world.source("fail")
    world.poll(2)
    assert "thrown by poll" in world.polled().batch.facts["error"]["message"]
    world.stop().result(WAIT_S)
    assert world.noted("poll") == ["poll"]


def test_a_failure_that_cannot_be_reported_ends_the_process(world: World) -> None:
    """The process ends if it cannot report a failure; else the task would wait forever."""
    world.source("fail without a message")
    world.poll()
    assert world.link.batches.get(timeout=WAIT_S) is None
    assert "thrown by getMessage" in str(world.link.ended())


def test_polls_are_repeated_after_kafkas_own_errors(world: World) -> None:
    """A poll that fails with a retriable error of Kafka's clients is repeated."""
    world.source("time out")
    for _ in range(2):
        world.poll()
        assert world.polled().batch.facts["error"]["kind"] == "retriable"


def test_a_failed_poll_may_request_a_commit(world: World) -> None:
    """A commit requested by a failing poll covers the records of earlier polls alone."""
    world.source("commit and fail", exactlyOnce=True, boundaries=True)
    world.poll()
    assert world.polled().batch.facts["commit"] is True


def test_a_boundary_is_found_by_an_equal_record(world: World) -> None:
    world.source("commit a copy", exactlyOnce=True, boundaries=True)
    world.poll()
    assert world.polled().batch.facts["commitsAfter"] == [0]


def test_an_offset_that_cannot_be_stored(world: World) -> None:
    """Without exactly-once, an unsupported offset is refused only when it is stored."""
    world.source("store a date")
    world.poll()
    with pytest.raises(DataException, match="field at contains class java"):
        offset_value(world.polled()[0].source_offset)


def test_an_offset_that_cannot_be_stored_exactly_once(world: World) -> None:
    """With exactly-once, an unsupported offset fails the task: it cannot be committed."""
    world.source("store a date", exactlyOnce=True)
    world.poll()
    message = world.polled().batch.facts["error"]["message"]
    assert "field at contains class java.util.Date" in message


def test_null_records_are_left_out(world: World) -> None:
    world.source("return null")
    world.poll()
    assert world.polled().batch.values == [b"value"]


def test_a_failed_record_is_shown_as_kafkas_worker_logs_it(world: World) -> None:
    world.source("make it bad", showsRecords=True, toleratesAll=True)
    world.poll()
    (failure,) = world.polled().batch.facts["failures"]
    assert failure["stage"] == "VALUE_CONVERTER"
    assert failure["record"].startswith("SourceRecord{sourcePartition={a=1}, sourceOffset={b=2}}")
    assert "value=bad" in failure["record"]


def test_each_plugin_is_called_with_its_loader(world: World) -> None:
    """Each plugin runs with its own class loader, even outside the connector's location."""
    stage = world.plugin("Change", predicate=world.plugin("Always"))
    world.source("", transforms=[stage])
    world.poll()
    world.polled()
    expected = ["Always", "Change", "Text", "Text"]
    assert world.notes()[-4:] == [f"{name} with its loader" for name in expected]


def test_plugins_get_metrics(world: World) -> None:
    """Each plugin that implements Monitorable gets metrics after it is configured (KIP-877)."""
    stage = world.plugin("Change", predicate=world.plugin("Always"))
    world.begin("Source", transforms=[stage])
    found = [note for note in world.notes() if "metrics" in note]
    expected = ["Text"] * 3 + ["Change", "Always"]
    assert found == [f"{name} with metrics true" for name in expected]


class Consumed:
    """A sink task that has started, with the failures that it reports."""

    def __init__(self, world: World, *, tolerates_all: bool = True, **job: Any) -> None:
        facts = world.begin("Sink", toleratesAll=tolerates_all, **job)
        self.task = JavaSinkTask(world.link, facts)
        world.answers |= self.task.answers
        self.task.put_records = 1
        # Else a slow machine would end a frame before its last record.
        self.task.longest_ms = 60_000
        self.failures: list[Failure] = []
        self.task.tolerance = Tolerance(
            tolerate_all=tolerates_all,
            policy=RetryPolicy(),
            reporters=(self,),
            stop_requested=threading.Event(),
        )
        context = WorkerSinkTaskContext(
            configs=dict,
            connector_paused=lambda: False,
            reporter=ErrantRecords(self.task.tolerance, None),
        )
        consumer = FakeConsumer()
        consumer.assigned.add(PLACE)
        context.connect(consumer)
        self._convert = compose_unconverted(
            Intake(topic_used=None, is_assigned=consumer.is_assigned, check_error=lambda _: None)
        )
        self.context = context
        self.task.initialize(context)
        self.task.start(world.config)
        self.task.open([PLACE])
        self._next_offset = 0

    def report(self, failure: Failure) -> Future[None] | None:
        self.failures.append(failure)
        return None

    def begin(self, *values: str) -> Callable[[], PutEnd]:
        start = self._next_offset
        self._next_offset += len(values)
        messages = [
            FakeMessage("t", 0, offset, value.encode())
            for offset, value in enumerate(values, start)
        ]
        records, _ = self._convert(messages, {})
        return self.task.begin_put(records)


def test_puts_are_not_repeated_after_kafkas_own_errors(world: World) -> None:
    """The host repeats a put only after a RetriableException of Connect, as Kafka's worker does."""
    end = Consumed(world).begin("time out")()
    assert isinstance(end.error, JavaFailure)
    assert not isinstance(end.error, RetriableException)


def test_nothing_is_put_after_an_error_of_a_converter(world: World) -> None:
    """After a Java Error of a converter, which cannot be tolerated, nothing more is put."""
    sink = Consumed(world)
    first, second = sink.begin("a", "broken"), sink.begin("b")
    end = first()
    assert "thrown by toConnectData" in str(end.error)
    assert (end.taken, second().taken) == (1, 0)
    assert world.noted("put") == ["put a"]


def test_a_report_cannot_be_cancelled(world: World) -> None:
    """The future of a report refuses `cancel`, as that of Kafka's worker does."""
    assert Consumed(world, reportsErrors=True).begin("errant")().error is None
    assert world.noted("report:") == ["report: Reporting an errant record cannot be cancelled."]


def test_nothing_is_put_after_a_report_that_was_refused(world: World) -> None:
    """After a refused report nothing more is put, even if the task catches the exception."""
    sink = Consumed(world, tolerates_all=False, reportsErrors=True)
    first, second = sink.begin("errant", "a"), sink.begin("b")
    assert (first().taken, second().taken) == (1, 0)
    assert world.noted("put", "refused:") == [
        "put errant",
        "refused: Tolerance exceeded in error handler",
    ]


def test_an_interrupt_ends_only_the_wait_before_a_repetition(world: World) -> None:
    """An interrupt of the task's thread shortens only the wait before a repetition."""
    sink = Consumed(world, retryTimeoutMs=-1, retryDelayMaxMs=60_000)
    assert sink.begin("interrupt")().error is None
    assert (world.noted("put"), sink.failures) == (["put interrupt"], [])


def test_no_offsets_of_a_commit_are_a_mistake(world: World) -> None:
    """A null returned by `preCommit` is None, not an empty map, and fails the task later."""
    assert Consumed(world).task.pre_commit({PLACE: 1}) is None


def test_a_commit_is_requested_before_the_call_ends(world: World) -> None:
    """A commit requested within `preCommit` is known before the call returns."""
    sink = Consumed(world)
    sink.task.pre_commit({PLACE: 1})
    assert sink.context.commit_requested.is_set()


def test_partitions_that_could_not_be_opened_are_not_assigned(world: World) -> None:
    """Partitions whose `open` failed are not in the assignment: another task may have them."""
    sink = Consumed(world)
    with pytest.raises(RetriableException):
        sink.task.open([TopicPartition("fails", 0)])
    sink.task.open([TopicPartition("u", 0)])
    first, failed, last = world.noted("open")
    assert (first, last.count("fails")) == ("open of [t-0]", 0)
    assert "fails-0" in failed


def test_reports_are_about_the_consumed_record(world: World) -> None:
    """A report has the consumed record, even if a transformation has made another one of it."""
    sink = Consumed(world, transforms=[world.plugin("Change")], reportsErrors=True)
    assert sink.begin("errant")().error is None
    (failure,) = sink.failures
    record: Any = failure.record
    assert (record.original_topic, record.consumed.topic()) == ("t", "t")
    assert record.consumed.value() == b"errant"
    assert failure.class_name == "org.apache.kafka.connect.sink.SinkTask"
    # The exception has no message.
    assert str(failure.error) == ""
