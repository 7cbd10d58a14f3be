"""Transactions that end otherwise than planned, and what a task is told at their end (KIP-618)."""

import pytest

from tests.support.agents.agent import Agent, Agents, emptied
from tests.support.audits.sequences import WAIT_S, Sequences
from tests.support.eventually import eventually
from tests.support.plugins.sources import COMMIT, DROP_ODD, DROPPING_SOURCE, LIMIT, notes

pytestmark = pytest.mark.kafka

ENABLED = {"exactly.once.source.support": "enabled", "task.shutdown.graceful.timeout.ms": "2000"}
NEVER = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "3600000"}


@pytest.fixture(scope="module")
def shared_agent(module_agents: Agents) -> Agent:
    """A worker at `enabled`."""
    return module_agents.start(properties=ENABLED)


@pytest.fixture
def agent(shared_agent: Agent) -> Agent:
    return emptied(shared_agent)


def test_transaction_timeout(agent: Agent, sequences: Sequences) -> None:
    """The broker ends what stays open too long; the task fails, says what to tune, and repeats."""
    agent.create(
        sequences.name,
        {**sequences.config(), **NEVER, "producer.override.transaction.timeout.ms": "2000"},
    )
    sequences.allow(30)
    sequences.wait_for(30, committed=False)
    # The broker's marker lets readers of committed records come to the end.
    eventually(lambda: sequences.end() > 30, WAIT_S)
    assert sequences.seen() == {}
    assert agent.call("PUT", f"/connectors/{sequences.name}/pause").status == 202
    agent.wait_for_states(sequences.name, "PAUSED", "FAILED")
    trace = agent.get(f"/connectors/{sequences.name}/status")["tasks"][0]["trace"]
    assert "was unable to finish writing records to Kafka before its producer transaction" in trace
    assert sequences.seen() == {}
    changed = agent.call("PUT", f"/connectors/{sequences.name}/config", sequences.config())
    assert changed.status == 200, changed.text
    assert agent.call("PUT", f"/connectors/{sequences.name}/resume").status == 202
    sequences.check(30)
    assert len(sequences.seen(committed=False)["0"]) == 60


@pytest.mark.parametrize("fails", [False, True])
def test_an_open_transaction_is_aborted_when_its_task_ends(
    agent: Agent, sequences: Sequences, fails: bool
) -> None:
    """Stopped or failed: readers of committed records need not wait for the long timeout."""
    boundary = NEVER if fails else {"transaction.boundary": "connector"}
    timeout = {"producer.override.transaction.timeout.ms": "600000"}
    agent.create(sequences.name, {**sequences.config(), **boundary, **timeout})
    sequences.allow(10)
    sequences.wait_for(10, committed=False)
    assert sequences.end() < sequences.end(committed=False)
    if fails:
        (sequences.directory / LIMIT).unlink()
        agent.wait_for_states(sequences.name, "RUNNING", "FAILED")
    else:
        assert agent.call("DELETE", f"/connectors/{sequences.name}").status == 204
    eventually(lambda: sequences.end() == sequences.end(committed=False), WAIT_S)
    assert 10 not in sequences.seen()["0"]


def test_task_commit_of_dropped_records(agent: Agent, sequences: Sequences) -> None:
    """A dropped record is told of, without metadata, after the commit it waited for.

    It moves no offset: the one that was dropped last is read, and told of, again.
    """
    config = {
        **sequences.config(batch="1"),
        "connector.class": DROPPING_SOURCE,
        "transforms": "drop",
        "transforms.drop.type": DROP_ODD,
    }
    agent.create(sequences.name, config)
    sequences.allow(31)
    sequences.wait_for(30)
    assert agent.call("PUT", f"/connectors/{sequences.name}/stop").status == 204
    agent.wait_for_states(sequences.name, "STOPPED")
    told = notes(sequences.directory)
    assert [line.split()[0] for line in told if line != COMMIT] == [str(n) for n in range(1, 31)]
    for number, line in enumerate(line for line in told if line != COMMIT):
        assert line.endswith("dropped") is (number % 2 == 0)
    assert told[:6] == ["1 dropped", told[1], COMMIT, "3 dropped", told[4], COMMIT]
    sequences.allow(32)
    assert agent.call("PUT", f"/connectors/{sequences.name}/resume").status == 202
    sequences.wait_for(32)
    assert sequences.seen()["0"] == list(range(2, 33, 2))
    eventually(lambda: "31 dropped" in notes(sequences.directory), WAIT_S)
