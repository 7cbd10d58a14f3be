"""Connectors on a warm pyconnect worker and the same on a warm Java worker, on one broker.

    scripts/benchmark beside_java [--lines N] [--runs N] [--case TEXT] [--busy] [--jars]
                                  [--location]

Both workers stay up. Each worker runs a case once without being measured, then `--runs` times; the
workers take turns in going first. A run has a connector and a topic or file of its own. A rate is
counted from the first records that arrive, committed or not, until the last one is committed. The
ratio is that of two runs that follow each other: the median, the lowest and the highest. With
`--busy` another process uses a processor all the time. Java has the options of Kafka's own start
script. With `--jars` the pyconnect worker runs Apache's connectors, from the jar that the Java
worker has, instead of its own. With `--location` the tasks of the pyconnect worker share a process.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from confluent_kafka import Consumer, TopicPartition

from benchmarks.file_stream import LINE_BYTES, POLL_S, Bench, find_runtime, write_lines
from tests.support.agents.rest_client import call_url
from tests.support.names import unique_name
from tests.support.plugins.java_jars import file_connectors
from tests.support.servers.kafka import Servers

TIMEOUT_S = 600.0
STRING = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {"key.converter": STRING, "value.converter": STRING}
JSON_VALUES = {"value.converter": JSON, "value.converter.schemas.enable": "true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A case to measure.

    `exactly_once` is a setting of the workers' source connectors; sinks do not depend on it.
    `sources` connectors read the lines at the same time, each into a topic of its own.
    """

    title: str
    is_source: bool = True
    sources: int = 1
    exactly_once: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)


CASES = (
    Case(title="source, poll"),
    Case(title="source, batch.size=10000", settings={"batch.size": "10000"}),
    Case(
        title="source, interval 1 s",
        settings={"transaction.boundary": "interval", "transaction.boundary.interval.ms": "1000"},
    ),
    Case(title="source, JSON with schemas", settings=JSON_VALUES),
    Case(title="four sources at once", sources=4),
    Case(title="sink", is_source=False),
    Case(title="sink, JSON with schemas", is_source=False, settings=JSON_VALUES),
    Case(title="source, at-least-once", exactly_once=False),
)


class Runner(Protocol):
    """Runs a connector's config until the context ends."""

    def running(self, config: Mapping[str, str]) -> contextlib.AbstractContextManager[None]: ...


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker's REST interface."""

    url: str

    @contextlib.contextmanager
    def running(self, config: Mapping[str, str]) -> Iterator[None]:
        """Run a connector until the context ends."""
        name = config["name"]
        path, kind = f"/connectors/{name}", {"Content-Type": "application/json"}
        answer = call_url(self.url, "PUT", f"{path}/config", json.dumps(dict(config)), kind)
        if answer.status != 201:
            raise RuntimeError(answer.text)
        try:
            yield
        finally:
            call_url(self.url, "DELETE", path, None, {})


def counted_rate(arrived: Callable[[], int], committed: Callable[[], int], target: int) -> float:
    """Return records/s, counted from the first arrived records until `target` are committed."""
    deadline_s = time.monotonic() + TIMEOUT_S
    first = wait_for(arrived, 1, deadline_s)
    began_s = time.monotonic()
    if first > target / 2:
        raise ValueError(f"{first} of {target} records came at once: give more --lines")
    wait_for(committed, target, deadline_s)
    return (target - first) / (time.monotonic() - began_s)


def wait_for(count: Callable[[], int], target: int, deadline_s: float) -> int:
    while (seen := count()) < target:
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{seen} of {target} records")
        time.sleep(POLL_S)
    return seen


def source_rate(bench: Bench, worker: Runner, case: Case, *topics: str) -> float:
    uncommitted, committed = (
        Consumer(
            {
                "bootstrap.servers": bench.bootstrap_servers,
                "group.id": "meter",
                "isolation.level": level,
            }
        )
        for level in ("read_uncommitted", "read_committed")
    )

    places = [TopicPartition(topic, 0) for topic in topics]

    def end(consumer: Consumer) -> int:
        return sum(consumer.get_watermark_offsets(place, timeout=30)[1] for place in places)

    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(uncommitted))
        stack.enter_context(contextlib.closing(committed))
        for topic in topics:
            stack.enter_context(worker.running({**bench.source(topic), **case.settings}))
        target = bench.lines * len(topics)
        return counted_rate(partial(end, uncommitted), partial(end, committed), target)


def sink_rate(bench: Bench, worker: Runner, case: Case, topic: str) -> float:
    output = bench.directory / unique_name("out")
    config = {**bench.sink(topic, output), **case.settings}

    def written() -> int:
        return output.stat().st_size // LINE_BYTES if output.exists() else 0

    try:
        with worker.running(config):
            return counted_rate(written, written, bench.lines)
    finally:
        output.unlink(missing_ok=True)


