"""Exactly-once sources of one worker, killed, fenced and reconfigured (KIP-618).

Further tests have transactions that do not end as planned, and the task's calls at their end.
They need a real broker: librdkafka's mock lets a fenced producer commit.
"""

import json
from itertools import pairwise

import psutil
import pytest
from confluent_kafka import KafkaException

from tests.support.agents.agent import Agent, Agents, emptied
from tests.support.audits.sequences import WAIT_S, Sequences
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.sources import (
    COMMIT,
    DIE_IN_COMMIT,
    DROP_ODD,
    DROPPING_SOURCE,
    HANG_IN_POLL,
    HANGING,
    LIMIT,
    notes,
)
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import OffsetTopic

pytestmark = pytest.mark.kafka

ENABLED = {"exactly.once.source.support": "enabled", "task.shutdown.graceful.timeout.ms": "2000"}
NEVER = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "3600000"}


@pytest.fixture(scope="module")
def group_id() -> str:
    return unique_name("once")


@pytest.fixture(scope="module")
def shared_agent(module_agents: Agents, group_id: str) -> Agent:
    """An agent with exactly-once enabled."""
    return module_agents.start(group_id=group_id, properties=ENABLED)


@pytest.fixture
def agent(shared_agent: Agent) -> Agent:
    return emptied(shared_agent)


def newest_child(agent: Agent) -> psutil.Process:
    """Return the process of the task, which is younger than its connector's."""
    return max(agent.children(), key=lambda child: child.create_time())


def restart(agent: Agent, name: str) -> None:
    answer = agent.call("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true")
    assert answer.status == 202, answer.text


def trace(agent: Agent, name: str) -> str:
    text: str = agent.get(f"/connectors/{name}/status")["tasks"][0]["trace"]
    return text


@cases("boundary", {}, {"transaction.boundary": "interval"})
def test_a_clean_life_shows_each_number_once(
    agent: Agent, sequences: Sequences, boundary: dict[str, str]
) -> None:
    """Open transactions are committed when the connector is paused or deleted."""
    agent.create(sequences.name, {**sequences.config(), **boundary})
    agent.wait_for_states(sequences.name, "RUNNING", "RUNNING")
    sequences.allow(100)
    sequences.wait_for(100, committed=False)
    assert agent.call("PUT", f"/connectors/{sequences.name}/pause").status == 202
    sequences.check(100)
    assert agent.call("PUT", f"/connectors/{sequences.name}/resume").status == 202
    sequences.allow(155)
    sequences.wait_for(155, committed=False)
    assert agent.call("DELETE", f"/connectors/{sequences.name}").status == 204
    sequences.check(155)


def test_killed_between_produce_and_commit(agent: Agent, sequences: Sequences) -> None:
    """A killed task's records are aborted and read again: their offsets were in the transaction."""
    agent.create(sequences.name, {**sequences.config(), **NEVER})
    sequences.allow(50)
    sequences.wait_for(50, committed=False)
    newest_child(agent).kill()
    agent.wait_for_states(sequences.name, "RUNNING", "FAILED")
    assert sequences.seen() == {}
    restart(agent, sequences.name)
    agent.wait_for_states(sequences.name, "RUNNING", "RUNNING")
    sequences.allow(70)
    eventually(lambda: sequences.seen(committed=False)["0"][-1] == 70, WAIT_S)
    assert agent.call("PUT", f"/connectors/{sequences.name}/pause").status == 202
    sequences.check(70)
    assert len(sequences.seen(committed=False)["0"]) == 120


def test_killed_between_commit_and_its_acknowledgement(agent: Agent, sequences: Sequences) -> None:
    """A task that was killed after the broker's commit continues behind that commit."""
    agent.create(sequences.name, sequences.config())
    sequences.allow(30)
    sequences.check(30)
    sequences.flag(DIE_IN_COMMIT)
    sequences.allow(60)
    agent.wait_for_states(sequences.name, "RUNNING", "FAILED")
    restart(agent, sequences.name)
    sequences.check(60)


def test_a_fenced_task_fails_and_shows_nothing_of_its_transaction(
    agent: Agent, sequences: Sequences, group_id: str
) -> None:
    """A fenced task fails; a restart fences the other producer in turn and continues."""
    agent.create(sequences.name, {**sequences.config(), **NEVER})
    sequences.allow(20)
    sequences.wait_for(20, committed=False)
    sequences.producer(f"{group_id}-{sequences.name}-0")
    sequences.allow(40)
    assert agent.call("PUT", f"/connectors/{sequences.name}/pause").status == 202
    agent.wait_for_states(sequences.name, "PAUSED", "FAILED")
    assert "ConnectException" in trace(agent, sequences.name)
    assert sequences.seen() == {}
    assert agent.call("PUT", f"/connectors/{sequences.name}/resume").status == 202
    restart(agent, sequences.name)
    agent.wait_for_states(sequences.name, "RUNNING", "RUNNING")
    eventually(lambda: sequences.seen(committed=False)["0"][-1] == 40, WAIT_S)
    assert agent.call("DELETE", f"/connectors/{sequences.name}").status == 204
    sequences.check(40)


