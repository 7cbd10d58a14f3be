"""Memory and start of Java tasks, a process each, beside a Java worker with the same.

    scripts/benchmark java_memory [--case TEXT] [--starts N] [--set K=V]

Apache's FileStream connectors from one jar, with the options of Kafka's own start script for the
Java worker and default options for the agent, to which `--set` adds; exactly-once for sources. In
each case both workers are started, one after the other. Memory is that of the worker and of all
processes that it has started, as the kernel shares it out (PSS): of the worker without a connector,
and the largest from the connector's creation until three seconds after its last line. A Java
worker's heap grows with the work, so there are cases of little work at once, of lines that come for
five minutes, and of as much work as the rates are measured with. `running` is the time from the
connector's creation until all of its tasks are RUNNING: the median of that start and of further
ones on the same worker, each of a new connector. An agent that has run before with the same jars
has written its archive of classes.
"""

import argparse
import contextlib
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.file_stream import LINE_BYTES, STRING, find_runtime, write_lines
from benchmarks.memory import MIB, Peak, family, family_pss
from pyconnect_sandbox.connect_worker import AgentProcess, JavaConnectWorker
from tests.support.agents.rest_client import call_url
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.java_jars import file_connectors
from tests.support.servers.kafka import Servers

Worker: TypeAlias = AgentProcess | JavaConnectWorker
CONNECTOR = "org.apache.kafka.connect.file.FileStream{}Connector"
WORKER = {
    "key.converter": STRING,
    "value.converter": STRING,
    "exactly.once.source.support": "enabled",
}
LITTLE_WORK, MUCH_WORK = 200_000, 1_500_000
TIMEOUT_S = 600.0
SETTLE_S = 3.0
FLUSH_LINES = 50_000
"""Fewer lines than a producer's queue holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    kind: str
    tasks: int
    lines: int
    lines_per_s: int | None = None
    """Rate of new lines; None: all lines exist before the connector."""

    @property
    def title(self) -> str:
        pace = f", {self.lines_per_s:,} a second" if self.lines_per_s else ""
        return f"{self.kind.lower()}, {self.tasks} x {self.lines // self.tasks:,} lines{pace}"


CASES = (
    Case(kind="Sink", tasks=1, lines=LITTLE_WORK),
    Case(kind="Sink", tasks=1, lines=300_000, lines_per_s=1000),
    Case(kind="Sink", tasks=1, lines=MUCH_WORK),
    Case(kind="Source", tasks=1, lines=MUCH_WORK),
    Case(kind="Sink", tasks=10, lines=LITTLE_WORK),
)


class Bench:
    """A broker with a topic for the sinks of a case, and a file for its sources."""

    def __init__(self, bootstrap_servers: str, directory: Path, case: Case) -> None:
        self.case = case
        self.topic = ""
        self.is_quiet = threading.Event()
        """Set when the file gets no more lines."""
        self._bootstrap_servers = bootstrap_servers
        self._directory = directory
        self._lines_file = directory / unique_name("lines")
        if case.kind == "Sink" and not case.lines_per_s:
            self.topic = self._new_topic(case.tasks)
            self._fill(self.topic)
        elif case.kind == "Source":
            write_lines(self._lines_file, case.lines)

    def connector(self) -> tuple[dict[str, str], Callable[[], bool]]:
        """Return the config of a new connector, and a function that says if its work is done."""
        config = {
            "connector.class": CONNECTOR.format(self.case.kind),
            "tasks.max": str(self.case.tasks),
        }
        if self.case.kind == "Sink":
            output = self._directory / unique_name("output")
            wanted = self.case.lines * LINE_BYTES
            topic = self.topic
            if self.case.lines_per_s:
                topic = self._new_topic(self.case.tasks)
                threading.Thread(target=self._fill, args=(topic,), daemon=True).start()
            return {**config, "topics": topic, "file": str(output)}, (
                lambda: output.exists() and output.stat().st_size >= wanted
            )
        topic = self._new_topic(1)
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap_servers,
                "group.id": "meter",
                "isolation.level": "read_committed",
            }
        )

        def is_committed() -> bool:
            place = TopicPartition(topic, 0)
            return int(consumer.get_watermark_offsets(place, timeout=30)[1]) >= self.case.lines

        return {**config, "topic": topic, "file": str(self._lines_file)}, is_committed

    def _new_topic(self, partitions: int) -> str:
        topic = unique_name("memory")
        admin = AdminClient({"bootstrap.servers": self._bootstrap_servers})
        for created in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            created.result()
        return topic

    def _fill(self, topic: str) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap_servers, "linger.ms": 100})
        line = b"x" * (LINE_BYTES - 1)
        pace = self.case.lines_per_s
        began_s = time.monotonic()
        for number in range(self.case.lines):
            if pace and self.is_quiet.wait(began_s + number / pace - time.monotonic()):
                break
            producer.produce(topic, line, partition=number % self.case.tasks)
            if number % FLUSH_LINES == 0:
                producer.flush()
        producer.flush()


@contextlib.contextmanager
def running(worker: Worker, config: dict[str, str]) -> Iterator[float]:
    """Run a connector until the context ends; yield the seconds until all of its tasks ran."""
    name = unique_name("memory")
    path, kind = f"/connectors/{name}", {"Content-Type": "application/json"}
    began_s = time.monotonic()
    answer = call_url(worker.url, "PUT", f"{path}/config", json.dumps(config), kind)
    if answer.status != 201:
        raise RuntimeError(answer.text)

    def are_running() -> bool:
        status = json.loads(call_url(worker.url, "GET", f"{path}/status", None, {}).text)
        states = [task["state"] for task in status.get("tasks", ())]
        return states == ["RUNNING"] * int(config["tasks.max"])

    try:
        eventually(are_running, TIMEOUT_S)
        yield time.monotonic() - began_s
    finally:
        call_url(worker.url, "DELETE", path, None, {})


def measure(name: str, worker: Worker, bench: Bench, starts: int) -> None:
    """Print a row of the table."""
    bench.is_quiet.clear()
    time.sleep(SETTLE_S)
    alone = sum(family_pss(worker.pid))
    config, is_done = bench.connector()
    with Peak(worker.pid) as peak, running(worker, config) as first_s:
        eventually(is_done, TIMEOUT_S)
        time.sleep(SETTLE_S)
        processes = len(family(worker.pid))
    bench.is_quiet.set()
    started_s = [first_s]
    for _ in range(starts - 1):
        config, _ = bench.connector()
        with running(worker, config) as again_s:
            started_s.append(again_s)
    sizes = peak.sizes
    parts = " + ".join(f"{size / MIB:.0f}" for size in sizes) if 1 < len(sizes) < 9 else ""
    print(
        f"| {bench.case.title} | {name} | {processes} | {alone / MIB:.0f} |"
        f" {sum(sizes) / MIB:.0f} | {parts} | {statistics.median(started_s):.2f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", default="", help="only the cases whose title holds this text")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        # An installed agent has compiled modules; compiling leaves memory in each process.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(directory / "bytecode")
        servers = stack.enter_context(contextlib.closing(Servers(find_runtime(), directory)))
        address = servers.broker().bootstrap_servers
        plugin_path = directory / "plugins"
        plugin_path.mkdir()
        file_connectors(servers.runtime, plugin_path)
        plugins = {**WORKER, "plugin.path": str(plugin_path)}
        plugins.update(each.split("=", 1) for each in options.set)
        servers.agent(address, unique_name("before"), properties=plugins).stop()
        print("| | worker | processes | MiB alone | MiB at most | of these | running after s |")
        print("|---|---|---|---|---|---|---|", flush=True)
        for case in CASES:
            if options.case not in case.title:
                continue
            bench = Bench(address, directory, case)
            java = servers.java_worker(
                address, unique_name("java"), properties=WORKER, as_shipped=True
            )
            measure("Java", java, bench, options.starts)
            java.stop()
            agent = servers.agent(address, unique_name("ours"), properties=plugins)
            measure("pyconnect", agent, bench, options.starts)
            agent.stop()
