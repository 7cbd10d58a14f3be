"""Memory of a worker with Java tasks, a process each, beside a Java worker with the same.

    scripts/benchmark java_memory [--tasks N …] [--lines N]

For each number of tasks both workers are started, one after the other, and run Apache's
FileStreamSink from one jar, on a topic with a partition for each task. Java has the options of
Kafka's own start script. Memory is that of the worker and of all processes that it has started, as
the kernel shares it out (PSS): the largest while the lines are written, and that of the worker
without a connector. `running` is the time from the connector's creation until all of its tasks are
RUNNING.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.file_stream import LINE_BYTES, STRING, find_runtime
from benchmarks.memory import MIB, Peak, family, family_pss
from pyconnect_sandbox.agent import AgentProcess
from pyconnect_sandbox.java_worker import JavaConnectWorker
from tests.support.eventually import eventually
from tests.support.java_plugin_jars import file_connectors
from tests.support.kafka import Servers
from tests.support.names import unique_name
from tests.support.rest_client import call_url

SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
WORKER = {"key.converter": STRING, "value.converter": STRING}
TIMEOUT_S = 300.0
SETTLE_S = 3.0
FLUSH_LINES = 50_000
"""Fewer than a producer holds at most."""


def fill(bootstrap_servers: str, partitions: int, lines: int) -> str:
    """Return a new topic with so many lines."""
    topic = unique_name("memory")
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for created in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        created.result()
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 100})
    line = bytes(LINE_BYTES - 1).replace(b"\0", b"x")
    for number in range(lines):
        producer.produce(topic, line, partition=number % partitions)
        if number % FLUSH_LINES == 0:
            producer.flush()
    producer.flush()
    return topic


def measure(
    kind: str, worker: AgentProcess | JavaConnectWorker, topic: str, tasks: int, lines: int
) -> None:
    """Print a row of the table."""
    time.sleep(SETTLE_S)
    alone = sum(family_pss(worker.pid))
    name = unique_name("memory")
    with tempfile.TemporaryDirectory() as directory, Peak(worker.pid) as peak:
        output = Path(directory) / "output"
        config = {
            "connector.class": SINK,
            "topics": topic,
            "file": str(output),
            "tasks.max": str(tasks),
        }
        began_s = time.monotonic()
        headers = {"Content-Type": "application/json"}
        answer = call_url(
            worker.url, "PUT", f"/connectors/{name}/config", json.dumps(config), headers
        )
        if answer.status != 201:
            raise RuntimeError(answer.text)
        path = f"/connectors/{name}/status"

        def are_running() -> bool:
            status = json.loads(call_url(worker.url, "GET", path, None, {}).text)
            states = [task["state"] for task in status.get("tasks", ())]
            return states == ["RUNNING"] * tasks

        eventually(are_running, TIMEOUT_S)
        running_s = time.monotonic() - began_s
        wanted = lines * LINE_BYTES
        eventually(lambda: output.exists() and output.stat().st_size >= wanted, TIMEOUT_S)
        time.sleep(SETTLE_S)
        processes = len(family(worker.pid))
    print(
        f"| {tasks} | {kind} | {processes} | {alone / MIB:.0f} | {sum(peak.sizes) / MIB:.0f} |"
        f" {running_s:.1f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--lines", type=int, default=200_000)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = stack.enter_context(contextlib.closing(Servers(find_runtime(), directory)))
        address = servers.broker().bootstrap_servers
        plugin_path = directory / "plugins"
        plugin_path.mkdir()
        file_connectors(servers.runtime, plugin_path)
        plugins: Mapping[str, str] = {**WORKER, "plugin.path": str(plugin_path)}
        print("| tasks | worker | processes | MiB alone | MiB with tasks | running after s |")
        print("|---|---|---|---|---|---|", flush=True)
        for tasks in options.tasks:
            topic = fill(address, tasks, options.lines)
            java = servers.java_worker(
                address, unique_name("java"), properties=WORKER, as_shipped=True
            )
            measure("Java", java, topic, tasks, options.lines)
            java.stop()
            agent = servers.agent(address, unique_name("ours"), properties=plugins)
            measure("pyconnect", agent, topic, tasks, options.lines)
            agent.stop()
