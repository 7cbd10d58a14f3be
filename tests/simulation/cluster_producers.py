"""Exactly-once source tasks of a simulated cluster, and which of them could write (KIP-618).

The transaction coordinator knows an epoch per transactional id: the producer that initialised the
id last may write. A task's process initialises, asks its worker, and writes once it is allowed to
begin. These rules are checked at each of these moments, whichever workers are cut off from the
group at that time:

- no task starts without a clearance: its worker has read a count record that is newer than the
  task set;
- a count record is written only after the tasks that the last one counts were fenced, and they are
  fenced after the newest task set was written (one task that follows one task fences it itself);
- of the tasks that could write none is of another task set, and no two have one id.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyconnect_agent.core.herder import effects as do
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder.requests import FenceZombies
from pyconnect_agent.core.herder.state import HerderSettings
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_clients.connect_names import task_transactional_id, task_transactional_ids
from tests.simulation.cluster_worker import Worker
from tests.simulation.herder_surroundings import Answer, FakeTask

if TYPE_CHECKING:
    from tests.simulation.cluster_world import Cluster

GROUP_ID = "group"


@dataclass(slots=True, eq=False)
class Instance:
    """A task's process. `task_set`: the position of the commit record that it was started from."""

    worker: Worker
    task_id: ConnectorTaskId
    process: FakeTask
    task_set: int
    epoch: int | None = None
    may_begin: bool = False

    @property
    def lives(self) -> bool:
        return self.worker.tasks.get(self.task_id) is self.process

    @property
    def transactional_id(self) -> str:
        return task_transactional_id(GROUP_ID, self.task_id.connector, self.task_id.task)


@dataclass(slots=True)
class Producers:
    """The producers of a cluster. `fenced_at`: the log's length when a round last fenced an id."""

    log: list[LogRecord]
    epochs: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    fenced_at: dict[str, int] = field(default_factory=dict)
    instances: list[Instance] = field(default_factory=list)

    def started(self, instance: Instance, read: int) -> None:
        """Check a task's start. `read`: the number of log records that its worker has read."""
        counted = self._last(f"tasks-fencing-{instance.task_id.connector}", read)
        assert counted > instance.task_set, f"{instance.task_id} starts without a clearance"
        self.instances.append(instance)

    def initialise(self, transactional_id: str) -> int:
        """Return the id's next epoch: earlier producers with the id can write no more."""
        self.epochs[transactional_id] += 1
        return self.epochs[transactional_id]

    def fence(self, transactional_ids: tuple[str, ...]) -> None:
        for transactional_id in transactional_ids:
            self.initialise(transactional_id)
            self.fenced_at[transactional_id] = len(self.log)

    def check_count_record(self, connector: str, task_count: int, read: int) -> None:
        last = self._last(f"tasks-fencing-{connector}", read)
        if last < 0:
            return
        counted = int(json.loads(self.log[last].value or b"")["task-count"])
        if counted == task_count == 1:
            return
        task_set = self.task_set(connector, read)
        for transactional_id in task_transactional_ids(GROUP_ID, connector, counted):
            fenced = self.fenced_at.get(transactional_id, -1)
            assert fenced > task_set, f"{transactional_id} was not fenced"

    def writers(self, connector: str) -> list[Instance]:
        """Return the producers that could write now."""
        return [
            instance
            for instance in self.instances
            if instance.task_id.connector == connector
            and instance.lives
            and instance.may_begin
            and instance.epoch == self.epochs[instance.transactional_id]
        ]

    def check_writers(self, connector: str) -> None:
        writers = self.writers(connector)
        task_sets = {instance.task_set for instance in writers}
        assert len(task_sets) <= 1, f"tasks of {connector} from several task sets can write"
        ids = [instance.task_id for instance in writers]
        assert len(ids) == len(set(ids)), f"two instances can write: {ids}"

    def task_set(self, connector: str, read: int) -> int:
        return self._last(f"commit-{connector}", read)

    def _last(self, key: str, read: int) -> int:
        """Return the position of the newest read record with this key; -1 for none."""
        found = (at for at in range(read - 1, -1, -1) if self.log[at].key == key.encode())
        return next(found, -1)


class ExactlyOnceWorker(Worker):
    """A worker at `enabled`; its tasks report RUNNING when they may begin."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.producers = cluster.producers
        super().__init__(cluster, name, exactly_once=True)

    def _settings(self) -> HerderSettings:
        return super()._settings(exactly_once_source=True, group_id=GROUP_ID)

    def _perform_on_topics(self, effect: do.Effect) -> None:
        if isinstance(effect, do.WriteTaskCountRecord):
            count = effect.task_count
            self.producers.check_count_record(effect.connector, count, self.tailed)
        super()._perform_on_topics(effect)

    def _perform_on_producers(self, effect: do.Effect) -> None:
        match effect:
            case do.FenceProducers(effect_id=effect_id):
                ids = (*effect.transactional_ids, *effect.ids_if_permitted)
                self._later("fencing", effect_id, lambda: self.producers.fence(ids))
            case do.RequestFencing(leader_url=str()):
                self._ask_leader(effect, FenceZombies(connector=effect.connector))
            case do.AnswerTaskStart():
                self._task_start_answered(effect)
            case _:
                super()._perform_on_producers(effect)

    def _start_task(self, effect: do.StartTask) -> None:
        super()._start_task(effect)
        # The task reports when it has begun.
        self.answers.pop()
        task_id = effect.task_id
        task_set = self.producers.task_set(task_id.connector, self.tailed)
        instance = Instance(self, task_id, self.tasks[task_id], task_set)
        self.producers.started(instance, self.tailed)
        number = len(self.producers.instances) - 1

        def initialise(well: bool) -> None:
            if not instance.lives:
                return
            if not well:
                self.fail(task_id)
                return
            instance.epoch = self.producers.initialise(instance.transactional_id)
            self.inbox.append(on.TaskStartAsked(task_id=task_id, request_id=number))
            self.producers.check_writers(task_id.connector)

        self.answers.append(Answer(f"task {task_id}", initialise))

    def _task_start_answered(self, effect: do.AnswerTaskStart) -> None:
        instance = self.producers.instances[effect.request_id]
        if not instance.lives:
            return
        if effect.refusal is not None:
            self.fail(effect.task_id)
            return
        instance.may_begin = True
        self.producers.check_writers(effect.task_id.connector)
        self._will_report(effect.task_id)
