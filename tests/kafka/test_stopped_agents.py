"""STOPPED connectors (KIP-875) on agents: their records, rebalances, and changes of offsets."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents.agent import Agent, Agents, append_lines, sink_config, source_config
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import OffsetTopic

pytestmark = pytest.mark.kafka

WAIT_S = 150
QUICK = {"offset.flush.interval.ms": "500", "scheduled.rebalance.max.delay.ms": "0"}
NAMES = ("source", "sink")


def create_both(agent: Agent, directory: Path, **members: str) -> int:
    """Create a source and a sink; return the size of the source's file."""
    lines, topic = directory / "in.txt", unique_name("lines")
    append_lines(lines, 1, 100)
    agent.create("source", source_config(lines, topic), **members)
    agent.create("sink", sink_config(directory / "out.txt", topic, tasks_max="2"), **members)
    return lines.stat().st_size


def check_stopped(agent: Agent) -> None:
    """Check that both connectors are STOPPED and that no answer has a task."""
    for name in NAMES:
        agent.wait_for_states(name, "STOPPED")
        assert agent.get(f"/connectors/{name}/tasks") == []
        assert agent.get(f"/connectors/{name}")["tasks"] == []
        assert agent.call("GET", f"/connectors/{name}/tasks/0/status").status == 404


def put(agent: Agent, verb: str, status: int) -> None:
    for name in NAMES:
        eventually(
            lambda name=name: agent.call("PUT", f"/connectors/{name}/{verb}").status == status,
            WAIT_S,
        )


def positions(agent: Agent) -> list[Any]:
    """Return the source's positions; empty if there is no answer yet."""
    answer = agent.call("GET", "/connectors/source/offsets")
    return (
        [e["offset"]["position"] for e in answer.json()["offsets"]] if answer.status == 200 else []
    )


def test_stopped_connectors_stay_so_through_rebalances_and_restarts(
    agents: Agents, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """Stopped connectors have no tasks after rebalances and restarts; a resume starts them."""
    group = unique_name("stopped")
    first = agents.start(group_id=group, properties=QUICK)
    size = create_both(first, tmp_path)
    first.wait_for_states("source", "RUNNING", "RUNNING")
    first.wait_for_states("sink", "RUNNING", "RUNNING", "RUNNING")
    eventually(lambda: positions(first) == [size], WAIT_S)
    put(first, "stop", 204)
    check_stopped(first)
    eventually(lambda: first.children() == [], WAIT_S, first.children)
    records = dict(OffsetTopic(kafka_broker.bootstrap_servers, f"{group}-configs").records())
    for name in NAMES:
        stored = json.loads(records[f"target-state-{name}".encode()] or b"")
        assert stored == {"state": "PAUSED", "state.v2": "STOPPED"}
        assert json.loads(records[f"commit-{name}".encode()] or b"") == {"tasks": 0}
    second = agents.start(group_id=group, properties=QUICK)
    check_stopped(second)
    first.drain()
    assert first.exit_code() == 0
    check_stopped(second)
    second.drain()
    assert second.exit_code() == 0
    third = agents.start(group_id=group, properties=QUICK)
    check_stopped(third)
    assert third.children() == []
    assert positions(third) == [size]
    put(third, "resume", 202)
    third.wait_for_states("source", "RUNNING", "RUNNING")
    third.wait_for_states("sink", "RUNNING", "RUNNING", "RUNNING")


def test_any_worker_of_the_group_takes_a_change_of_offsets(agents: Agents, tmp_path: Path) -> None:
    """A follower forwards a change of offsets, and both workers show the result."""
    group = unique_name("forwarding")
    workers = [agents.start(group_id=group, properties=QUICK) for _ in range(2)]
    create_both(workers[0], tmp_path, initial_state="STOPPED")
    partition = {"filename": str(tmp_path / "in.txt")}
    for number, worker in enumerate(workers):
        check_stopped(worker)
        body = {"offsets": [{"partition": partition, "offset": {"position": number}}]}
        answer = eventually(
            lambda worker=worker, body=body: _answered(worker, "PATCH", body), WAIT_S
        )
        assert answer.status == 200, answer.text
        for reader in workers:
            assert positions(reader) == [number]
        refused = worker.call("PATCH", "/connectors/source/offsets", {"offsets": []})
        assert refused.status == 400
        body["offsets"][0]["offset"] = {"position": "far"}
        refused = eventually(
            lambda worker=worker, body=body: _answered(worker, "PATCH", body), WAIT_S
        )
        assert (refused.status, "Long value" in refused.message) == (500, True)
        assert positions(worker) == [number]
    for worker in workers:
        assert eventually(lambda worker=worker: _answered(worker, "DELETE"), WAIT_S).status == 200
        assert positions(worker) == []


def _answered(worker: Agent, method: str, body: Any = None) -> Any:
    """Return the answer; None while the group rebalances."""
    answer = worker.call(method, "/connectors/source/offsets", body)
    return None if answer.status == 409 else answer


def test_a_standalone_workers_offsets_are_changed_in_its_file(
    agents: Agents, tmp_path: Path
) -> None:
    """A standalone worker's offsets are in its file when the change is answered."""
    config = source_config(tmp_path / "in.txt", unique_name("lines"))
    append_lines(tmp_path / "in.txt", 1, 10)
    process = agents.process(connectors=({"name": "source", **config},), properties=QUICK)
    agent = Agent(process.start())
    size = (tmp_path / "in.txt").stat().st_size
    eventually(lambda: positions(agent) == [size], WAIT_S)
    partition = {"filename": str(tmp_path / "in.txt")}
    body = {"offsets": [{"partition": partition, "offset": {"position": 7}}]}
    assert agent.call("PATCH", "/connectors/source/offsets", body).status == 400
    assert agent.call("PUT", "/connectors/source/stop").status == 204
    agent.wait_for_states("source", "STOPPED")
    answer = agent.call("PATCH", "/connectors/source/offsets", body)
    assert answer.status == 200, answer.text
    assert positions(agent) == [7]
    stored = json.loads((tmp_path / "offsets.json").read_text())["entries"]
    assert len(stored) == 1
    for _ in range(2):
        assert agent.call("DELETE", "/connectors/source/offsets").status == 200
        assert positions(agent) == []
        assert json.loads((tmp_path / "offsets.json").read_text())["entries"] == []
    assert agent.call("DELETE", "/connectors/absent/offsets").status == 404
