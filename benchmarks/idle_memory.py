"""Memory of idle connectors, on an agent and on a Java worker in one run.

    scripts/benchmark idle_memory [--kind python|java] [--connectors N] [--tasks N] [--set K=V]

FileStream sources whose file stays empty, `--tasks` tasks each, are created one after the other;
`python` has the agent's own connectors, `java` Apache's from their jar. Memory is that of the
worker and of all processes that it has started, as the kernel shares it out (PSS), when nothing has
changed for 20 seconds. `--set` adds a property to the agent's file. Java has the options of Kafka's
own start script.
"""

import argparse
import contextlib
import json
import os
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.java_memory import CONNECTOR, TIMEOUT_S, WORKER, Worker
from benchmarks.memory import MIB, family, family_pss
from pyconnect_sandbox.jars import find_runtime
from tests.support.agents.rest_client import call_url
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.java_jars import file_connectors
from tests.support.servers.kafka import Servers

SETTLE_S = 20.0
JSON = {"Content-Type": "application/json"}


def measure(name: str, worker: Worker, connectors: int, config: dict[str, str]) -> None:
    """Create the connectors and print a row of the table."""
    alone = sum(family_pss(worker.pid))
    tasks = connectors * int(config["tasks.max"])
    began_s, used_s = time.monotonic(), cpu_s(worker.pid)
    for number in range(connectors):
        topic = {"topic": f"idle-{number}"}
        path = f"/connectors/idle-{number}/config"
        answer = call_url(worker.url, "PUT", path, json.dumps(config | topic), JSON)
        if answer.status != 201:
            raise RuntimeError(answer.text)

    def are_running() -> bool:
        listed = json.loads(call_url(worker.url, "GET", "/connectors?expand=status", None, {}).text)
        states = [t["state"] for each in listed.values() for t in each["status"]["tasks"]]
        return states == ["RUNNING"] * tasks

    eventually(are_running, TIMEOUT_S)
    running_s, used_s = time.monotonic() - began_s, cpu_s(worker.pid) - used_s
    time.sleep(SETTLE_S)
    sizes = family_pss(worker.pid)
    print(
        f"| {name} | {connectors} x {config['tasks.max']} | {len(family(worker.pid))}"
        f" | {alone / MIB:.0f} | {sum(sizes) / MIB:.0f} | {running_s:.0f} | {used_s:.0f} |",
        flush=True,
    )


def cpu_s(pid: int) -> float:
    """Return the processor time of the living processes; children that have ended are left out."""
    used = 0.0
    for process in family(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            used += times.user + times.system + times.children_user + times.children_system
    return used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=("python", "java"), default="python")
    parser.add_argument("--connectors", type=int, default=100)
    parser.add_argument("--tasks", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(directory / "bytecode")
        servers = stack.enter_context(contextlib.closing(Servers(find_runtime(), directory)))
        address = servers.broker().bootstrap_servers
        ours = {**WORKER, **dict(each.split("=", 1) for each in options.set)}
        config = {"connector.class": "FileStreamSource", "tasks.max": str(options.tasks)}
        if options.kind == "java":
            (directory / "plugins").mkdir()
            file_connectors(servers.runtime, directory / "plugins")
            ours["plugin.path"] = str(directory / "plugins")
            config["connector.class"] = CONNECTOR.format("Source")
        servers.agent(address, unique_name("before"), properties=ours).stop()
        (directory / "empty").touch()
        config["file"] = str(directory / "empty")
        print("| worker | connectors | processes | MiB alone | MiB | running after s | CPU s |")
        print("|---|---|---|---|---|---|---|", flush=True)
        java = servers.java_worker(address, unique_name("java"), properties=WORKER, as_shipped=True)
        theirs = config | {"connector.class": CONNECTOR.format("Source")}
        measure("Java", java, options.connectors, theirs)
        java.stop()
        agent = servers.agent(address, unique_name("ours"), properties=ours)
        measure("pyconnect", agent, options.connectors, config)
        agent.stop()
