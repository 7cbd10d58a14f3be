"""Source offsets altered and reset on agents: the test plan of KIP-875, read from the topics."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_agent.tasks.jobs.offset_change import ENTRIES_AT_ONCE
from tests.support.agents.agent import Agents, closing
from tests.support.agents.changed_offsets import ALTERED, RESET, Numbers, Worker
from tests.support.audits.sequences import Sequences
from tests.support.names import unique_name
from tests.support.seeds import chosen
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import OffsetTopic

pytestmark = pytest.mark.kafka

BAD_BODIES: tuple[tuple[object, int], ...] = (
    ("", 500),
    ("null", 500),
    ("{", 500),
    ("[]", 500),
    ('{"offsets":[{"partition":{1:2}}]}', 500),
    ({}, 400),
    ({"offsets": []}, 400),
    ({"offsets": {}}, 500),
    ({"offsets": [None]}, 500),
    ({"offsets": [{"partition": "0", "offset": {"last": 1}}]}, 500),
    ({"offsets": [{"partition": {"number": "0"}, "offset": {"last": [1]}}]}, 500),
    ({"offsets": [{"partition": {"number": "0"}, "offset": {"last": 2**64}}]}, 500),
    ({"offsets": [{"partition": {"number": {"a": 1}}, "offset": {"last": 1}}]}, 500),
    ({"offsets": [{"partition": {"number": "0"}, "offset": 1, "more": 1}]}, 500),
    ('{"offsets":[{"partition":{},"offset":{},"partition":{}}]}', 500),
)
PLACES = ("worker's topic", "own topic")


@pytest.fixture(scope="module")
def agents(
    kafka_broker: SharedBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Agents]:
    directory = tmp_path_factory.mktemp("agents")
    yield from closing(lambda: Agents(kafka_broker.bootstrap_servers, directory))


@pytest.fixture(
    scope="module",
    params=chosen(["enabled"], long=[pytest.param("disabled", marks=pytest.mark.long)]),
)
def worker(agents: Agents, kafka_broker: SharedBroker, request: pytest.FixtureRequest) -> Worker:
    return Worker(agents, kafka_broker.bootstrap_servers, request.param)


@pytest.fixture(params=PLACES)
def numbers(
    worker: Worker,
    kafka_broker: SharedBroker,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Numbers]:
    topic = worker.offsets
    if request.param == "own topic":
        topic = OffsetTopic(kafka_broker.bootstrap_servers, unique_name("own-offsets"))
    sequences = Sequences(kafka_broker.bootstrap_servers, tmp_path)
    numbers = Numbers(worker, sequences, topic)
    yield numbers
    worker.agent.call("DELETE", f"/connectors/{numbers.name}")


def test_a_stopped_source_is_altered_reset_and_resumed(numbers: Numbers) -> None:
    """An altered offset is read back at once; a resumed connector continues from there."""
    numbers.create()
    numbers.run(10)
    refused = numbers.alter(1, 1)
    assert (refused.status, numbers.stored()) == (400, [10, 10])
    assert numbers.reset().status == 400
    numbers.stop()
    answer = numbers.alter(5, 7)
    assert (answer.status, answer.json()) == (200, {"message": ALTERED})
    assert numbers.positions() == [5, 7] == numbers.stored()
    assert numbers.alter(5, None).status == 200
    assert numbers.positions() == [5] == numbers.stored()
    numbers.resume()
    numbers.run(12)
    seen = numbers.sequences.seen()
    assert seen["0"] == [*range(1, 11), *range(6, 13)]
    assert seen["1"] == [*range(1, 11), *range(1, 13)]
    numbers.stop()
    for _ in range(2):
        answer = numbers.reset()
        assert (answer.status, answer.json()) == (200, {"message": RESET})
        assert numbers.positions() == [] == numbers.stored()
    numbers.resume()
    numbers.run(13)
    assert numbers.sequences.seen()["1"][-13:] == [*range(1, 14)]


def test_more_offsets_than_are_written_at_once_are_one_change(numbers: Numbers) -> None:
    """All are there afterwards, and none after a reset."""
    numbers.create(initial_state="STOPPED")
    numbers.agent.wait_for_states(numbers.name, "STOPPED")
    positions = list(range(1, ENTRIES_AT_ONCE + 2))
    answer = numbers.alter(*positions)
    assert answer.status == 200, answer.text
    assert numbers.positions() == positions == numbers.stored()
    answer = numbers.reset()
    assert answer.status == 200, answer.text
    assert numbers.positions() == [] == numbers.stored()


def test_a_reset_tombstones_keys_of_any_form(numbers: Numbers, worker: Worker) -> None:
    """Raw keys of a Java worker's order and spacing are gone too, in both topics."""
    numbers.create()
    numbers.run(10)
    numbers.stop()
    odd = b'["%s", {"number" : "0"}]' % numbers.name.encode()
    unreadable = b'["%s",{"number":"7"}]' % numbers.name.encode()
    for topic in {numbers.topic, worker.offsets}:
        topic.write(odd, b'{"last":3}')
        topic.write(unreadable, b"7")
    assert numbers.reset().status == 200
    for topic in (numbers.topic, worker.offsets):
        last = {key: value for key, value in topic.records() if numbers.name.encode() in key}
        assert set(last.values()) == {None}
        assert {odd, unreadable} <= last.keys()


@pytest.mark.parametrize("numbers", PLACES[:1], indirect=True)
def test_a_source_created_stopped_begins_where_it_was_altered_to(numbers: Numbers) -> None:
    """Before it ever ran."""
    numbers.sequences.allow(10)
    numbers.create(initial_state="STOPPED")
    numbers.agent.wait_for_states(numbers.name, "STOPPED")
    assert numbers.alter(5, 9).status == 200
    numbers.resume()
    numbers.run(10)
    assert numbers.sequences.seen() == {"0": [*range(6, 11)], "1": [10]}


@pytest.mark.parametrize("numbers", PLACES[:1], indirect=True)
def test_a_refused_change_leaves_the_topic_unchanged(numbers: Numbers) -> None:
    """By REST, by Kafka Connect's checks, or by the connector; Apache's lenient rules stay."""
    numbers.create(initial_state="STOPPED")
    numbers.agent.wait_for_states(numbers.name, "STOPPED")
    assert numbers.alter(5, 5).status == 200
    before = sorted(numbers.topic.records(), key=repr)
    for body, status in BAD_BODIES:
        answer = numbers.send_text(body) if isinstance(body, str) else numbers.send(body)
        assert (answer.status, body) == (status, body)
    config = f"/connectors/{numbers.name}/config"
    for hook in ("refuse", "unsupported", "break"):
        assert numbers.agent.call("PATCH", config, {"hook": hook}).status == 200
        for answer in (numbers.alter(1, None), numbers.reset()):
            assert answer.status == 500
    assert sorted(numbers.topic.records(), key=repr) == before
    assert numbers.agent.call("PATCH", config, {"hook": "false"}).status == 200
    twice = [{"partition": {"number": "9"}, "offset": {"last": last}} for last in (-3, 10**12)]
    answer = numbers.send({"offsets": twice})
    assert (answer.status, "framework-managed" in answer.text) == (200, True)
    assert numbers.stored() == [5, 5, 10**12]
