"""Kills and freezes of agents while lines are appended, and what readers get in the end.

Agents of one cluster run file connectors, some of one task and some of several, whose number
changes: each change assigns their files to other tasks. Some may be Apache's, in Java, with sinks
behind them. Random blows hit a worker process, a task's process or its Java process alone, or a
whole host; frozen processes continue after their session is over. FAILED tasks are restarted as
by an operator. Everything random comes from one seed, but the state that a blow meets depends on
the machine.
"""

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum
from http.client import HTTPException
from pathlib import Path
from queue import Empty, SimpleQueue

import psutil

from tests.support.agents.agent import Agent
from tests.support.chaos.chaos_lines import (
    FILES_OF_MANY,
    JAVA_SOURCE,
    LineReader,
    Sink,
    SteadyLines,
    read_everything,
    subject_of,
)
from tests.support.servers.cluster import SESSION_MS, Cluster, status_faults, statuses_in
from tests.support.servers.topics import aborted_transactions, create_topics

ENABLED = {"exactly.once.source.support": "enabled", "task.shutdown.graceful.timeout.ms": "2000"}
OUT_OF_REACH = (OSError, HTTPException)
SETTLE_S = 240.0
STATUS_S = 60.0
LOOK_S = 0.1
KINDS = 4


class Blow(Enum):
    """An event that can hit an agent or a connector."""

    KILL_SUPERVISOR = "kill supervisor"
    KILL_TASK = "kill task"
    KILL_JAVA = "kill Java process"
    KILL_BOTH = "kill both"
    FREEZE_SUPERVISOR = "freeze supervisor"
    FREEZE_TASK = "freeze task"
    FREEZE_BOTH = "freeze both"
    RECONFIGURE = "reconfigure"


@dataclass(kw_only=True)
class Report:
    """Actions of a run and their results; `aborted` counts records that readers of committed
    records do not see.
    """

    seed: int
    seconds: float = 0.0
    blows: Counter[Blow] = field(default_factory=Counter)
    restarts: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    lines: int = 0
    aborted: int = 0
    aborted_transactions: int = 0
    missing_in_sinks: int = 0
    duplicates: int = 0
    missing: int = 0
    comparisons: int = 0
    status_faults: list[str] = field(default_factory=list)
    """Statuses that differ from the running processes for long after the recovery."""
    gaps: list[str] = field(default_factory=list)
    """Places of missing lines: connector, topic or file, and the ranges of the lines."""

    def summary(self) -> str:
        counts = sorted((blow.value, count) for blow, count in self.blows.items())
        blows = ", ".join(f"{count} {blow}" for blow, count in counts)
        return (
            f"seed {self.seed}: {self.lines} lines in {self.seconds:.0f} s; {blows};"
            f" {self.restarts} restarts of failed tasks; {self.aborted_transactions} aborted"
            f" transactions of {self.aborted} records, {self.comparisons} comparisons of statuses"
            f" with processes, {self.duplicates} duplicates,"
            f" {self.missing} missing, {self.missing_in_sinks} missing in files of sinks"
        )

    def note_gap(self, connector: str, place: str, missing: AbstractSet[int]) -> None:
        """Note the missing lines of one place, if there are any."""
        if missing:
            ranges = ", ".join(f"{first}-{last}" for first, last in ranges_of(missing))
            self.gaps.append(f"{connector}, {place}: lines {ranges}")


