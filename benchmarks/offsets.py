"""How long reading, altering and resetting very many source offsets takes on an agent (KIP-875).

    scripts/benchmark offsets [partitions] [--exactly-once] [--own-topic]

A real broker and a real agent, end to end over REST. The memory is the peak of the supervisor and
of all its children together, sampled while the request is under way, and then what is left of it
some seconds later. Ends with a connector of one partition: what an ordinary reset takes.
"""

import argparse
import http.client
import json
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from pyconnect_sandbox.connect_worker import AgentProcess
from pyconnect_sandbox.jars import find_runtime
from tests.support.servers.kafka import Servers

MIB = 1024 * 1024
SAMPLE_S = 0.02
TIMEOUT_S = 120
SETTLE_S = 30
THEN_S = 12
ORDINARY_RESETS = 10
NAME = "many"
ORDINARY = "ordinary"


class Rest:
    """Timed requests to one agent."""

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url).netloc

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any, float]:
        """Return status, JSON and seconds; encoding and decoding here do not count."""
        content = None if body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self._address, timeout=TIMEOUT_S)
        headers = {} if content is None else {"Content-Type": "application/json"}
        began_s = time.perf_counter()
        connection.request(method, path, content, headers)
        response = connection.getresponse()
        text = response.read()
        took_s = time.perf_counter() - began_s
        connection.close()
        return response.status, json.loads(text) if text else None, took_s


class Memory:
    """Memory of a process and all below it; shared pages count once (proportional set size)."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)

    def now_bytes(self) -> int:
        total = 0
        for process in (self._process, *self._process.children(recursive=True)):
            try:
                total += process.memory_full_info().pss
            except psutil.Error:
                continue
        return total

    @contextmanager
    def peak(self) -> Iterator[list[int]]:
        """Yield a list whose only element is the peak so far, in bytes."""
        peak, done = [0], threading.Event()

        def sample() -> None:
            while not done.is_set():
                peak[0] = max(peak[0], self.now_bytes())
                done.wait(SAMPLE_S)

        sampler = threading.Thread(target=sample)
        sampler.start()
        try:
            yield peak
        finally:
            done.set()
            sampler.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("partitions", type=int, nargs="?", default=100_000)
    parser.add_argument("--exactly-once", action="store_true")
    parser.add_argument("--own-topic", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, _agent(Path(directory), options) as agent:
        _measure(Rest(agent.url), Memory(agent.pid), options)


@contextmanager
def _agent(directory: Path, options: argparse.Namespace) -> Iterator[AgentProcess]:
    support = {"exactly.once.source.support": "enabled" if options.exactly_once else "disabled"}
    with closing(Servers(find_runtime(), directory)) as servers:
        broker = servers.broker()
        yield servers.agent(broker.bootstrap_servers, "benchmark", properties=support)


def _measure(rest: Rest, memory: Memory, options: argparse.Namespace) -> None:
    config = {"connector.class": "FileStreamSource", "topic": "t", "file": "/nonexistent/file"}
    if options.own_topic:
        config["offsets.storage.topic"] = "own-offsets"
    members = {"name": NAME, "config": config, "initial_state": "STOPPED"}
    status, answer, _ = rest.call("POST", "/connectors", members)
    assert status == 201, answer
    path = f"/connectors/{NAME}/offsets"
    offsets = [
        {"partition": {"filename": f"/data/some/directory/file-{n:08}"}, "offset": {"position": n}}
        for n in range(options.partitions)
    ]
    print(f"{'':12}{'seconds':>8}{'peak MiB':>10}{'then MiB':>10}", flush=True)
    print(f"{'idle':12}{'':8}{'':10}{memory.now_bytes() / MIB:10.0f}", flush=True)
    for label, method, body in (
        ("PATCH new", "PATCH", {"offsets": offsets}),
        ("GET", "GET", None),
        ("PATCH again", "PATCH", {"offsets": offsets}),
        ("GET again", "GET", None),
        ("DELETE", "DELETE", None),
        ("GET none", "GET", None),
    ):
        with memory.peak() as peak:
            status, answer, took_s = _repeated(rest, method, path, body)
        assert status == 200, answer
        time.sleep(THEN_S)
        then = memory.now_bytes() / MIB
        print(f"{label:12}{took_s:8.2f}{peak[0] / MIB:10.0f}{then:10.0f}", flush=True)
    _measure_ordinary(rest, config)


def _measure_ordinary(rest: Rest, config: Mapping[str, str]) -> None:
    """Measure another connector: the first one's own topic is full."""
    if "offsets.storage.topic" in config:
        config = {**config, "offsets.storage.topic": "ordinary-offsets"}
    members = {"name": ORDINARY, "config": config, "initial_state": "STOPPED"}
    status, answer, _ = rest.call("POST", "/connectors", members)
    assert status == 201, answer
    path = f"/connectors/{ORDINARY}/offsets"
    offsets = [{"partition": {"filename": "/data/file"}, "offset": {"position": 1}}]
    times = []
    for _ in range(ORDINARY_RESETS):
        status, answer, _ = _repeated(rest, "PATCH", path, {"offsets": offsets})
        assert status == 200, answer
        status, answer, took_s = rest.call("DELETE", path)
        assert status == 200, answer
        times.append(took_s)
    times.sort()
    print(f"reset of one: median {times[len(times) // 2]:.3f} s, longest {times[-1]:.3f} s")


def _repeated(rest: Rest, method: str, path: str, body: object) -> tuple[int, Any, float]:
    """Repeat a request that the group's first rebalance refuses."""
    until_s = time.monotonic() + SETTLE_S
    while True:
        found = rest.call(method, path, body)
        if found[0] not in (400, 404, 409) or time.monotonic() > until_s:
            return found
        time.sleep(0.5)
