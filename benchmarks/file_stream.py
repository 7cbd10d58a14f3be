"""FileStreamSource and FileStreamSink beside Apache's Java worker, in turn on one broker.

    scripts/benchmark file_stream [--lines N] [--runs N] [--only java|ours] [--set KEY=VALUE]

Each run has a topic and files of its own. A rate is counted from the first record (or output
byte) to be seen until the last, so a start of a JVM or of a process does not count. Java runs with
its own default JVM options and standalone; ours are the task processes a worker starts.
"""

import argparse
import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from pyconnect_agent.channel.requests import WorkerSettings
from pyconnect_agent.children.children import ChildProcesses
from pyconnect_agent.children.launch import Launcher
from pyconnect_agent.children.ports import ChildSettings
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_sandbox.connect_worker import JavaConnectWorker, WorkerLaunch
from pyconnect_sandbox.jars import find_runtime
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.fakes.children_world import MemoryOffsetStore, RecordingListener
from tests.support.names import unique_name
from tests.support.servers.kafka import Servers

LINE_BYTES = 99
POLL_S = 0.01
TIMEOUT_S = 300.0
STRING = "org.apache.kafka.connect.storage.StringConverter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The figures of a run: `rate` in records/s, `cpu_us` per record, `rss_mb` at rest."""

    rate: float
    cpu_us: float
    rss_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The surroundings of all runs; every connector gets `settings`."""

    runtime: KafkaRuntime
    bootstrap_servers: str
    directory: Path
    lines_file: Path
    lines: int
    settings: Mapping[str, str]

    def worker_properties(self, directory: Path) -> dict[str, str]:
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "key.converter": STRING,
            "value.converter": STRING,
            "offset.storage.file.filename": str(directory / "offsets"),
            "offset.flush.interval.ms": "5000",
        }

    def source(self, topic: str) -> dict[str, str]:
        return {
            "name": unique_name("source"),
            "connector.class": "FileStreamSource",
            "tasks.max": "1",
            "file": str(self.lines_file),
            "topic": topic,
            **self.settings,
        }

    def sink(self, topic: str, output: Path) -> dict[str, str]:
        return {
            "name": unique_name("sink"),
            "connector.class": "FileStreamSink",
            "tasks.max": "1",
            "file": str(output),
            "topics": topic,
            **self.settings,
        }

    def new_topic(self) -> str:
        name = unique_name("bench")
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        for future in admin.create_topics([NewTopic(name, 1, 1)]).values():
            future.result()
        return name


class Meter:
    """A count that is watched from its first value above zero to `target`."""

    def __init__(self, count: Callable[[], int], target: int) -> None:
        self._count = count
        self._target = target
        self._started: tuple[float, int] | None = None
        self.rate = 0.0

    def done(self) -> bool:
        count, now = self._count(), time.monotonic()
        if self._started is None:
            if count > 0:
                self._started = (now, count)
            return False
        if count < self._target:
            return False
        since, first = self._started
        self.rate = (self._target - first) / max(now - since, 1e-9)
        return True


@contextlib.contextmanager
def topic_meter(bench: Bench, topic: str) -> Iterator[Meter]:
    consumer = Consumer({"bootstrap.servers": bench.bootstrap_servers, "group.id": "meter"})

    def end() -> int:
        with contextlib.suppress(KafkaException):
            return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=5)[1])
        return 0

    try:
        yield Meter(end, bench.lines)
    finally:
        consumer.close()


def file_meter(bench: Bench, output: Path) -> Meter:
    target = bench.lines * LINE_BYTES

    def lines() -> int:
        return output.stat().st_size // LINE_BYTES if output.exists() else 0

    return Meter(lines, target // LINE_BYTES)


def run_java(bench: Bench, config: Mapping[str, str], meter: Meter) -> Result:
    directory = bench.directory / unique_name("java")
    worker = JavaConnectWorker(
        bench.runtime,
        WorkerLaunch(
            directory=directory,
            properties=bench.worker_properties(directory),
            connectors=(config,),
            hold_file=bench.directory / "java.hold",
        ),
        heap_mb=1024,
        jvm_options=(),
    )
    worker.start()
    try:
        deadline = time.monotonic() + TIMEOUT_S
        while not meter.done():
            if time.monotonic() > deadline:
                raise TimeoutError(f"Java worker: see {directory}")
            time.sleep(POLL_S)
        return _result(bench, psutil.Process(worker.identity.pid), meter)
    finally:
        worker.stop()


def run_ours(bench: Bench, config: Mapping[str, str], meter: Meter) -> Result:
    return asyncio.run(_run_ours(bench, config, meter))


async def _run_ours(bench: Bench, config: Mapping[str, str], meter: Meter) -> Result:
    listener, task_id = RecordingListener(), ConnectorTaskId(config["name"], 0)
    settings = ChildSettings(
        worker=WorkerSettings(
            properties=bench.worker_properties(bench.directory), levels={"root": "WARN"}
        )
    )
    children = ChildProcesses(settings, MemoryOffsetStore(), launcher=Launcher())
    children.connect(listener)
    await children.start()
    try:
        children.connectors.start(task_id.connector, config, TargetState.STARTED)
        while not listener.connector_states(task_id.connector):  # noqa: ASYNC110  a recording
            await asyncio.sleep(POLL_S)
        generated = await children.connectors.generate_task_configs(task_id.connector, config, None)
        children.tasks.start(task_id, config, generated.configs[0], TargetState.STARTED)
        deadline = time.monotonic() + TIMEOUT_S
        while not await asyncio.to_thread(meter.done):
            failed = State.FAILED in listener.task_states(task_id)
            if failed or time.monotonic() > deadline:
                raise TimeoutError(listener.task_trace(task_id))
            await asyncio.sleep(POLL_S)
        await asyncio.sleep(2)
        (pid,) = [c.pid for c in await children.child_details() if c.task is not None]
        assert pid is not None
        return _result(bench, psutil.Process(pid), meter)
    finally:
        await children.stop()


def _result(bench: Bench, process: psutil.Process, meter: Meter) -> Result:
    cpu = process.cpu_times()
    return Result(
        rate=meter.rate,
        cpu_us=(cpu.user + cpu.system) / bench.lines * 1e6,
        rss_mb=process.memory_info().rss / 1e6,
    )


Runner = Callable[[Bench, Mapping[str, str], Meter], Result]
RUNNERS: Mapping[str, Runner] = {"java": run_java, "ours": run_ours}


def measure(bench: Bench, runner: Runner) -> tuple[Result, Result]:
    """Measure a source into a new topic, then a sink out of it."""
    topic = bench.new_topic()
    with topic_meter(bench, topic) as meter:
        source = runner(bench, bench.source(topic), meter)
    output = bench.directory / unique_name("out")
    sink = runner(bench, bench.sink(topic, output), file_meter(bench, output))
    if output.read_bytes() != bench.lines_file.read_bytes():
        raise AssertionError("the output is not the input")
    output.unlink()
    return source, sink


def write_lines(path: Path, lines: int) -> None:
    with path.open("wb") as out:
        for number in range(lines):
            out.write(b"%010d %s\n" % (number, b"x" * (LINE_BYTES - 12)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", choices=sorted(RUNNERS))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    names = [options.only] if options.only else list(RUNNERS)
    runtime = find_runtime()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        with contextlib.closing(Servers(runtime, directory)) as servers:
            broker = servers.broker()
            bench = Bench(
                runtime=runtime,
                bootstrap_servers=broker.bootstrap_servers,
                directory=directory,
                lines_file=directory / "lines",
                lines=options.lines,
                settings=dict(setting.split("=", 1) for setting in options.set),
            )
            write_lines(bench.lines_file, bench.lines)
            results: dict[str, list[tuple[Result, Result]]] = {name: [] for name in names}
            for run in range(options.runs):
                for name in names:
                    results[name].append(measure(bench, RUNNERS[name]))
                    source, sink = results[name][-1]
                    print(f"run {run + 1} {name}: source {_text(source)}; sink {_text(sink)}")
    print_table(results)


def _text(result: Result) -> str:
    return f"{result.rate / 1000:.0f} k/s {result.cpu_us:.2f} us CPU/record {result.rss_mb:.0f} MB"


def print_table(results: Mapping[str, list[tuple[Result, Result]]]) -> None:
    print(f"\n| {'':6} | {'':4} | k records/s | CPU us/record | RSS MB |")
    medians: dict[tuple[str, str], float] = {}
    for index, kind in enumerate(("source", "sink")):
        for name, runs in results.items():
            chosen = [pair[index] for pair in runs]
            rate = statistics.median(result.rate for result in chosen)
            medians[kind, name] = rate
            cpu = statistics.median(result.cpu_us for result in chosen)
            rss = statistics.median(result.rss_mb for result in chosen)
            print(f"| {kind:6} | {name:4} | {rate / 1000:11.0f} | {cpu:13.2f} | {rss:6.0f} |")
    for kind in ("source", "sink"):
        if (kind, "java") in medians and (kind, "ours") in medians:
            print(f"{kind}: ours / java = {medians[kind, 'ours'] / medians[kind, 'java']:.2f}")
