"""Tasks whose methods are coroutines, and a task's own metrics."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from pyconnect_api import (
    BatchingSinkTask,
    ConnectException,
    PluginMetrics,
    SinkRecord,
    SinkTask,
    SourceRecord,
    SourceTask,
)
from pyconnect_api.coroutines import run_coroutines
from pyconnect_api.testing import SinkHarness, SourceHarness
from tests.support.cases import cases


class AsyncSource(SourceTask):
    """A source with a queue that belongs to the task's event loop."""

    async def start(self, props: Mapping[str, str]) -> None:  # type: ignore[override]
        self.queue: asyncio.Queue[int] = asyncio.Queue()
        self.loop = asyncio.get_running_loop()
        self.queue.put_nowait(7)

    async def poll(self) -> Sequence[SourceRecord]:  # type: ignore[override]
        assert asyncio.get_running_loop() is self.loop
        number = await self.queue.get()
        self.context.metrics.counter("numbers").increment()
        return [SourceRecord({"n": 0}, {"at": number}, "numbers", None, None, None, None, number)]


class AsyncSink(SinkTask):
    """A sink that keeps values; its `stop` is not a coroutine."""

    async def put(self, records: Sequence[SinkRecord]) -> None:  # type: ignore[override]
        self.loop = asyncio.get_running_loop()
        self.values = await asyncio.gather(*(self.stored(record) for record in records))

    async def stored(self, record: SinkRecord) -> object:
        return record.value

    def stop(self) -> None:
        self.open_at_stop = not self.loop.is_closed()


def test_coroutines_of_a_source_share_one_loop() -> None:
    """A client made in `start` can be used in `poll`, and the loop is closed at the end."""
    source = SourceHarness(AsyncSource, {})
    source.start()
    assert [record.value for record in source.poll()] == [7]
    assert source.context.metrics.values() == [("numbers-total", {}, 1)]
    task = source.task
    assert isinstance(task, AsyncSource)
    source.stop()
    assert task.loop.is_closed()


def test_a_put_that_is_a_coroutine_has_ended_when_the_batch_is_taken() -> None:
    """The harness waits for a coroutine `put`; methods that are not coroutines run as before."""
    sink = SinkHarness(AsyncSink, {})
    sink.start()
    sink.send("a")
    sink.send("b")
    sink.deliver()
    task = sink.task
    assert isinstance(task, AsyncSink)
    assert task.values == ["a", "b"]
    sink.stop()
    assert task.open_at_stop
    assert task.loop.is_closed()


class AsyncBatches(BatchingSinkTask):
    batch_records = 2

    async def write(self, records: Sequence[SinkRecord]) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        self.written = [record.value for record in records]


def test_a_batch_is_written_before_it_is_committed() -> None:
    """`write` of a batching task may be a coroutine."""
    sink = SinkHarness(AsyncBatches, {})
    sink.start()
    sink.send("a")
    sink.send("b")
    sink.deliver()
    task = sink.task
    assert isinstance(task, AsyncBatches)
    assert task.written == ["a", "b"]
    sink.stop()


@cases("name", "commit", "commit_record", "initialize", "version")
def test_a_coroutine_that_would_never_be_awaited_is_refused(name: str) -> None:
    """The methods that the worker calls without awaiting must not be coroutines."""

    async def ignored(*_: object) -> None: ...

    task_class = type("Task", (AsyncSource,), {name: ignored})
    with pytest.raises(ConnectException, match=f"write `def {name}`"):
        run_coroutines(task_class())


def test_a_metric_is_made_once_for_name_and_tags() -> None:
    """A counter that is requested again keeps its count."""
    metrics = PluginMetrics()
    metrics.counter("pages", {"status": "200"}).increment(2)
    metrics.counter("pages", {"status": "200"}).increment()
    metrics.counter("pages", {"status": "404"}).increment()
    metrics.gauge("open-files").set(3)
    assert metrics.values() == [
        ("pages-total", {"status": "200"}, 3),
        ("pages-total", {"status": "404"}, 1),
        ("open-files", {}, 3),
    ]


def test_wrong_names_of_metrics_are_refused() -> None:
    """A name that is not valid would break the exposition of all metrics."""
    metrics = PluginMetrics()
    for name, tags in (
        ("Pages", {}),
        ("pages_read", {}),
        ("ok", {"task": "1"}),
        ("ok", {"a-b": ""}),
    ):
        with pytest.raises(ConnectException, match="not a valid name"):
            metrics.gauge(name, tags)
    metrics.gauge("files-total")
    with pytest.raises(ConnectException, match="is a gauge"):
        metrics.counter("files")
    with pytest.raises(ValueError, match="-1"):
        metrics.counter("read").increment(-1)
