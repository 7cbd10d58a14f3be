"""The division of work between tasks, from the config topic. Pure.

A leader writes every task's configuration and then a commit with their number; only what a commit
closed is in force. The topic is compacted: the last set of each connector is whole, earlier ones
may have lost configurations and are then not known.

Configurations prove that two tasks were assigned the same source, not that both read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyconnect_clients.connect_names import COMMIT, CONNECTOR, TASK, split_task
from pyconnect_reconcile.findings import Finding, Place, Severity

KEYS = (CONNECTOR, TASK, COMMIT)
Properties = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSet:
    """Configurations of all tasks of a connector, in force since the commit at `place`."""

    place: Place
    connector: str
    tasks: Mapping[int, Properties]

    @property
    def since_ms(self) -> int:
        """When it was committed."""
        return self.place.timestamp_ms or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Tasks that were assigned the same source; no `properties`: equal configurations."""

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
    """The state that the records lead to, and every whole set of task configurations."""

    def __init__(self, records: Iterable[tuple[Place, bytes | None]] = ()) -> None:
        """Apply records in the order of their offsets; the key is the place's."""
        self._sets: dict[str, list[TaskSet]] = {}
        self._known: set[str] = set()
        self._written: dict[str, dict[int, Properties]] = {}
        for place, value in sorted(records, key=lambda record: record[0].offset or 0):
            try:
                content = json.loads(value) if value and value.strip() else None
            except ValueError:
                content = {}
            # Empty ones and JSON's null remove, as tombstones do.
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
    """Return the tasks that were assigned a source partition (JSON), None for less than two.

    A task is assigned it if its configuration holds every text of the source partition, one of
    them in a property that is not the same for all tasks: those are what divides the work.
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
    """Return the tasks that have the same configuration as another one."""
    alike: dict[str, list[int]] = {}
    for number, properties in tasks.tasks.items():
        alike.setdefault(json.dumps(properties, sort_keys=True), []).append(number)
    most = max(alike.values(), key=len, default=[])
    return Shared(tasks=tuple(sorted(most))) if len(most) > 1 else None


def overlap(tasks: TaskSet, shared: Shared, source: str | None) -> Finding:
    """Return a note about shared tasks; `source` None: about all sources of the connector."""
    what = "every source partition" if source is None else source
    return Finding(
        kind="overlapping-tasks",
        severity=Severity.NOTE,
        message=f"{shared}: each task reads {what} and overwrites the offset of the others,"
        " unless the connector divides the work in another way",
        topic=tasks.place.topic,
        group=tasks.connector,
        count=len(shared.tasks),
        copies=(tasks.place,),
    )
