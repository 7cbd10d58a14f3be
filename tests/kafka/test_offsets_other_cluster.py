"""Offsets of connectors whose clients reach another Kafka cluster, changed on agents (KIP-875)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents.agent import Agents, closing
from tests.support.agents.changed_offsets import (
    ALTERED,
    LINES,
    PARTITIONS,
    RESET,
    Groups,
    Numbers,
    Sink,
    Worker,
)
from tests.support.audits.sequences import Sequences
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import OffsetTopic

pytestmark = pytest.mark.kafka

WAIT_S = 150


@pytest.fixture
def there(other_broker: SharedBroker) -> str:
    """Addresses of the other cluster."""
    return other_broker.bootstrap_servers


@pytest.fixture(scope="module", params=["disabled", "enabled"])
def worker(
    kafka_broker: SharedBroker,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Worker]:
    """A worker on the session's cluster."""
    directory = tmp_path_factory.mktemp("worker")
    for agents in closing(lambda: Agents(kafka_broker.bootstrap_servers, directory)):
        yield Worker(agents, kafka_broker.bootstrap_servers, request.param)


def overrides(bootstrap_servers: str, *clients: str) -> dict[str, str]:
    return {f"{client}.override.bootstrap.servers": bootstrap_servers for client in clients}


def test_a_sources_offsets_are_changed_in_both_clusters(
    worker: Worker, there: str, tmp_path: Path
) -> None:
    """In its own topic there, which counts, and in the worker's, from where a worker goes on."""
    own = OffsetTopic(there, unique_name("own-offsets"))
    clients = overrides(there, "producer", "consumer", "admin")
    numbers = Numbers(worker, Sequences(there, tmp_path), own, **clients)
    numbers.create()
    numbers.run(10)
    numbers.stop()
    answer = numbers.alter(5, 7)
    assert (answer.status, answer.json()) == (200, {"message": ALTERED})
    assert numbers.positions() == [5, 7] == numbers.stored()
    assert numbers.stored(worker.offsets) == [5, 7]
    numbers.resume()
    numbers.run(12)
    assert numbers.sequences.seen()["1"] == [*range(1, 11), *range(8, 13)]
    numbers.stop()
    for _ in range(2):
        answer = numbers.reset()
        assert (answer.status, answer.json()) == (200, {"message": RESET})
        assert numbers.positions() == [] == numbers.stored()
        assert numbers.stored(worker.offsets) == []
    numbers.resume()
    numbers.run(13)
    assert numbers.sequences.seen()["1"][-13:] == [*range(1, 14)]
    numbers.agent.call("DELETE", f"/connectors/{numbers.name}")


@pytest.mark.parametrize("worker", ["disabled"], indirect=True)
@pytest.mark.parametrize("own_group", [False, True], ids=["connect-group", "own-group"])
def test_a_sinks_group_is_changed_where_its_admin_client_reaches(
    worker: Worker, there: str, kafka_broker: SharedBroker, tmp_path: Path, own_group: bool
) -> None:
    """The worker's own cluster never hears of the group."""
    settings = overrides(there, "consumer", "admin")
    if own_group:
        settings["consumer.override.group.id"] = unique_name("own-group")
    sink = Sink(worker.agent, Groups(there), tmp_path, **settings)
    path = f"/connectors/{sink.name}"
    shown = worker.agent.get(f"{path}/offsets")["offsets"]
    assert [entry["offset"] for entry in shown] == [{"kafka_offset": LINES}] * PARTITIONS
    assert sink.alter(None, 5, 5).status == 200
    assert sink.committed() == {1: 5, 2: 5}
    assert worker.agent.call("PUT", f"{path}/resume").status == 202
    sink.wait_until_read(30 + 10 + 5 + 5)
    sink.stop()
    for _ in range(2):
        assert sink.reset().status == 200
        assert (sink.committed(), worker.agent.get(f"{path}/offsets")) == ({}, {"offsets": []})
        assert sink.group not in sink.groups.names()
    assert worker.agent.call("PUT", f"{path}/resume").status == 202
    sink.wait_until_read(50 + 30)
    eventually(lambda: sink.group in sink.groups.names(), WAIT_S)
    groups_there, groups_here = sink.groups.names(), Groups(kafka_broker.bootstrap_servers).names()
    assert (f"connect-{sink.name}" in groups_there) is not own_group
    assert not {sink.group, f"connect-{sink.name}"} & groups_here
    worker.agent.call("DELETE", path)
