"""A Java worker and a pyconnect agent with the same plugins, whose processor time is counted."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import psutil

from benchmarks.beside_java import TIMEOUT_S, Worker, compared, counted_rate, wait_for
from benchmarks.memory import family
from pyconnect_sandbox.agent import AgentProcess
from pyconnect_sandbox.java_worker import JavaConnectWorker
from tests.support.kafka import Servers
from tests.support.maven_plugins import JavaPlugin, location_of
from tests.support.names import unique_name

Count = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Side:
    """A worker; `python_us` and `java_us` have the processor time of a record for each run."""

    process: AgentProcess | JavaConnectWorker
    python_us: list[float] = field(default_factory=list)
    java_us: list[float] = field(default_factory=list)

    def rate(self, config: Mapping[str, str], arrived: Count, committed: Count, rows: int) -> float:
        """Return records/s of a new connector, from the first record to the last."""
        with Worker(self.process.url).running(config):
            seen = wait_for(arrived, 1, time.monotonic() + TIMEOUT_S)
            python_s, java_s = self._spent_s()
            found = counted_rate(arrived, committed, rows)
            python_end_s, java_end_s = self._spent_s()
        self.python_us.append((python_end_s - python_s) / (rows - seen) * 1e6)
        self.java_us.append((java_end_s - java_s) / (rows - seen) * 1e6)
        return found

    def _spent_s(self) -> tuple[float, float]:
        """Processor time of the worker and its processes: those of Python, and those of Java."""
        python_s = java_s = 0.0
        for process in family(self.process.pid):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                if process.name() == "java":
                    java_s += times.user + times.system
                else:
                    python_s += times.user + times.system
        return python_s, java_s


@contextlib.contextmanager
def both(
    servers: Servers, address: str, plugin: JavaPlugin, properties: Mapping[str, str]
) -> Iterator[Mapping[str, AgentProcess | JavaConnectWorker]]:
    """Have both workers: the `peer` is the Java worker, with the options of its start script."""
    path = str(location_of(plugin, servers.runtime).parent)
    properties = {**properties, "plugin.path": path}
    java = servers.java_worker(address, unique_name("java"), properties=properties, as_shipped=True)
    agent = servers.agent(address, unique_name("ours"), properties=properties)
    try:
        yield {"peer": java, "ours": agent}
    finally:
        agent.stop()
        java.stop()


def print_head(what: str) -> None:
    print(f"{what}\n")
    print(
        "| k records/s | Java | pyconnect | times | lowest to highest |"
        " CPU µs/record: Java | pyconnect, Python | pyconnect, Java |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)


def print_row(
    title: str,
    processes: Mapping[str, AgentProcess | JavaConnectWorker],
    rate: Callable[[str, Side], float],
    runs: int,
) -> None:
    """Measure both sides in turn; `rate` is called with a side's name."""
    sides = {name: Side(process) for name, process in processes.items()}
    columns = compared(lambda name: rate(name, sides[name]), runs)
    # The first run of each is not measured.
    java, python, beside = (
        statistics.median(found[1:])
        for found in (sides["peer"].java_us, sides["ours"].python_us, sides["ours"].java_us)
    )
    print(f"| {title} | {columns} | {java:.1f} | {python:.1f} | {beside:.1f} |", flush=True)
