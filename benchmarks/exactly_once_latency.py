"""How long a line of an exactly-once source waits until readers of committed records see it.

    scripts/benchmark exactly_once_latency [--seconds N] [--lines-per-s N]

One agent, one broker, one connector at a time; a line holds the time of its append. The source
looks at its file ten times a second when it has caught up, which is part of every figure.
"""

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from benchmarks.file_stream import STRING
from pyconnect_sandbox.jars import find_runtime
from tests.support.agents.agent import source_config
from tests.support.agents.rest_client import call_url
from tests.support.names import unique_name
from tests.support.servers.kafka import Servers
from tests.support.servers.topics import create_topics

ENABLED = {
    "exactly.once.source.support": "enabled",
    "key.converter": STRING,
    "value.converter": STRING,
}
INTERVALS_MS = (100, 1_000, 10_000)
JSON = {"Content-Type": "application/json"}
TIMEOUT_S = 60.0
WARM_UP_S = 3.0


def boundaries() -> Mapping[str, Mapping[str, str]]:
    return {
        "poll": {},
        **{
            f"interval {interval_ms} ms": {
                "transaction.boundary": "interval",
                "transaction.boundary.interval.ms": str(interval_ms),
            }
            for interval_ms in INTERVALS_MS
        },
    }


def append(file: Path, lines_per_s: int, stopping: threading.Event) -> None:
    with file.open("a", buffering=1) as opened:
        while not stopping.wait(1 / lines_per_s):
            opened.write(f"{time.time_ns()}\n")


def latencies(bootstrap_servers: str, topic: str, seconds: float, group_id: str) -> list[float]:
    """Return the seconds from append to visible, of lines appended within `seconds` of steady work.

    The first lines do not count: they waited for the task to start.
    """
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": group_id,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.queue.backoff.ms": 1,
    }
    found: list[float] = []
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        until_s, steady_s = time.monotonic() + TIMEOUT_S, None
        while time.monotonic() < until_s:
            message = consumer.poll(0.1)
            if message is None or message.error() is not None:
                continue
            if steady_s is None:
                steady_s = time.monotonic() + WARM_UP_S
                until_s = steady_s + seconds
            if time.monotonic() >= steady_s:
                found.append(time.time() - int(message.value() or b"") / 1e9)
    return found


def measure(
    url: str,
    bootstrap_servers: str,
    directory: Path,
    settings: Mapping[str, str],
    seconds: float,
    lines_per_s: int,
) -> list[float]:
    name = unique_name("latency")
    file = directory / f"{name}.txt"
    file.touch()
    create_topics(bootstrap_servers, [name])
    body = json.dumps({**source_config(file, name), **settings})
    answer = call_url(url, "PUT", f"/connectors/{name}/config", body, JSON)
    if answer.status != 201:
        raise RuntimeError(answer.text)
    stopping = threading.Event()
    appending = threading.Thread(target=append, args=(file, lines_per_s, stopping))
    appending.start()
    try:
        return latencies(bootstrap_servers, name, seconds, unique_name("readers"))
    finally:
        stopping.set()
        appending.join()
        call_url(url, "DELETE", f"/connectors/{name}", None, {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--lines-per-s", type=int, default=100)
    options = parser.parse_args()
    if options.seconds * 1000 <= INTERVALS_MS[-1]:
        parser.error(f"--seconds must be above the longest interval, {INTERVALS_MS[-1] / 1000:g} s")
    with (
        tempfile.TemporaryDirectory() as temporary,
        closing(Servers(find_runtime(), Path(temporary))) as servers,
    ):
        broker = servers.broker()
        worker = servers.agent(broker.bootstrap_servers, unique_name("latency"), properties=ENABLED)
        for title, settings in boundaries().items():
            found = sorted(
                measure(
                    worker.url,
                    broker.bootstrap_servers,
                    Path(temporary),
                    settings,
                    options.seconds,
                    options.lines_per_s,
                )
            )
            median, p99 = statistics.median(found), found[int(len(found) * 0.99)]
            print(
                f"{title}: median {median * 1000:.0f} ms, 99 % {p99 * 1000:.0f} ms,"
                f" most {found[-1] * 1000:.0f} ms ({len(found)} lines)",
                flush=True,
            )
