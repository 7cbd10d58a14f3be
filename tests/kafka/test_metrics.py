"""The metrics of a worker over HTTP while connectors run on a real broker."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents.agent import (
    Agent,
    Agents,
    append_lines,
    emptied,
    sink_config,
    source_config,
)
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.sources import ASYNC_SOURCE

pytestmark = pytest.mark.kafka

WAIT_S = 150
LINES = 250
MONITORED = {
    name
    for file in (Path(__file__).parents[2] / "examples/deployment/monitoring").iterdir()
    for name in re.findall(r"\bkafka_connect_\w+", file.read_text("utf-8"))
    if not name.startswith("kafka_connect_agent_restart_metrics_")
}
"""The metrics of the example dashboard and alert rules, without those of a first restart."""


@pytest.fixture(scope="module")
def shared_agent(module_agents: Agents) -> Agent:
    return module_agents.start(properties={"offset.flush.interval.ms": "200"})


@pytest.fixture
def agent(shared_agent: Agent) -> Agent:
    return emptied(shared_agent)


def values(agent: Agent, group: str, **tags: str) -> Mapping[str, Any]:
    """Return values by name of one group of metrics, of a connector, a task or the worker."""
    return {
        metric["name"]: metric["value"]
        for metric in agent.get("/agent/metrics.json")
        if metric["group"] == group and metric["tags"] == tags
    }


def task(agent: Agent, group: str, connector: str) -> Mapping[str, Any]:
    return values(agent, group, connector=connector, task="0")


def told_by(look: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """Look until there are metrics: an answer leaves out a task that is busy for a second."""
    return eventually(look, WAIT_S)


def test_processed_records_are_counted(agent: Agent, tmp_path: Path) -> None:
    """The source, the sink and the worker count records, even after a task has failed."""
    topic, lines, copy = unique_name("measured"), tmp_path / "lines", tmp_path / "copy"
    append_lines(lines, 1, LINES)
    route = {
        "transforms": "route",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": "nothing",
        "transforms.route.replacement": "something",
    }
    agent.create("in", {**source_config(lines, topic), **route})
    agent.create("out", sink_config(copy, topic))

    def source() -> Mapping[str, Any]:
        return task(agent, "source-task-metrics", "in")

    def sink() -> Mapping[str, Any]:
        return task(agent, "sink-task-metrics", "out")

    def committed() -> bool:
        found = sink()
        return (
            found.get("sink-record-send-total") == LINES
            and found["sink-record-active-count"] == 0
            and found["offset-commit-completion-total"] > 0
        )

    eventually(committed, WAIT_S, lambda: str(sink()))
    written = eventually(
        lambda: found if (found := source()).get("source-record-write-total") == LINES else None,
        WAIT_S,
        lambda: str(source()),
    )
    assert written is not None
    assert written["source-record-poll-total"] == LINES
    assert written["source-record-active-count"] == 0
    assert told_by(sink)["sink-record-read-total"] == LINES
    assert told_by(sink)["partition-count"] == 1
    assert told_by(lambda: task(agent, "connector-task-metrics", "out"))["status"] == "running"
    told = told_by(lambda: task(agent, "connector-task-metrics", "in"))
    assert told["running-ratio"] > 0
    assert told["task-class"] == "org.apache.kafka.connect.file.FileStreamSourceTask"
    assert told["value-converter-class"].endswith("StringConverter")
    router = {"connector": "in", "task": "0", "transform": "route"}
    found = told_by(lambda: values(agent, "connector-transform-metrics", **router))
    assert found["transform-class"].endswith("RegexRouter")
    connector = values(agent, "connector-metrics", connector="in")
    assert (connector["status"], connector["connector-type"]) == ("running", "source")
    worker = values(agent, "connect-worker-metrics")
    assert (worker["connector-count"], worker["task-count"]) == (2, 2)
    # This test is the first one with the shared agent.
    assert worker["task-startup-success-total"] == 2
    group = values(agent, "connect-worker-rebalance-metrics")
    assert group["connect-protocol"] == "SESSIONED"
    assert group["completed-rebalances-total"] >= 1
    assert group["leader-name"] == agent.url + "/"

    prefix = "kafka_connect_source_task_metrics_source_record_write_total"
    lines_of_text = {f"# TYPE {prefix} counter", f'{prefix}{{connector="in",task="0"}} {LINES}.0'}
    eventually(lambda: lines_of_text <= set(agent.call("GET", "/agent/metrics").text.splitlines()))

    def unknown_to_the_worker() -> set[str]:
        text = agent.call("GET", "/agent/metrics").text
        return MONITORED - {
            line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")
        }

    eventually(lambda: not unknown_to_the_worker(), WAIT_S, lambda: str(unknown_to_the_worker()))


def test_a_failed_task_keeps_its_metrics_until_it_is_taken_away(
    agent: Agent, tmp_path: Path
) -> None:
    """The metrics show the task's errors, and the worker counts it among its failed starts."""
    topic, lines = unique_name("poisoned"), tmp_path / "lines"
    append_lines(lines, 1, 3)
    agent.create("in", source_config(lines, topic))
    agent.create(
        "out",
        {
            **sink_config(tmp_path / "copy", topic),
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "errors.log.enable": "true",
        },
    )
    agent.wait_for_states("out", "RUNNING", "FAILED")
    errors = task(agent, "task-error-metrics", "out")
    assert (errors["total-record-failures"], errors["total-record-errors"]) == (1, 1)
    assert (errors["total-records-skipped"], errors["total-errors-logged"]) == (0, 1)
    assert errors["last-error-timestamp"] > 0
    assert task(agent, "connector-task-metrics", "out")["status"] == "failed"
    assert task(agent, "sink-task-metrics", "out")["partition-count"] == 0
    counts = values(agent, "connect-worker-metrics", connector="out")
    assert (counts["connector-failed-task-count"], counts["connector-total-task-count"]) == (1, 1)
    assert agent.call("DELETE", "/connectors/out").status == 204
    eventually(lambda: not task(agent, "connector-task-metrics", "out"), WAIT_S)


def test_numbers_of_the_tasks_own_are_exposed(agent: Agent) -> None:
    """The worker shows the number of pages that a task with coroutines counts, with its labels."""
    topic = unique_name("own")
    agent.create("own", {"connector.class": ASYNC_SOURCE, "topic": topic})

    def own() -> Mapping[str, Any]:
        return values(agent, "plugin-metrics", connector="own", task="0", kind="even")

    found = eventually(lambda: own() if own().get("pages-total", 0) >= 3 else None, WAIT_S)
    assert found["last-page"] >= 3
    sent = task(agent, "source-task-metrics", "own")["source-record-write-total"]
    assert sent > 0
