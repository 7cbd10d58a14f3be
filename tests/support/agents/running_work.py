"""Whether statuses say what really runs: REST and the status topic against processes."""

import json
from collections.abc import Mapping, Sequence

import psutil

from tests.support.agents.agent import Agent
from tests.support.servers.cluster import worker_of
from tests.support.servers.topics import read_topic

ACTIVE = ("RUNNING", "PAUSED")

Places = Mapping[str, tuple[str, str]]
"""State and worker by connector (its name) and task (`name-0`)."""


def status_faults(agents: Sequence[Agent], written: Places | None = None) -> list[str]:
    """Return what is wrong with the statuses that the agents show; empty when they are true.

    A status that says RUNNING or PAUSED needs a living process at its worker, or a connector that
    is asleep there, and each of them such a status. `written`: those in the topic, as a new worker
    reads them.
    """
    processes: dict[str, str] = {}
    faults = []
    for agent in agents:
        works = agent.get("/agent/tasks")
        processes |= {item_of(work): worker_of(agent) for work in works if work["asleep"]}
        found = {work["pid"]: item_of(work) for work in works}
        living = {child.pid for child in agent.children() if is_alive(child)}
        unknown = living - found.keys()
        faults += [f"{worker_of(agent)} does not know its process {pid}" for pid in unknown]
        for pid in found.keys() & living:
            item = found[pid]
            if item in processes:
                faults.append(f"{item} runs at {processes[item]} and {worker_of(agent)}")
            processes[item] = worker_of(agent)
    shown = {f"REST of {worker_of(agent)}": statuses_of(agent) for agent in agents}
    if written is not None:
        shown["the status topic"] = written
    for where, statuses in shown.items():
        running = {item: at for item, (state, at) in statuses.items() if state in ACTIVE}
        faults += [
            f"{where} says that {item} runs at {running.get(item)}, but it does at {at}"
            for item in running.keys() | processes.keys()
            if running.get(item) != (at := processes.get(item))
        ]
    return faults


def item_of(work: Mapping[str, object]) -> str:
    name = str(work["connector"])
    return name if work["task"] is None else f"{name}-{work['task']}"


def is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def statuses_of(agent: Agent) -> Places:
    found: dict[str, tuple[str, str]] = {}
    for name, shown in agent.get("/connectors?expand=status").items():
        status = shown["status"]
        found[name] = (status["connector"]["state"], status["connector"]["worker_id"])
        for task in status["tasks"]:
            found[f"{name}-{task['id']}"] = (task["state"], task["worker_id"])
    return found


def statuses_in(bootstrap_servers: str, topic: str) -> Places:
    """Return the last status of each connector and task in the topic."""
    found: dict[str, tuple[str, str]] = {}
    for record in read_topic(bootstrap_servers, topic):
        kind, _, item = (record.key() or b"").decode().partition("-")[2].partition("-")
        if kind not in ("connector", "task"):
            continue
        found.pop(item, None)
        if record.value() is not None:
            status = json.loads(record.value() or b"")
            found[item] = (status["state"], status["worker_id"])
    return found
