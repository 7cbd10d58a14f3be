"""Exactly-once sources of one worker, killed, fenced and reconfigured (KIP-618).

Proven on a real broker only: librdkafka's mock lets a fenced producer commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException

from tests.support.agent import Agent, Agents, closing
from tests.support.eventually import eventually
from tests.support.kafka import SharedBroker
from tests.support.names import unique_name
from tests.support.sequence_source import DIE_IN_COMMIT, HANG_IN_POLL, HANGING
from tests.support.sequences import WAIT_S, Sequences

pytestmark = pytest.mark.kafka

ENABLED = {"exactly.once.source.support": "enabled", "task.shutdown.graceful.timeout.ms": "2000"}
NEVER = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "3600000"}


@pytest.fixture
def group_id() -> str:
    return unique_name("once")


@pytest.fixture
def agent(kafka_broker: SharedBroker, tmp_path: Path, group_id: str) -> Iterator[Agent]:
    """A worker at `enabled`."""
    for agents in closing(lambda: Agents(kafka_broker.bootstrap_servers, tmp_path)):
        yield agents.start(group_id=group_id, properties=ENABLED)


@pytest.fixture
def sequences(kafka_broker: SharedBroker, tmp_path: Path) -> Sequences:
    return Sequences(kafka_broker.bootstrap_servers, tmp_path)


def newest_child(agent: Agent) -> psutil.Process:
    """The task's process: it was started after its connector's."""
    return max(agent.children(), key=lambda child: child.create_time())


def restart(agent: Agent, name: str) -> None:
    answer = agent.call("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true")
    assert answer.status == 202, answer.text


def trace(agent: Agent, name: str) -> str:
    text: str = agent.get(f"/connectors/{name}/status")["tasks"][0]["trace"]
    return text


@pytest.mark.parametrize("boundary", [{}, {"transaction.boundary": "interval"}])
def test_a_clean_life_shows_each_number_once(
    agent: Agent, sequences: Sequences, boundary: dict[str, str]
) -> None:
    """Also what was open when the connector was paused, and when it was deleted."""
    agent.create("numbers", {**sequences.config(), **boundary})
    agent.wait_for_states("numbers", "RUNNING", "RUNNING")
    sequences.allow(100)
    sequences.wait_for(100, committed=False)
    assert agent.call("PUT", "/connectors/numbers/pause").status == 202
    sequences.check(100)
    assert agent.call("PUT", "/connectors/numbers/resume").status == 202
    sequences.allow(155)
    sequences.wait_for(155, committed=False)
    assert agent.call("DELETE", "/connectors/numbers").status == 204
    sequences.check(155)


def test_killed_between_produce_and_commit(agent: Agent, sequences: Sequences) -> None:
    """What was produced is aborted and read again, because its offsets went with it."""
    agent.create("numbers", {**sequences.config(), **NEVER})
    sequences.allow(50)
    sequences.wait_for(50, committed=False)
    newest_child(agent).kill()
    agent.wait_for_states("numbers", "RUNNING", "FAILED")
    assert sequences.seen() == {}
    restart(agent, "numbers")
    agent.wait_for_states("numbers", "RUNNING", "RUNNING")
    sequences.allow(70)
    eventually(lambda: sequences.seen(committed=False)["0"][-1] == 70, WAIT_S)
    assert agent.call("PUT", "/connectors/numbers/pause").status == 202
    sequences.check(70)
    assert len(sequences.seen(committed=False)["0"]) == 120


def test_killed_between_commit_and_its_acknowledgement(agent: Agent, sequences: Sequences) -> None:
    """The broker has committed, the task was never told: it goes on where the commit ended."""
    agent.create("numbers", sequences.config())
    sequences.allow(30)
    sequences.check(30)
    sequences.flag(DIE_IN_COMMIT)
    sequences.allow(60)
    agent.wait_for_states("numbers", "RUNNING", "FAILED")
    restart(agent, "numbers")
    sequences.check(60)


def test_a_fenced_task_fails_and_shows_nothing_of_its_transaction(
    agent: Agent, sequences: Sequences, group_id: str
) -> None:
    """Whoever initialises its id later wins; a restart fences in turn and goes on."""
    agent.create("numbers", {**sequences.config(), **NEVER})
    sequences.allow(20)
    sequences.wait_for(20, committed=False)
    sequences.producer(f"{group_id}-numbers-0")
    sequences.allow(40)
    assert agent.call("PUT", "/connectors/numbers/pause").status == 202
    agent.wait_for_states("numbers", "PAUSED", "FAILED")
    assert "ConnectException" in trace(agent, "numbers")
    assert sequences.seen() == {}
    assert agent.call("PUT", "/connectors/numbers/resume").status == 202
    restart(agent, "numbers")
    agent.wait_for_states("numbers", "RUNNING", "RUNNING")
    eventually(lambda: sequences.seen(committed=False)["0"][-1] == 40, WAIT_S)
    assert agent.call("DELETE", "/connectors/numbers").status == 204
    sequences.check(40)


def test_task_count_up_and_down(agent: Agent, sequences: Sequences, group_id: str) -> None:
    """Each new task set fences every task of the one before, however many either has."""
    agent.create("numbers", sequences.config(3))
    limit = 20
    sequences.allow(limit)
    sequences.wait_for(limit, 3)
    for before, after in pairwise((3, 5, 1, 5, 3)):
        # They fence the tasks that run: only tasks of a newer set can make progress.
        zombies = [sequences.producer(f"{group_id}-numbers-{n}") for n in range(before)]
        answer = agent.call("PUT", "/connectors/numbers/config", sequences.config(after))
        assert answer.status == 200, answer.text
        limit += 20
        sequences.allow(limit)
        sequences.wait_for(limit, after)
        for zombie in zombies:
            zombie.begin_transaction()
            zombie.produce(sequences.topic, key="0", value="0", partition=0)
            with pytest.raises(KafkaException):
                zombie.commit_transaction(30)
    sequences.check(limit, 3)


def test_delete_and_re_create_under_the_same_name(agent: Agent, sequences: Sequences) -> None:
    """The offsets are still there, and so is the count of tasks to fence."""
    agent.create("numbers", sequences.config(2))
    sequences.allow(30)
    sequences.check(30, 2)
    assert agent.call("DELETE", "/connectors/numbers").status == 204
    eventually(lambda: agent.children() == [])
    sequences.allow(60)
    agent.create("numbers", sequences.config(1))
    agent.wait_for_states("numbers", "RUNNING", "RUNNING")
    sequences.check(60, 1)
    assert sequences.seen()["1"][-1] == 30


def test_a_hung_poll_is_killed_and_its_successor_goes_on(
    agent: Agent, sequences: Sequences
) -> None:
    """What it had open is aborted; nothing of it is missing or doubled later."""
    agent.create("numbers", {**sequences.config(), **NEVER})
    sequences.allow(30)
    sequences.wait_for(30, committed=False)
    sequences.flag(HANG_IN_POLL)
    eventually((sequences.directory / HANGING).exists, WAIT_S)
    assert agent.call("DELETE", "/connectors/numbers").status == 204
    eventually(lambda: agent.children() == [], WAIT_S)
    assert sequences.seen() == {}
    agent.create("numbers", sequences.config())
    sequences.check(30)
