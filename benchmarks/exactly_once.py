"""Exactly-once FileStreamSource beside Apache's Java worker, in turn on one broker.

    scripts/benchmark exactly_once [--lines N] [--runs N] [--only java|ours]

The Java worker has the heap and the JVM options of Kafka's start script. Both are distributed
workers at `exactly.once.source.support=enabled`. Each run has a topic and a connector of its own. A
rate is counted by the topic's last stable offset, from the first commit to the last; it counts one
marker per transaction too, which is below 0.1 % of the records. Memory is what the kernel shares
out to the worker and its processes (PSS): idle ten seconds after the start, and the
largest of samples under load.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from benchmarks.file_stream import LINE_BYTES, POLL_S, STRING, Bench, write_lines
from benchmarks.memory import Peak, described, family_pss
from pyconnect_sandbox.jars import find_runtime
from tests.support.agents.rest_client import call_url
from tests.support.names import unique_name
from tests.support.servers.kafka import Servers

TIMEOUT_S = 300.0
IDLE_AFTER_S = 10.0
ENABLED = {
    "exactly.once.source.support": "enabled",
    "key.converter": STRING,
    "value.converter": STRING,
}
BOUNDARIES: Mapping[str, Mapping[str, str]] = {
    "poll": {},
    "poll, batch.size=10000": {"batch.size": "10000"},
    "interval 1 s": {
        "transaction.boundary": "interval",
        "transaction.boundary.interval.ms": "1000",
    },
}
KINDS = ("java", "ours")
JSON = {"Content-Type": "application/json"}


def measure(bench: Bench, url: str, settings: Mapping[str, str]) -> float:
    """Return records/s of one new connector."""
    topic = bench.new_topic()
    name = unique_name("source")
    config = {**bench.source(topic), "name": name, **settings}
    answer = call_url(url, "PUT", f"/connectors/{name}/config", json.dumps(config), JSON)
    if answer.status != 201:
        raise RuntimeError(answer.text)
    try:
        return _rate(bench, topic)
    finally:
        call_url(url, "DELETE", f"/connectors/{name}", None, {})


def _rate(bench: Bench, topic: str) -> float:
    consumer = Consumer(
        {
            "bootstrap.servers": bench.bootstrap_servers,
            "group.id": "meter",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    place = TopicPartition(topic, 0)
    first, began_s = 0, 0.0
    deadline_s = time.monotonic() + TIMEOUT_S
    try:
        while (end := consumer.get_watermark_offsets(place, timeout=5)[1]) < bench.lines:
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"{end} of {bench.lines} records in {topic}")
            if end and not first:
                first, began_s = end, time.monotonic()
            time.sleep(POLL_S)
        return (bench.lines - first) / (time.monotonic() - began_s)
    finally:
        consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", choices=KINDS)
    options = parser.parse_args()
    kinds = (options.only,) if options.only else KINDS
    runtime = find_runtime()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        servers = Servers(runtime, directory)
        try:
            broker = servers.broker()
            bench = Bench(
                runtime=runtime,
                bootstrap_servers=broker.bootstrap_servers,
                directory=directory,
                lines_file=directory / "lines",
                lines=options.lines,
                settings={},
            )
            write_lines(bench.lines_file, bench.lines)
            start = {"java": partial(servers.java_worker, as_shipped=True), "ours": servers.agent}
            for kind in kinds:
                worker = start[kind](
                    broker.bootstrap_servers, unique_name(kind), properties=ENABLED
                )
                pid = worker.identity.pid
                time.sleep(IDLE_AFTER_S)
                print(f"{kind} idle: {described(family_pss(pid))}", flush=True)
                for title, settings in BOUNDARIES.items():
                    with Peak(pid) as peak:
                        rates = [measure(bench, worker.url, settings) for _ in range(options.runs)]
                    each = ", ".join(f"{rate / 1000:.0f}" for rate in rates)
                    median = statistics.median(rates) / 1000
                    print(f"{kind} {title}: {median:.0f} k/s ({each}), {LINE_BYTES} B", flush=True)
                    print(f"{kind} {title}: at most {described(peak.sizes)}", flush=True)
                worker.stop()
        finally:
            servers.close()
