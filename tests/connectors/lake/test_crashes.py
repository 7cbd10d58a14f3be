"""LakeSink's files under failures: each row is in one file after any of them."""

import json
from typing import Any, ClassVar

from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from pyconnect_api import ConnectException, RetriableException, Struct
from pyconnect_api.testing import RecordingReporter, SinkHarness
from pyconnect_connectors.connectors import Attempts
from pyconnect_connectors.lake.file_target import FileTarget
from pyconnect_connectors.lake.settings import SinkSettings
from pyconnect_connectors.lake.sink import LakeSinkTask
from pyconnect_connectors.lake.storage import HIDDEN_DIR, Storage
from tests.connectors.lake.rows import ROW, send
from tests.support.cases import cases

ROWS = 60


class Died(BaseException):
    """The death of the process."""


class FailingStorage(Storage):
    """Storage that fails at a given call, before or after the call takes effect."""

    def __init__(self) -> None:
        super().__init__(MemoryStore(), None)
        self.calls_left: int | None = None
        self.after = False
        self.error: BaseException = Died()

    def fail(self, calls: int, *, after: bool, dies: bool) -> None:
        self.calls_left, self.after = calls, after
        self.error = Died() if dies else RetriableException("the storage does not answer")

    def _called(self, name: str, *arguments: Any) -> Any:
        call = getattr(super(), name)
        if self.calls_left is None or self.calls_left > 0:
            if self.calls_left is not None:
                self.calls_left -= 1
            return call(*arguments)
        self.calls_left = None
        if self.after:
            call(*arguments)
        raise self.error

    def create(self, path: str, data: Any) -> bool:
        return bool(self._called("create", path, data))

    def read(self, path: str) -> bytes:
        return bytes(self._called("read", path))

    def exists(self, path: str) -> bool:
        return bool(self._called("exists", path))

    def files(self, prefix: str) -> Any:
        return self._called("files", prefix)

    def delete(self, path: str) -> None:
        self._called("delete", path)


class Task(LakeSinkTask):
    """A task with a storage that tests share, and with a clock that they set."""

    storage: ClassVar[FailingStorage]
    now_ms: ClassVar[int]

    def start(self, props: Any) -> None:
        self._settings = SinkSettings.parse(props)
        self._target = FileTarget(self._settings, self.storage, lambda: self.now_ms)
        self._attempts = Attempts("writing failed and is repeated", self._settings.location)


ACTIONS = st.one_of(
    st.tuples(st.just("deliver"), st.integers(0, 1), st.integers(1, 9)),
    st.tuples(st.just("commit"), st.integers(0, 1), st.just(0)),
    st.tuples(st.just("crash"), st.integers(0, 1), st.just(0)),
    st.tuples(st.just("restart"), st.integers(0, 1), st.just(0)),
    st.tuples(st.just("tick"), st.integers(0, 1), st.integers(1, 50)),
    st.tuples(st.just("fail before"), st.integers(0, 1), st.integers(0, 4)),
    st.tuples(st.just("fail after"), st.integers(0, 1), st.integers(0, 4)),
)
CONFIGS = st.fixed_dictionaries(
    {
        "flush.size": st.sampled_from(["2", "7", "1000"]),
        "partitioner.class": st.sampled_from(["default", "field", "time"]),
        "rotate.interval.ms": st.sampled_from(["-1", "5000"]),
        "rotate.schedule.interval.ms": st.sampled_from(["-1", "20"]),
        "path.format": st.just("HH'h'mm"),
        "partition.duration.ms": st.just("60000"),
        "partition.field.name": st.just("city"),
    }
)


@settings(max_examples=150, deadline=None)
@given(
    config=CONFIGS,
    actions=st.lists(ACTIONS, max_size=40),
    bad=st.sets(st.integers(0, ROWS - 1), max_size=5),
)
def test_each_row_is_in_one_file(
    config: dict[str, str], actions: list[tuple[str, int, int]], bad: set[int]
) -> None:
    """Each row is in one file although two tasks have one partition and fail anywhere.

    The tasks report records that cannot be written, and no other ones.
    """
    storage, Task.now_ms = FailingStorage(), 0
    Task.storage = storage
    props = {
        "name": "to-lake",
        "lake.url": "/lake",
        "format.class": "json",
        "max.retries": "1000000",
        "retry.backoff.ms": "0",
        **config,
    }
    reporter = RecordingReporter()
    tasks = [SinkHarness(Task, props, reporter=reporter) for _ in range(2)]
    for task in tasks:
        task.start()
        for number in range(ROWS):
            if number in bad:
                value = Struct.of_checked(ROW, [number, "\ud800"])
                task.send(value, value_schema=ROW, timestamp=1_700_000_000_000)
            else:
                send(task, [number])
    for action, index, number in actions:
        act(storage, tasks[index], action, number)
        assert_no_row_twice(storage)
    storage.calls_left = None
    last = tasks[0]
    last.crash()
    for _ in range(ROWS):
        last.deliver()
    last.stop()
    assert sorted(rows_of(storage)) == [n for n in range(ROWS) if n not in bad]
    assert {record.kafka_offset for record, _ in reporter.reports} == bad


@cases("calls", 0, 1, 2)
@cases("after", False, True)
def test_a_write_of_unknown_outcome_is_repeated(calls: int, after: bool) -> None:
    """A write with an unknown outcome is repeated: the task finds its own commit and files."""
    storage, Task.now_ms = FailingStorage(), 0
    Task.storage = storage
    props = {"name": "to-lake", "lake.url": "/lake", "format.class": "json", "flush.size": "2"}
    settings = {"partitioner.class": "field", "partition.field.name": "city"}
    sink = SinkHarness(Task, {**props, **settings, "retry.backoff.ms": "0"})
    sink.start()
    send(sink, range(4))
    storage.fail(calls, after=after, dies=False)
    assert sink.deliver() == []
    sink.deliver()
    sink.stop()
    assert sorted(rows_of(storage)) == [0, 1, 2, 3]


def act(storage: FailingStorage, task: SinkHarness, action: str, number: int) -> None:
    try:
        match action:
            case "deliver":
                task.deliver(number)
            case "commit":
                task.commit()
            case "crash":
                task.crash()
            case "restart":
                task.restart()
            case "tick":
                Task.now_ms += number
            case "fail before":
                storage.fail(number, after=False, dies=number % 2 == 0)
            case _:
                storage.fail(number, after=True, dies=number % 2 == 0)
    except (ConnectException, Died):
        storage.calls_left = None
        task.crash()


def rows_of(storage: FailingStorage) -> list[int]:
    paths = [f.path for f in Storage.files(storage, "topics") if HIDDEN_DIR not in f.path]
    contents = [Storage.read(storage, path) for path in paths]
    return [json.loads(line)["id"] for content in contents for line in content.splitlines()]


def assert_no_row_twice(storage: FailingStorage) -> None:
    found = rows_of(storage)
    assert len(found) == len(set(found))
