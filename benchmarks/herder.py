"""The time of the herder's decisions about a large cluster, and the memory of its state.

    scripts/benchmark herder [connectors] [tasks of each]

There is no Kafka: the config log is in memory, and effects are only counted.
"""

import argparse
import resource
import time
from dataclasses import replace

from pyconnect_agent.core.group_protocol import Work
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder import requests as ask
from pyconnect_agent.core.herder.decide import decide
from pyconnect_agent.core.herder.effects import Effect, RequestRejoin
from pyconnect_agent.core.herder.membership import Claim
from pyconnect_agent.core.herder.requests.restarts import WorkStopped
from pyconnect_agent.core.herder.state import HerderSettings, HerderState
from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.internal_topics import config_records
from pyconnect_agent.core.internal_topics.configlog import ConfigLog, ConnectorConfigUpdated
from pyconnect_agent.core.reporting import Reported
from pyconnect_agent.herder.connect_group import local_assignment

MEMBER = "member"


class Measured:
    """A herder that times each of its decisions."""

    def __init__(self) -> None:
        settings = HerderSettings(worker_id="worker:8083", connector_type=lambda _: "source")
        self.state = HerderState(settings=settings)

    def decide(self, event: on.Event, label: str | None = None) -> tuple[Effect, ...]:
        started_s = time.perf_counter()
        self.state, effects = decide(self.state, event, 1_000)
        if label is not None:
            report(label, time.perf_counter() - started_s, f"{len(effects)} effects")
        return effects


def report(label: str, duration_s: float, detail: str = "") -> None:
    print(f"{label:45} {duration_s * 1000:10.2f} ms  {detail}")


def config_log(connectors: int, tasks: int) -> ConfigLog:
    log = ConfigLog()
    offset = 0
    for number in range(connectors):
        name = f"connector-{number}"
        config = {"name": name, "connector.class": "FileStreamSource", "tasks.max": str(tasks)}
        ids = [ConnectorTaskId(name, n) for n in range(tasks)]
        for record in (
            config_records.connector_config(name, config),
            *(config_records.task_config(task_id, {"task": str(task_id)}) for task_id in ids),
            config_records.tasks_commit(name, tasks),
        ):
            log.apply(offset, record.key, record.value)
            offset += 1
    return log


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("connectors", type=int, nargs="?", default=10_000)
    parser.add_argument("tasks", type=int, nargs="?", default=10)
    options = parser.parse_args()
    log = config_log(options.connectors, options.tasks)
    read_bytes = peak_memory_bytes()

    herder = Measured()
    effects = herder.decide(on.Started(snapshot=log.snapshot()), "started")
    rejoin = next(effect for effect in effects if isinstance(effect, RequestRejoin))
    assignment = local_assignment(MEMBER, "", rejoin.snapshot, rejoin.owned)
    herder.decide(on.Joined(member_id=MEMBER, generation=1, assignment=assignment), "all dealt")
    answer(herder, Claim)

    running = Reported(state=State.RUNNING)
    started_s = time.perf_counter()
    for number in range(options.connectors):
        name = f"connector-{number}"
        herder.decide(on.InstanceReported(item=name, report=running))
    each_s = (time.perf_counter() - started_s) / options.connectors
    report("a connector reports to run (mean)", each_s)

    task = on.InstanceReported(item=ConnectorTaskId("connector-1", 0), report=running)
    herder.decide(task, "a task reports to run")
    request = ask.GetConnectorInfo(connector="connector-1")
    herder.decide(on.RequestArrived(request_id=1, request=request, deadline_ms=9_999), "a read")

    record = config_records.connector_config("connector-1", {"name": "connector-1"})
    log.apply(log.offset, record.key, record.value)
    change = ConnectorConfigUpdated(connector="connector-1")
    herder.decide(on.ConfigAdvanced(snapshot=log.snapshot(), changes=(change,)), "a config changes")
    answer(herder, WorkStopped)

    herder.decide(on.RejoinNeeded(), "asked to join again")
    same = replace(assignment, assigned=Work(), config_offset=log.offset)
    herder.decide(on.Joined(member_id=MEMBER, generation=2, assignment=same), "nothing new dealt")
    print(
        f"peak memory: {peak_memory_bytes() / 2**20:.0f} MiB,"
        f" of which {read_bytes / 2**20:.0f} MiB with the config log read"
    )


def answer(herder: Measured, kind: type) -> None:
    for effect_id, waiter in list(herder.state.waiters.items()):
        if isinstance(waiter, kind):
            herder.decide(on.EffectDone(effect_id=effect_id))


def peak_memory_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
