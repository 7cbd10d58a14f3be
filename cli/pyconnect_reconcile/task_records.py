"""Evidence about the tasks of a Connect cluster in its status topic and config topic. Pure.

Both topics are compacted: a record that is gone proves nothing, so every answer is about the
records that are left.

A worker reports a task's state with its own address and the generation of the group that it
knows; times are those of the workers' clocks. A worker that reports a state in HOLDING had the
task then. One that was replaced without UNASSIGNED has crashed, or still runs; the topic cannot
show which.

A leader writes every task's configuration and then a commit with their number; only configurations
with such a commit are in force. The last set of each connector is whole. Earlier sets may have lost
configurations and are then not known. Sets prove that two tasks were assigned the same source, not
that both read it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyconnect_clients.connect_names import (
    COMMIT,
    CONNECTOR,
    STATUS_CONNECTOR,
    STATUS_TASK,
    TASK,
    split_task,
)
from pyconnect_reconcile.findings import Finding, Place, error, note

STATUS_KEYS = (STATUS_TASK, STATUS_CONNECTOR)
# States of a task that a worker holds; in other states the task is not assigned or has ended.
HOLDING = frozenset({"RUNNING", "PAUSED", "RESTARTING"})
STOPPED = "STOPPED"
COPIES_KEPT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusReport:
    """One record about a task, or about the connector (`task` None); `state` None is a removal."""

    place: Place
    connector: str
    task: int | None
    state: str | None
    worker: str = ""
    generation: int = -1

    @property
    def time_ms(self) -> int:
        """The time of the report."""
        return self.place.timestamp_ms or 0


class Takeover(NamedTuple):
    """A task that a worker ran although the worker before had not reported its end."""

    before: StatusReport
    after: StatusReport


def read_status(place: Place, fields: Mapping[str, object] | None) -> StatusReport | None:
    """Read the status record at a place, which has the key; `fields` None is a removal.

    Returns None for a record that is not a status of a task or connector.
    """
    key = place.key or ""
    task: int | None = None
    if key.startswith(STATUS_TASK):
        found = split_task(key.removeprefix(STATUS_TASK))
        if found is None:
            return None
        connector, task = found
    elif not (connector := key.removeprefix(STATUS_CONNECTOR)) or connector == key:
        return None
    if fields is None:
        return StatusReport(place=place, connector=connector, task=task, state=None)
    state, worker, generation = (fields.get(name) for name in ("state", "worker_id", "generation"))
    if not (isinstance(state, str) and isinstance(worker, str) and isinstance(generation, int)):
        return None
    return StatusReport(
        place=place,
        connector=connector,
        task=task,
        state=state,
        worker=worker,
        generation=generation,
    )


class Statuses:
    """The reports of all connectors and tasks, each key in the order of the log."""

    def __init__(self, statuses: Iterable[StatusReport] = ()) -> None:
        self._by_key: dict[tuple[str, int | None], list[StatusReport]] = {}
        # The log's order does not depend on the workers' clocks; a key is in one partition.
        for status in sorted(statuses, key=lambda s: (s.place.partition or 0, s.place.offset or 0)):
            self._by_key.setdefault((status.connector, status.task), []).append(status)

    def double_runs(self) -> list[Finding]:
        """Return a finding for each pair of workers that held a task at once, with the proofs."""
        found: list[Finding] = []
        for (_, task), history in sorted(self._by_key.items(), key=lambda item: str(item[0])):
            # Reports in several partitions have no order: their writers had different partitioners.
            if task is None or len({status.place.partition for status in history}) > 1:
                continue
            proofs: dict[frozenset[str], list[tuple[StatusReport, StatusReport]]] = {}
            for index, status in enumerate(history):
                if status.state not in HOLDING:
                    continue
                if (other := _held_meanwhile(history[:index], status)) is not None:
                    pair = frozenset({other.worker, status.worker})
                    proofs.setdefault(pair, []).append((other, status))
            for pairs in proofs.values():
                other, status = pairs[0]
                places = dict.fromkeys(each.place for proof in pairs for each in proof)
                finding = error(
                    kind="double-run",
                    message=f"task {status.task} was held by two workers at once: {other.worker}"
                    f" reported {other.state} in generation {other.generation}, and after that"
                    f" {status.worker} reported {status.state} in generation {status.generation}."
                    " One of the workers missed a rebalance, or another Connect cluster uses the"
                    " same topics. Stop the worker that the cluster does not name, then look for"
                    " duplicates in the connector's topics",
                    topic=status.place.topic,
                    group=status.connector,
                    count=len(pairs),
                    copies=tuple(places)[:COPIES_KEPT],
                )
                found.append(finding)
        return found

    def stopped_at(self, connector: str, time_ms: int) -> bool | None:
        """Return whether a connector was stopped and held no task; None when it is not known.

        Reports of the same millisecond count as later: a task commits before it ends.
        """
        last = _last(self._by_key.get((connector, None), ()), time_ms - 1)
        if last is None or last.state is None:
            return None
        return last.state == STOPPED and not self.holders_at(connector, time_ms - 1)

    def holders_at(self, connector: str, time_ms: int) -> list[StatusReport]:
        """Return the last reports of the tasks that were held at a time, by task."""
        found = [
            status
            for (name, task), history in self._by_key.items()
            if name == connector
            and task is not None
            and (status := _last(history, time_ms)) is not None
            and status.state in HOLDING
        ]
        return sorted(found, key=lambda status: status.task or 0)

    def takeovers(self, connector: str | None = None) -> list[Takeover]:
        """Return the takeovers of a connector's tasks, or of all, the earliest first."""
        found = []
        for (name, task), history in self._by_key.items():
            if task is None or connector not in {None, name}:
                continue
            holder: StatusReport | None = None
            for status in history:
                if status.state in HOLDING:
                    if holder is not None and holder.worker != status.worker:
                        found.append(Takeover(holder, status))
                    holder = status
                elif holder is not None and status.worker in {"", holder.worker}:
                    holder = None
        return sorted(found, key=lambda takeover: takeover.after.time_ms)