def measure(bench: Bench, workers: Mapping[str, Runner], case: Case, runs: int) -> None:
    """Print a row of the table; `workers` has `ours` and the `peer`."""
    if case.is_source:

        def rate(name: str) -> float:
            topics = [bench.new_topic() for _ in range(case.sources)]
            return source_rate(bench, workers[name], case, *topics)
    else:
        filled = bench.new_topic()
        source_rate(bench, workers["ours"], case, filled)

        def rate(name: str) -> float:
            return sink_rate(bench, workers[name], case, filled)

    columns = compared(rate, runs)
    print(f"| {case.title} | {columns} |", flush=True)


def compared(rate: Callable[[str], float], runs: int) -> str:
    """Call `rate` with `ours` and `peer` in turn; return the columns of a row with the rates."""
    rates = in_turn(("ours", "peer"), rate, runs)
    return columns(rates["peer"], rates["ours"])


def in_turn(
    names: Sequence[str], rate: Callable[[str], float], runs: int, *, warm_up: int = 1
) -> Mapping[str, list[float]]:
    """Call `rate` with each name in turn, in reverse order in every second round.

    Returns the rates of `runs` rounds, in thousands; those of `warm_up` rounds before are dropped.
    """
    rates: dict[str, list[float]] = {name: [] for name in names}
    for run in range(-warm_up, runs):
        for name in names if run % 2 else reversed(names):
            found = rate(name)
            if run >= 0:
                rates[name].append(found / 1000)
    return rates


def columns(peer: Sequence[float], ours: Sequence[float]) -> str:
    """Return a row's columns with the rates: `ours`, each beside the `peer`'s of the same round."""
    ratios = [our / other for other, our in zip(peer, ours, strict=True)]
    return (
        f"{_shown(statistics.median(peer))} | {_shown(statistics.median(ours))} |"
        f" {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f}"
    )


def _shown(rate: float) -> str:
    return f"{rate:.0f}" if rate >= 20 else f"{rate:.1f}"


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """Run a process that uses a whole processor until the context ends."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def arguments(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--lines", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--busy", action="store_true")
    return parser


@contextlib.contextmanager
def bench_of(options: argparse.Namespace) -> Iterator[tuple[Bench, Servers]]:
    """Start a broker, write the lines and, with `--busy`, use a processor."""
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = stack.enter_context(contextlib.closing(Servers(find_runtime(), directory)))
        broker = servers.broker()
        bench = Bench(
            runtime=servers.runtime,
            bootstrap_servers=broker.bootstrap_servers,
            directory=directory,
            lines_file=directory / "lines",
            lines=options.lines,
            settings={},
        )
        write_lines(bench.lines_file, bench.lines)
        if options.busy:
            stack.enter_context(busy())
        yield bench, servers


def print_head(options: argparse.Namespace, peer: str) -> None:
    machine = "a busy machine" if options.busy else "an idle machine"
    print(f"{options.runs} runs of {options.lines} lines of {LINE_BYTES} bytes, {machine}\n")
    print(f"| k records/s | {peer} | pyconnect | times | lowest to highest |")
    print("|---|---|---|---|---|", flush=True)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--case", default="", help="only the cases whose title holds this text")
    parser.add_argument("--jars", action="store_true", help="Apache's connectors in ours too")
    parser.add_argument("--location", action="store_true", help="one process for ours")
    options = parser.parse_args()
    cases = [case for case in CASES if options.case in case.title]
    with bench_of(options) as (bench, servers):
        print_head(options, "Java")
        ours: dict[str, str] = {"agent.isolation": "location"} if options.location else {}
        if options.jars:
            plugin_path = bench.directory / "plugins"
            plugin_path.mkdir()
            file_connectors(servers.runtime, plugin_path)
            ours["plugin.path"] = str(plugin_path)
        for exactly_once in (True, False):
            chosen = [case for case in cases if case.exactly_once is exactly_once]
            if chosen:
                _measure_all(bench, servers, chosen, options.runs, ours, exactly_once=exactly_once)


def _measure_all(
    bench: Bench,
    servers: Servers,
    cases: list[Case],
    runs: int,
    ours: Mapping[str, str],
    *,
    exactly_once: bool,
) -> None:
    properties = {
        **WORKER,
        "exactly.once.source.support": "enabled" if exactly_once else "disabled",
    }
    address = bench.bootstrap_servers
    java = servers.java_worker(address, unique_name("java"), properties=properties, as_shipped=True)
    agent = servers.agent(address, unique_name("ours"), properties={**properties, **ours})
    workers = {"peer": Worker(java.url), "ours": Worker(agent.url)}
    for case in cases:
        measure(bench, workers, case, runs)
    java.stop()
    agent.stop()