def ranges_of(numbers: AbstractSet[int]) -> Sequence[tuple[int, int]]:
    """Return the first and the last number of each unbroken run."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ranges


class Operator:
    """An operator that restarts FAILED tasks through any agent that answers, until dismissed.

    The operator has a thread of its own, because an answer may wait for a frozen leader.
    """

    def __init__(
        self, agents: Callable[[], Sequence[Agent]], names: Sequence[str], report: Report
    ) -> None:
        self._agents = agents
        self._names = names
        self._report = report
        self._wanted: SimpleQueue[tuple[str, Mapping[str, str]]] = SimpleQueue()
        self._dismissed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="operator", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def reconfigure(self, name: str, config: Mapping[str, str]) -> None:
        """Have a connector reconfigured soon."""
        self._wanted.put((name, config))

    def dismiss(self) -> None:
        self._dismissed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._dismissed.wait(0.5):
            with contextlib.suppress(Empty, *OUT_OF_REACH):
                name, config = self._wanted.get_nowait()
                for agent in self._agents()[-1:]:
                    agent.call("PUT", f"/connectors/{name}/config", config)
            for name in self._names:
                # The asked agent may die or freeze meanwhile; then another agent is asked next
                # time.
                with contextlib.suppress(*OUT_OF_REACH):
                    self._look_after(name)

    def _look_after(self, name: str) -> None:
        for agent in self._agents()[:1]:
            answer = agent.call("GET", f"/connectors/{name}/status")
            if answer.status != 200:
                return
            status = answer.json()
            failed = [part for part in status["tasks"] if part["state"] == "FAILED"]
            if status["connector"]["state"] == "FAILED":
                failed.append(status["connector"])
            if not failed:
                return
            path = f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true"
            if agent.call("POST", path).status == 202:
                self._report.restarts += 1
                self._report.reasons.update(_reason(part["trace"]) for part in failed)


class Chaos:
    """One run; `directory` gets the connectors' files."""

    def __init__(
        self,
        cluster: Cluster,
        bootstrap_servers: str,
        directory: Path,
        *,
        seed: int,
        connectors: int = 3,
        with_several_tasks: int = 2,
        in_java: int = 0,
        lines_per_s: int = 100,
        exactly_once: bool = True,
    ) -> None:
        """`in_java`: so many more sources, each with a sink behind it; both need their jar."""
        self.report = Report(seed=seed)
        of_python = connectors + with_several_tasks
        self.subjects = [
            subject_of(number, 1 if number < connectors else FILES_OF_MANY, directory)
            for number in range(of_python)
        ] + [subject_of(of_python + number, 1, directory, JAVA_SOURCE) for number in range(in_java)]
        self.sinks = [
            Sink(name=f"{subject.name}-sink", topic=topic, file=directory / f"{subject.name}.copy")
            for subject in self.subjects[of_python:]
            for topic in subject.files
        ]
        self._blows = [blow for blow in Blow if in_java or blow is not Blow.KILL_JAVA]
        self.files = {t: file for subject in self.subjects for t, file in subject.files.items()}
        self._cluster = cluster
        self._bootstrap_servers = bootstrap_servers
        self._random = random.Random(seed)
        self._exactly_once = exactly_once
        self._lines = SteadyLines(list(self.files.values()), lines_per_s, seed)
        # Recoveries that are due, by the agent that was hit.
        self._recoveries: dict[Agent, tuple[float, Callable[[], object]]] = {}
        names = [each.name for each in self.subjects] + [each.name for each in self.sinks]
        self._operator = Operator(self._sound, names, self.report)

    def run(self, seconds: float) -> None:
        """Cause trouble for at least so long, repair everything, compare, and fill `report`."""
        create_topics(self._bootstrap_servers, list(self.files))
        for file in self.files.values():
            file.touch()
        tasks = {subject.name: len(subject.files) for subject in self.subjects}
        for subject in self.subjects:
            config = subject.config(tasks[subject.name], exactly_once=self._exactly_once)
            self._cluster.agents[0].create(subject.name, config)
        for sink in self.sinks:
            self._cluster.agents[0].create(sink.name, sink.config())
            tasks[sink.name] = 1
        self._cluster.wait_until_running(tasks, 60)
        reader = LineReader(self._bootstrap_servers, list(self.files), committed=self._exactly_once)
        began_s = time.monotonic()
        self._lines.start()
        self._operator.start()
        try:
            self._trouble(reader, began_s + seconds)
            self._recover_all()
            self._lines.finish()
            self.report.seconds = time.monotonic() - began_s
            self._read_to_the_end(reader)
            self._compare_statuses(reader)
        finally:
            reader.close()
            self._recover_all()
            self._operator.dismiss()
        self._compare(reader)

    def expected(self) -> Mapping[str, int]:
        """Return the number of written lines by topic."""
        return {topic: self._lines.written[file] for topic, file in self.files.items()}

    # trouble

    def _trouble(self, reader: LineReader, until_s: float) -> None:
        next_s = time.monotonic() + 1
        while (now_s := time.monotonic()) < until_s or not self._has_hit():
            reader.read(LOOK_S)
            for agent, (due_s, recover) in list(self._recoveries.items()):
                if now_s >= due_s:
                    del self._recoveries[agent]
                    recover()
            if now_s >= next_s:
                if not self._recoveries:
                    self._compare_statuses(reader)
                next_s = time.monotonic() + self._random.uniform(1.0, 4.0)
                self._strike()

    def _has_hit(self) -> bool:
        """Return whether there were several kinds of blows, and one hit a transaction.

        A slow machine has fewer of both in the same time.
        """
        if not self._exactly_once:
            return True
        return len(self.report.blows) >= min(KINDS, len(self._blows)) and (
            aborted_transactions(self._bootstrap_servers, self.files) > 0
        )

    def _sound(self) -> list[Agent]:
        return [agent for agent in self._cluster.agents if agent not in self._recoveries]

    def _strike(self) -> None:
        """Strike once more, while at least two of three agents are sound."""
        sound = self._sound()
        blow = self._random.choice(self._blows)
        agent = self._random.choice(sound)
        if blow is not Blow.RECONFIGURE and len(sound) < 2:
            return
        with contextlib.suppress(*OUT_OF_REACH, StopIteration, psutil.NoSuchProcess):
            self._perform(blow, agent)
            self.report.blows[blow] += 1

    def _perform(self, blow: Blow, agent: Agent) -> None:
        process = agent.process
        past_session_s = SESSION_MS / 1000 + self._random.uniform(0.5, 4.0)
        soon_s = self._random.uniform(0.0, past_session_s)
        match blow:
            case Blow.KILL_SUPERVISOR:
                os.kill(process.pid, signal.SIGKILL)
                self._recover_in(agent, soon_s, process.launch)
            case Blow.KILL_BOTH:
                process.kill()
                self._recover_in(agent, soon_s, process.launch)
            case Blow.KILL_TASK:
                os.kill(self._task_pid(agent), signal.SIGKILL)
            case Blow.KILL_JAVA:
                os.kill(self._java_pid(), signal.SIGKILL)
            case Blow.FREEZE_SUPERVISOR:
                _freeze(process.pid)
                self._recover_in(agent, past_session_s, lambda: _thaw(process.pid))
            case Blow.FREEZE_TASK:
                pid = self._task_pid(agent)
                _freeze(pid)
                self._recover_in(agent, past_session_s, lambda: _thaw(pid))
            case Blow.FREEZE_BOTH:
                process.suspend()
                self._recover_in(agent, past_session_s, process.resume)
            case Blow.RECONFIGURE:
                subject = self._random.choice(self.subjects)
                tasks = self._random.randint(1, len(subject.files))
                config = subject.config(tasks, exactly_once=self._exactly_once)
                # A new value makes the connector create new tasks.
                config |= {"errors.retry.timeout": str(_now_ms() % 1000)}
                self._operator.reconfigure(subject.name, config)

    def _task_pid(self, agent: Agent) -> int:
        """Return the process of a task; raise StopIteration when the agent runs none."""
        return next(iter(self._task_pids(agent)))

    def _task_pids(self, agent: Agent) -> Sequence[int]:
        tasks = [task for task in agent.get("/agent/tasks") if task["task"] is not None]
        self._random.shuffle(tasks)
        return [int(task["pid"]) for task in tasks if task["pid"] is not None]

    def _java_pid(self) -> int:
        """Return the Java process of any task; raise StopIteration when there is none."""
        return next(
            child.pid
            for agent in self._sound()
            for pid in self._task_pids(agent)
            for child in psutil.Process(pid).children()
            if child.name() == "java"
        )

    def _recover_in(self, agent: Agent, after_s: float, recover: Callable[[], object]) -> None:
        self._recoveries[agent] = (time.monotonic() + after_s, recover)

    def _recover_all(self) -> None:
        recoveries, self._recoveries = self._recoveries, {}
        for _, recover in recoveries.values():
            recover()

    # the results

    def _compare_statuses(self, reader: LineReader) -> None:
        """Wait until REST and the status topic agree with the processes; else note the faults."""
        deadline_s = time.monotonic() + STATUS_S
        while faults := self._status_faults():
            if time.monotonic() > deadline_s:
                self.report.status_faults += faults
                return
            reader.read(LOOK_S)
        self.report.comparisons += 1

    def _status_faults(self) -> list[str]:
        try:
            topic = f"{self._cluster.group_id}-status"
            written = statuses_in(self._bootstrap_servers, topic)
            return status_faults(self._cluster.agents, written)
        except (*OUT_OF_REACH, AssertionError, psutil.NoSuchProcess) as error:
            return [repr(error)]

    def _read_to_the_end(self, reader: LineReader) -> None:
        expected = self.expected()
        deadline_s = time.monotonic() + SETTLE_S
        while (
            any(len(set(reader.seen[topic])) < last for topic, last in expected.items())
            or self._missing_in_sinks()
        ):
            if time.monotonic() > deadline_s:
                return
            reader.read(LOOK_S)
        # Records that were written twice may still follow.
        while reader.read(1.0):
            continue

    def _missing_in_sinks(self) -> int:
        expected = self.expected()
        return sum(
            len(set(range(1, expected[sink.topic] + 1)) - sink.lines()) for sink in self.sinks
        )

    def _compare(self, reader: LineReader) -> None:
        report = self.report
        everything = read_everything(self._bootstrap_servers, list(self.files), committed=False)
        report.aborted = sum(map(len, everything.values())) - reader.count()
        report.aborted_transactions = aborted_transactions(self._bootstrap_servers, self.files)
        expected = self.expected()
        for sink in self.sinks:
            missing = set(range(1, expected[sink.topic] + 1)) - sink.lines()
            report.missing_in_sinks += len(missing)
            report.note_gap(sink.name, sink.file.name, missing)
        for subject in self.subjects:
            for topic in subject.files:
                seen = reader.seen[topic]
                missing = set(range(1, expected[topic] + 1)) - set(seen)
                report.lines += expected[topic]
                report.duplicates += len(seen) - len(set(seen))
                report.missing += len(missing)
                report.note_gap(subject.name, topic, missing)
        self.seen = reader.seen


def _reason(trace: str) -> str:
    """Return the most informative line of a trace: its first."""
    return trace.splitlines()[0] if trace else ""


def _freeze(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)


def _thaw(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def _now_ms() -> int:
    return int(time.monotonic() * 1000)