def _last(history: Sequence[StatusReport], time_ms: int) -> StatusReport | None:
    return next((each for each in reversed(history) if each.time_ms <= time_ms), None)


def _held_meanwhile(before: Sequence[StatusReport], status: StatusReport) -> StatusReport | None:
    """Return the report of another worker that held the task when `status` was reported.

    If a worker reports after another one, but in no later generation, it missed the rebalance
    between them. A new group also counts from the beginning: so the worker must have reported
    before the other one, too, and in no later generation.
    """
    ended: set[str] = set()
    rival: StatusReport | None = None
    for earlier in reversed(before):
        if earlier.worker == status.worker:
            return rival if earlier.generation <= status.generation else None
        if earlier.state not in HOLDING:
            ended.add(earlier.worker)
        elif earlier.worker not in ended and earlier.generation >= status.generation:
            rival = rival or earlier
    return None


CONFIG_KEYS = (CONNECTOR, TASK, COMMIT)
Properties = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSet:
    """Configurations of all tasks of a connector, in force since the commit at `place`."""

    place: Place
    connector: str
    tasks: Mapping[int, Properties]

    @property
    def since_ms(self) -> int:
        """The time of the commit."""
        return self.place.timestamp_ms or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Tasks that were assigned the same source; `properties` None: equal configurations."""

    tasks: tuple[int, ...]
    properties: tuple[str, ...] | None = None

    def __str__(self) -> str:
        tasks = f"tasks {', '.join(map(str, self.tasks))}"
        if self.properties is None:
            return f"{tasks} have the same configuration"
        return (
            f"the configurations of {tasks} name the same source (in {', '.join(self.properties)})"
        )


class TaskConfigSet:
    """The configured connectors at the end of the records, and every whole set of tasks."""

    def __init__(self, records: Iterable[tuple[Place, bytes | None]] = ()) -> None:
        """Apply records in the order of their offsets; each place has the key."""
        self._sets: dict[str, list[TaskSet]] = {}
        self._known: set[str] = set()
        self._written: dict[str, dict[int, Properties]] = {}
        for place, value in sorted(records, key=lambda record: record[0].offset or 0):
            try:
                content = json.loads(value) if value and value.strip() else None
            except ValueError:
                content = {}
            # Empty values and JSON's null are removals, as tombstones are.
            if not isinstance(content, Mapping | None):
                content = {}
            key = place.key or ""
            if key.startswith(CONNECTOR):
                name = key.removeprefix(CONNECTOR)
                if content is None:
                    self._known.discard(name)
                    self._written.pop(name, None)
                else:
                    self._known.add(name)
            elif key.startswith(TASK):
                task = split_task(key.removeprefix(TASK))
                properties = (content or {}).get("properties")
                if task is not None and isinstance(properties, Mapping):
                    name, number = task
                    texts = {str(each): str(value) for each, value in properties.items()}
                    self._written.setdefault(name, {})[number] = texts
            elif key.startswith(COMMIT):
                name, count = key.removeprefix(COMMIT), (content or {}).get("tasks")
                written = self._written.pop(name, {})
                if isinstance(count, int) and written.keys() >= set(range(count)):
                    tasks = {number: written[number] for number in range(count)}
                    found = TaskSet(place=place, connector=name, tasks=tasks)
                    self._sets.setdefault(name, []).append(found)

    @property
    def connectors(self) -> frozenset[str]:
        """The connectors that are configured at the end."""
        return frozenset(self._known)

    @property
    def count(self) -> int:
        """The number of known sets."""
        return sum(map(len, self._sets.values()))

    def in_force(self, connector: str, time_ms: int | None = None) -> TaskSet | None:
        """Return the set in force at a time (None: the last); None when it is not known."""
        sets = self._sets.get(connector, [])
        if time_ms is None:
            return sets[-1] if sets else None
        return next((each for each in reversed(sets) if each.since_ms <= time_ms), None)


def sharing(tasks: TaskSet, source: str) -> Shared | None:
    """Return the tasks that were assigned a source partition (JSON), None for fewer than two.

    A task counts if its configuration holds every text of the source partition, one of them in a
    property that is not the same for all tasks: such properties divide the work.
    """
    if (equal := equal_tasks(tasks)) is not None:
        return equal
    members = json.loads(source)
    if not isinstance(members, Mapping):
        return None
    texts = {value for value in members.values() if isinstance(value, str) and value}
    dividing = {
        name
        for properties in tasks.tasks.values()
        for name in properties
        if len({each.get(name) for each in tasks.tasks.values()}) > 1
    }
    told: dict[int, set[str]] = {}
    for number, properties in tasks.tasks.items():
        holding = {
            name: {value, *map(str.strip, value.split(","))} & texts
            for name, value in properties.items()
        }
        if texts and set().union(*holding.values()) == texts:
            names = {name for name in dividing if holding.get(name)}
            if names:
                told[number] = names
    if len(told) < 2:
        return None
    return Shared(tasks=tuple(sorted(told)), properties=tuple(sorted(set().union(*told.values()))))


def equal_tasks(tasks: TaskSet) -> Shared | None:
    """Return the largest group of tasks with equal configurations; None without one."""
    alike: dict[str, list[int]] = {}
    for number, properties in tasks.tasks.items():
        alike.setdefault(json.dumps(properties, sort_keys=True), []).append(number)
    most = max(alike.values(), key=len, default=[])
    return Shared(tasks=tuple(sorted(most))) if len(most) > 1 else None


def overlap(tasks: TaskSet, shared: Shared, source: str | None) -> Finding:
    """Return a note about shared tasks; `source` None: about all sources of the connector."""
    what = "every source partition" if source is None else source
    return note(
        kind="overlapping-tasks",
        message=f"{shared}: each task reads {what} and overwrites the offset of the others,"
        " unless the connector divides the work in another way",
        topic=tasks.place.topic,
        group=tasks.connector,
        count=len(shared.tasks),
        copies=(tasks.place,),
    )