def test_task_count_up_and_down(agent: Agent, sequences: Sequences, group_id: str) -> None:
    """Each new task set fences every task of the older one, whatever their numbers."""
    agent.create(sequences.name, sequences.config(3))
    limit = 20
    sequences.allow(limit)
    sequences.wait_for(limit, 3)
    for before, after in pairwise((3, 5, 1, 5, 3)):
        # The zombies fence the running tasks: only tasks of a newer set can make progress.
        zombies = [sequences.producer(f"{group_id}-{sequences.name}-{n}") for n in range(before)]
        answer = agent.call("PUT", f"/connectors/{sequences.name}/config", sequences.config(after))
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
    """A connector that is created again has its offsets and the count of tasks to fence."""
    agent.create(sequences.name, sequences.config(2))
    sequences.allow(30)
    sequences.check(30, 2)
    assert agent.call("DELETE", f"/connectors/{sequences.name}").status == 204
    eventually(lambda: agent.children() == [])
    sequences.allow(60)
    agent.create(sequences.name, sequences.config(1))
    agent.wait_for_states(sequences.name, "RUNNING", "RUNNING")
    sequences.check(60, 1)
    assert sequences.seen()["1"][-1] == 30


def test_a_hung_poll_is_killed_and_its_successor_goes_on(
    agent: Agent, sequences: Sequences
) -> None:
    """A killed task's open transaction is aborted, and none of its records is lost or doubled."""
    agent.create(sequences.name, {**sequences.config(), **NEVER})
    sequences.allow(30)
    sequences.wait_for(30, committed=False)
    sequences.flag(HANG_IN_POLL)
    eventually((sequences.directory / HANGING).exists, WAIT_S)
    assert agent.call("DELETE", f"/connectors/{sequences.name}").status == 204
    eventually(lambda: agent.children() == [], WAIT_S)
    assert sequences.seen() == {}
    agent.create(sequences.name, sequences.config())
    sequences.check(30)


def test_a_connector_ends_its_transactions_itself(
    agent: Agent, sequences: Sequences, group_id: str, kafka_broker: SharedBroker
) -> None:
    """An aborted record is neither seen nor read again, because its offset is committed."""
    agent.create(sequences.name, {**sequences.config(), "transaction.boundary": "connector"})
    sequences.allow(100)
    kept = [*range(1, 2), *range(3, 6), *range(9, 22), *range(35, 90)]
    eventually(lambda: sequences.seen().get("0") == kept, WAIT_S, sequences.seen)
    topic = OffsetTopic(kafka_broker.bootstrap_servers, f"{group_id}-offsets")

    def ends() -> list[int]:
        own = [value for key, value in topic.records() if sequences.name in str(key)]
        return [json.loads(value or b"")["last"] for value in own]

    assert ends() == [1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
    # The transaction with 90 to 100 is open and ends with the task.
    assert agent.call("POST", f"/connectors/{sequences.name}/tasks/0/restart").status == 204
    sequences.allow(240)
    eventually(lambda: ends()[-2:] == [144, 233], WAIT_S, ends)
    assert sequences.seen()["0"] == [*kept, *range(145, 234)]


def test_aborts_right_after_producing(agent: Agent, sequences: Sequences) -> None:
    """Each of 300: the broker has not heard of the transaction, and still ends the one before."""
    settings = sequences.config(transaction_boundary="connector", every="true")
    agent.create(sequences.name, settings)
    sequences.allow(601)
    kept = [*range(1, 602, 2)]
    eventually(
        lambda: sequences.seen().get("0") == kept,
        WAIT_S,
        lambda: agent.get(f"/connectors/{sequences.name}/status"),
    )


@cases("tolerance", "none", "all")
def test_a_record_that_cannot_be_converted(
    agent: Agent, sequences: Sequences, tolerance: str
) -> None:
    """The record fails the task and its transaction, or the record is dropped."""
    agent.create(
        sequences.name,
        {
            **sequences.config(),
            "errors.tolerance": tolerance,
            "transforms": "small",
            "transforms.small.type": "org.apache.kafka.connect.transforms.Cast$Value",
            "transforms.small.spec": "int8",
        },
    )
    sequences.allow(140)
    if tolerance == "none":
        agent.wait_for_states(sequences.name, "RUNNING", "FAILED")
        sequences.check(120)
    else:
        sequences.check(127)
        agent.wait_for_states(sequences.name, "RUNNING", "RUNNING")


@cases(
    "settings, text",
    ({"producer.override.transaction.timeout.ms": "9000000"}, "initialize the producer"),
    (
        {"offsets.storage.topic": "TOPIC"},
        "may not produce to their own offsets topics when exactly-once support is enabled",
    ),
    ({"producer.override.acks": "1"}, "acks"),
)
def test_impossible_exactly_once_settings_fail_the_task(
    agent: Agent, sequences: Sequences, settings: dict[str, str], text: str
) -> None:
    """The task fails for a too long transaction timeout, records among offsets, or few replicas."""
    given = {name: value.replace("TOPIC", sequences.topic) for name, value in settings.items()}
    agent.create(sequences.name, {**sequences.config(), **given})
    sequences.allow(10)
    agent.wait_for_states(sequences.name, "RUNNING", "FAILED")
    assert text in trace(agent, sequences.name)


def test_transaction_timeout(agent: Agent, sequences: Sequences) -> None:
    """A task whose transaction times out fails, names what to tune, and repeats its records."""
    agent.create(
        sequences.name,
        {**sequences.config(), **NEVER, "producer.override.transaction.timeout.ms": "2000"},
    )
    sequences.allow(30)
    sequences.wait_for(30, committed=False)
    # The broker's marker lets readers of committed records reach the end.
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


@cases("fails", False, True)
def test_an_open_transaction_is_aborted_when_its_task_ends(
    agent: Agent, sequences: Sequences, fails: bool
) -> None:
    """The transaction of a task that stops or fails is aborted without its long timeout."""
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
    """`commitRecord` gets a dropped record, without metadata, after the next commit.

    A dropped record moves no offset: the last dropped one is read and reported again.
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
