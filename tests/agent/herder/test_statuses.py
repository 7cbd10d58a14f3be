"""Statuses in the herder, over the memory store."""

from collections.abc import Iterator

import pytest

from pyconnect_agent.core.group_protocol import Work
from pyconnect_agent.core.ids import ConnectorTaskId, Instance, State
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot
from pyconnect_agent.core.reporting import Status
from pyconnect_agent.herder.performer import StatusView
from pyconnect_agent.stores import MemoryLog
from pyconnect_agent.stores.status import StatusStore

RUNNING = Status(state=State.RUNNING, worker_id="w:1", generation=3)
ONE_TASK = ConfigSnapshot(connector_configs={"kept": {}}, task_counts={"kept": 1})


class DeletionsStore(StatusStore):
    """Remembers what was deleted, whether it was known or not."""

    def __init__(self) -> None:
        super().__init__(MemoryLog())
        self.deleted: list[str] = []

    def delete(self, item: Instance) -> None:
        self.deleted.append(str(item))
        super().delete(item)


@pytest.fixture
def store() -> Iterator[DeletionsStore]:
    store = DeletionsStore()
    store.start()
    yield store
    store.stop()


def view(store: StatusStore) -> StatusView:
    return StatusView(store, lambda config: "unknown" if config is None else "source")


def test_statuses_of_vanished_work_are_tombstoned_tasks_first(store: DeletionsStore) -> None:
    """Connectors without a config and tasks beyond the task count go, everything else stays."""
    for name in ("kept", "gone"):
        store.put(name, RUNNING)
        for number in (0, 1):
            store.put(ConnectorTaskId(name, number), RUNNING)
    view(store).clean(ONE_TASK, Work())
    assert store.deleted == ["gone-0", "gone-1", "kept-1", "gone"]
    assert store.connectors() == {"kept"}
    assert list(store.tasks("kept")) == [0]


def test_revoked_work_is_tombstoned_before_its_status_is_read(store: DeletionsStore) -> None:
    """Its last status is on the way to the topic only; the tombstone has to follow it."""
    revoked = Work.of(["gone", "kept"], [ConnectorTaskId("kept", n) for n in (0, 1)])
    view(store).clean(ONE_TASK, revoked)
    assert store.deleted == ["kept-1", "gone"]


def test_a_state_info_lists_tasks_by_number(store: DeletionsStore) -> None:
    """The type comes from the config, and is unknown when that is gone."""
    store.put("kept", RUNNING)
    for number in (10, 2):
        store.put(ConnectorTaskId("kept", number), RUNNING)
    info = view(store).state_info("kept", ONE_TASK)
    assert info is not None
    assert [number for number, _ in info.tasks] == [2, 10]
    assert info.type == "source"
    gone = view(store).state_info("kept", ConfigSnapshot())
    assert gone is not None
    assert gone.type == "unknown"
    assert view(store).state_info("none", ONE_TASK) is None
