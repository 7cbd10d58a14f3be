"""A standalone agent, with connectors in files and offsets in a file."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.agents.agent import (
    WAIT_S,
    Agent,
    Agents,
    append_lines,
    sink_config,
    source_config,
    wait_until_equal,
)
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.names import unique_name

pytestmark = pytest.mark.kafka


@pytest.fixture
def connectors(tmp_path: Path) -> tuple[Mapping[str, str], ...]:
    topic = unique_name("lines")
    append_lines(tmp_path / "in.txt", 1, 1_000)
    return (
        {"name": "source", **source_config(tmp_path / "in.txt", topic)},
        {"name": unique_name("sink"), **sink_config(tmp_path / "out.txt", topic)},
    )


def test_connectors_of_the_command_line_run_and_go_on_in_a_second_life(
    agents: Agents, connectors: tuple[Mapping[str, str], ...], tmp_path: Path
) -> None:
    """Health waits for all files, whose connectors have their tasks by then.

    A second start continues at the offsets that the first one committed.
    """
    agent = agents.start(connectors=connectors)
    assert len(agent.get("/connectors/source/tasks")) == 1
    wait_until_equal(tmp_path / "out.txt", tmp_path / "in.txt")
    agent.wait_for_states("source", "RUNNING", "RUNNING")
    agent.drain()
    assert agent.exit_code() == 0
    assert json.loads((tmp_path / "offsets.json").read_text())["version"] == 1
    append_lines(tmp_path / "in.txt", 1_001, 1_100)
    agent.process.start()
    wait_until_equal(tmp_path / "out.txt", tmp_path / "in.txt")


def test_rest_edits_are_answered_when_done_or_refused_with_a_reason(
    agents: Agents, tmp_path: Path
) -> None:
    """POST answers after the start, with the tasks; stop and delete take effect.

    Unknown connectors and tasks and internal requests get the texts of Apache's standalone worker.
    """
    agent = agents.start(connectors=())
    stop = agent.call("PUT", "/connectors/none/stop")
    assert (stop.status, stop.message) == (500, "No connector `none` configured")
    answer = agent.create("source", source_config(tmp_path / "in.txt", unique_name("lines")))
    assert answer.json()["tasks"] == [{"connector": "source", "task": 0}]
    task = agent.call("POST", "/connectors/source/tasks/7/restart")
    assert (task.status, task.message) == (404, "Task source-7 not found")
    tasks = agent.call("POST", "/connectors/none/tasks", [])
    expected = (
        "Kafka Connect in standalone mode does not support externally setting task configurations."
    )
    assert (tasks.status, tasks.message) == (500, expected)
    assert agent.call("PUT", "/connectors/source/stop").status == 204
    agent.wait_for_states("source", "STOPPED")
    assert agent.call("DELETE", "/connectors/source").status == 204
    eventually(lambda: agent.states("source") == ())


def test_json_files_are_read_in_both_forms(agents: Agents, tmp_path: Path) -> None:
    """A JSON file may have a flat map, or the body of a create request with an initial state."""
    topic = unique_name("lines")
    process = agents.process(connectors=())
    flat = tmp_path / "flat.json"
    flat.write_text(json.dumps({"name": "flat", **source_config(tmp_path / "in.txt", topic)}))
    request = tmp_path / "request.json"
    request.write_text(
        json.dumps(
            {
                "name": "request",
                "config": source_config(tmp_path / "in.txt", topic),
                "initial_state": "stopped",
                "comment": "unknown members are ignored",
            }
        )
    )
    process.extra_files = (flat, request)
    agent = Agent(process.start())
    agent.wait_for_states("flat", "RUNNING", "RUNNING")
    agent.wait_for_states("request", "STOPPED")


@cases(
    "connector, expected",
    ({"connector.class": "FileStreamSource"}, "is missing the mandatory 'name' configuration"),
    ({"name": "bad", "connector.class": "NoSuchConnector"}, "Failed to find any class"),
    ({"name": "bad", "connector.class": "FileStreamSource"}, "Missing required configuration"),
)
def test_a_wrong_connector_file_ends_the_worker(
    agents: Agents, connector: Mapping[str, str], expected: str
) -> None:
    """A wrong connector file ends the worker with exit 3, naming the file."""
    process = agents.process(connectors=(connector,))
    process.launch()
    assert process.wait_until_exited(WAIT_S) == 3
    log = process.log_path.read_text()
    assert expected in log
    assert "connector-0.properties" in log


def test_an_unreadable_offsets_file_is_refused(agents: Agents, tmp_path: Path) -> None:
    """An unreadable offsets file ends the worker with exit 2: offsets must not begin again."""
    (tmp_path / "offsets.json").write_bytes(b"\xac\xed\x00\x05 not ours")
    process = agents.process(connectors=())
    process.launch()
    assert process.wait_until_exited(WAIT_S) == 2
    assert "offsets.json" in process.log_path.read_text()
