"""A Java worker and a pyconnect agent with the same plugins, whose processor time is counted."""

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import psutil

from benchmarks.beside_java import TIMEOUT_S, Worker, columns, counted_rate, in_turn, wait_for
from benchmarks.memory import family
from pyconnect_sandbox.connect_worker import AgentProcess, JavaConnectWorker
from tests.support.names import unique_name
from tests.support.plugins.maven_plugins import JavaPlugin, location_of
from tests.support.servers.kafka import Servers

Count = Callable[[], int]
Process: TypeAlias = AgentProcess | JavaConnectWorker


@dataclass(frozen=True, slots=True)
class Side:
    """A worker; `python_us` and `java_us` have the processor time per record of each run."""

    process: Process
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
        """Return the processor seconds of the worker's Python and of its Java processes."""
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
) -> Iterator[Mapping[str, Process]]:
    """Run both workers; the `peer` is the Java worker, with the options of its start script."""
    path = str(location_of(plugin).parent)
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
    title: str, processes: Mapping[str, Process], rate: Callable[[str, Side], float], runs: int
) -> None:
    """Measure both sides in turn; `rate` is called with a side's name."""
    sides = {name: Side(process) for name, process in processes.items()}
    rates = in_turn(("ours", "peer"), lambda name: rate(name, sides[name]), runs)
    print_rates(title, rates["peer"], rates["ours"], sides["peer"], sides["ours"])


def print_rates(
    title: str, peer_rates: Sequence[float], our_rates: Sequence[float], peer: Side, ours: Side
) -> None:
    """Print the row of two sides that were measured in turn."""
    # The first runs are warm-up.
    java, python, beside = (
        statistics.median(found[-len(our_rates) :])
        for found in (peer.java_us, ours.python_us, ours.java_us)
    )
    row = columns(peer_rates, our_rates)
    print(f"| {title} | {row} | {java:.1f} | {python:.1f} | {beside:.1f} |", flush=True)
