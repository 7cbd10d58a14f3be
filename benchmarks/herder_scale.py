"""A leader's election in a large cluster, and an agent with many stopped connectors.

    scripts/benchmark herder_scale [--connectors N] [--tasks N] [--members N] [--stopped N]

The election is the work of the network thread while the group waits: decode every member's claims,
assign, encode. There are three rounds: everything is to be assigned, a new member needs a share,
and nothing is to be done. The agent is a real one on a real broker; its connectors are written to
its config topic beforehand, as another worker of its group has left them (`--stopped 0` leaves this
part out). `herder.py` measures the decisions of each worker.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import psutil

from benchmarks.herder import config_log, report
from pyconnect_agent.core.assign import AssignorState, Election, perform_assignment
from pyconnect_agent.core.group_protocol import (
    NO_WORK,
    Assignment,
    ProtocolVersion,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot
from pyconnect_sandbox.broker import BrokerConfig, KafkaBroker
from pyconnect_sandbox.connect_worker import AgentProcess, WorkerLaunch, worker_properties
from pyconnect_sandbox.jars import find_runtime
from tests.support.eventually import eventually
from tests.support.servers.cluster import stopped, write_stopped_connectors

MIB = 1024 * 1024
GROUP = "scale"
TIMEOUT_S = 120


class Group:
    """The members' claims, as they would send them, and the leader's state after earlier rounds."""

    def __init__(self, snapshot: ConfigSnapshot, members: int) -> None:
        self.snapshot = snapshot
        self.claims: dict[str, Assignment | None] = {f"w{n:02}": None for n in range(members)}
        self.generation = 0
        self.state = AssignorState()

    def elect(self, label: str) -> None:
        subscriptions = {member: self._subscription(member) for member in self.claims}
        # Processor time, so that other processes of the machine do not count.
        started_s = time.process_time()
        self.state, answers = self._round(subscriptions)
        duration_s = time.process_time() - started_s
        size = sum(map(len, answers.values())) + sum(map(len, subscriptions.values()))
        report(label, duration_s, f"{size / MIB:.1f} MiB of claims and assignments")
        for member, answer in answers.items():
            self._apply(member, decode_assignment(answer))

    def _round(self, subscriptions: Mapping[str, bytes]) -> tuple[AssignorState, dict[str, bytes]]:
        self.generation += 1
        election = Election(
            protocol=ProtocolVersion.SESSIONED,
            leader="w00",
            generation=self.generation,
            last_completed_generation=self.generation - 1,
            members={m: decode_subscription(data) for m, data in subscriptions.items()},
            joined_with=self.snapshot,
            latest=self.snapshot,
            max_delay_ms=0,
            now_ms=0,
        )
        state, verdict = perform_assignment(self.state, election)
        return state, {m: encode_assignment(a) for m, a in verdict.assignments.items()}

    def _subscription(self, member: str) -> bytes:
        return encode_subscription(
            Subscription(
                version=ProtocolVersion.SESSIONED,
                url=f"http://{member}:8083/",
                config_offset=self.snapshot.offset,
                allocation=self.claims[member],
            )
        )

    def _apply(self, member: str, received: Assignment) -> None:
        claimed = self.claims[member]
        owned = NO_WORK if claimed is None else claimed.assigned
        owned = (owned - received.revoked) | received.assigned
        self.claims[member] = replace(received, assigned=owned, revoked=NO_WORK)


def measure_elections(connectors: int, tasks: int, members: int) -> None:
    group = Group(config_log(connectors, tasks).snapshot(), members)
    group.elect(f"{connectors} x {tasks} dealt to {members} members")
    group.claims[f"w{members:02}"] = None
    group.elect("a member more: revoked")
    group.elect("a member more: dealt")
    group.elect("nothing to do")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"peak memory of this process: {peak / MIB:.0f} MiB")


def measure_stopped_connectors(count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="herder-scale-") as name:
        directory = Path(name)
        hold = directory / "hold"
        config = BrokerConfig(
            runtime=find_runtime(), directory=directory / "broker", hold_file=hold
        )
        with KafkaBroker(config) as broker:
            servers = broker.bootstrap_servers
            write_stopped_connectors(servers, f"{GROUP}-configs", count)
            worker = WorkerLaunch(
                directory=directory / "agent",
                properties=worker_properties(servers, GROUP),
                hold_file=hold,
            )
            started_s = time.perf_counter()
            with AgentProcess(worker) as agent:
                report("agent ready", time.perf_counter() - started_s)
                eventually(lambda: stopped(agent) == count, TIMEOUT_S, lambda: stopped(agent))
                report(f"{count} connectors are STOPPED", time.perf_counter() - started_s)
                processes = [psutil.Process(agent.pid)]
                processes += processes[0].children(recursive=True)
                for process in processes:
                    # PSS counts memory that forked processes share once.
                    memory = process.memory_full_info()
                    print(f"  pid {process.pid}: {memory.pss / MIB:.0f} MiB", process.name())
                total = sum(process.memory_full_info().pss for process in processes)
                print(f"agent with {count} stopped connectors: {total / MIB:.0f} MiB in all")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connectors", type=int, default=10_000)
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--stopped", type=int, default=1_000)
    options = parser.parse_args()
    measure_elections(options.connectors, options.tasks, options.members)
    if options.stopped:
        measure_stopped_connectors(options.stopped)
