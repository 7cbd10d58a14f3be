"""Records of an Apache worker in the internal topics, read by our stores."""

from typing import Any

import pytest

from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.offsets.source import parse_offset, partition_key
from pyconnect_agent.stores.config import ConfigStore
from pyconnect_agent.stores.offset import KafkaOffsetStore
from pyconnect_agent.stores.status import StatusStore
from tests.java.internal_topics.java_scenario import ODD_TEXT, TIMEOUT_MS, JavaScenario
from tests.support.eventually import eventually

pytestmark = pytest.mark.java


def test_configs_that_java_wrote_are_read_as_its_rest_shows_them(
    scenario: JavaScenario, configs: ConfigStore
) -> None:
    """Configs, tasks, target states, and what was deleted."""
    state = configs.snapshot()
    targets = dict(
        zip(
            scenario.living,
            (TargetState.STARTED, TargetState.STARTED, TargetState.PAUSED, TargetState.STOPPED),
            strict=True,
        )
    )
    for name in scenario.living:
        shown = scenario.rest.get(f"/connectors/{name}")
        assert state.connector_config(name) == shown["config"]
        assert [(t.connector, t.task) for t in state.tasks(name)] == [
            (task["connector"], task["task"]) for task in shown["tasks"]
        ]
        for task in scenario.rest.get(f"/connectors/{name}/tasks"):
            task_id = ConnectorTaskId(task["id"]["connector"], task["id"]["task"])
            assert state.task_config(task_id) == task["config"]
        assert state.target_state(name) is targets[name]
        assert name not in state.inconsistent
        # A connector created paused has never made task configs.
        assert state.applied_config(name) == (None if name == scenario.paused else shown["config"])
    assert (state.connector_config(scenario.source) or {})["odd"] == ODD_TEXT
    assert not state.contains(scenario.deleted)
    assert state.target_state(scenario.deleted) is None
    assert state.task_count(scenario.deleted) == 0


def test_statuses_that_java_wrote_are_read_as_its_rest_shows_them(
    scenario: JavaScenario, statuses: StatusStore
) -> None:
    """State, worker, trace and plugin version of connectors and tasks; active topics."""
    for name in scenario.living:
        shown = scenario.rest.get(f"/connectors/{name}/status")
        found = statuses.connector(name)
        assert found is not None
        assert (found.state.value, found.worker_id, found.version) == (
            shown["connector"]["state"],
            shown["connector"]["worker_id"],
            shown["connector"]["version"],
        )
        assert {
            number: (task.state.value, task.worker_id, task.version)
            for number, task in statuses.tasks(name).items()
            if ConnectorTaskId(name, number) in configs_tasks(shown)
        } == {
            task["id"]: (task["state"], task["worker_id"], task["version"])
            for task in shown["tasks"]
        }
        topics = scenario.rest.get(f"/connectors/{name}/topics")[name]["topics"]
        assert list(statuses.topics(name)) == sorted(topics)
    assert statuses.topics(scenario.source) != ()
    eventually(lambda: statuses.connector(scenario.deleted) is None)


def configs_tasks(shown: Any) -> set[ConnectorTaskId]:
    return {ConnectorTaskId(shown["name"], task["id"]) for task in shown["tasks"]}


def test_offsets_that_java_wrote_are_read_as_its_rest_shows_them(
    scenario: JavaScenario, offsets: KafkaOffsetStore
) -> None:
    """By connector, and by a key that our own source task would make."""
    shown = scenario.rest.get(f"/connectors/{scenario.source}/offsets")["offsets"]
    (entry,) = shown
    key = partition_key(scenario.source, entry["partition"])
    found = offsets.read([key], TIMEOUT_MS)[key]
    assert parse_offset(found) == entry["offset"] == {"position": 13}
    assert offsets.connector_entries(scenario.source) == {key: found}
