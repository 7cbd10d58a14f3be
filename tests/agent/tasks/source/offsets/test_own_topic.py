"""Creation, reading and writing of a source connector's own offsets topic."""

import pytest

from pyconnect_agent.kafka.log import CompactedLog
from pyconnect_agent.tasks.source.offsets import (
    OffsetUse,
    OwnOffsetsStore,
    WorkerOffsets,
    offset_stores,
    own_offset_log,
)
from pyconnect_api import ConfigException
from tests.agent.tasks.source.fake_offsets import FakeWorkerStore
from tests.support.agents.worker_properties import distributed
from tests.support.cases import cases

OWN = {"offsets.storage.topic": "mine"}
ELSEWHERE = {
    f"{client}.override.bootstrap.servers": f"{client}:1"
    for client in ("producer", "consumer", "admin")
}


def log_of(writes: bool, config: dict[str, str], **properties: str) -> CompactedLog:
    worker = distributed(**properties)
    found = own_offset_log(worker, "c", config, client="c-0", writes=writes)
    assert found is not None
    assert found[0] == "mine"
    return found[1]


def test_the_topic_is_made_as_the_workers_settings_say() -> None:
    """Compacted in any case, if the worker may; messages name the connector's property."""
    topic = log_of(
        writes=False,
        config=OWN,
        offset_storage_partitions="7",
        offset_storage_replication_factor="2",
        offset_storage_segment_ms="5",
    )._topic
    assert (topic.name, topic.partitions) == ("mine", 7)
    assert topic.settings == {"segment.ms": "5"}
    assert topic.worker_key == "offsets.storage.topic"
    assert topic.create
    disabled = {"internal_topics_automatic_creation_enable": "false"}
    assert not log_of(writes=False, config=OWN, **disabled)._topic.create


def test_each_client_has_the_connectors_overrides() -> None:
    """Reading as its consumer, looking as its admin client, writing as its producer."""
    clients = log_of(writes=True, config={**OWN, **ELSEWHERE})._clients
    assert clients.producer is not None
    servers = [
        config["bootstrap.servers"]
        for config in (clients.producer, clients.consumer, clients.admin)
    ]
    assert servers == ["producer:1", "consumer:1", "admin:1"]


@cases(
    "support, override, level",
    ("disabled", None, "read_committed"),
    ("disabled", "read_uncommitted", "read_uncommitted"),
    ("enabled", "read_uncommitted", "read_committed"),
)
def test_uncommitted_offsets_are_not_read(support: str, override: str | None, level: str) -> None:
    """A default at first, the law with exactly-once support; then its own producer writes."""
    config = {**OWN, **({"consumer.override.isolation.level": override} if override else {})}
    clients = log_of(writes=False, config=config, exactly_once_source_support=support)._clients
    assert clients.consumer["isolation.level"] == level
    assert clients.producer is None


@cases("client", "producer", "consumer", "admin")
def test_a_forbidden_override_is_refused_again_at_start(client: str) -> None:
    """The policy may have changed since the connector was created."""
    config = {**OWN, f"{client}.override.client.rack": "r"}
    with pytest.raises(ConfigException, match="Client Config Overrides not allowed"):
        log_of(writes=True, config=config, connector_client_config_override_policy="None")


@pytest.mark.parametrize("use", list(OffsetUse))
def test_a_task_without_its_own_offsets_topic_asks_the_worker(use: OffsetUse) -> None:
    """Only an exactly-once task has to have it read to the end first."""
    worker = distributed(exactly_once_source_support="enabled")
    store = FakeWorkerStore()
    stores = offset_stores(worker, "c", {}, store, client="c-0", use=use)
    assert isinstance(stores, WorkerOffsets)
    assert stores.topic == worker.offset_storage_topic
    assert stores.start(lambda: False)
    assert store.reads == (1 if use is OffsetUse.EXACTLY_ONCE else 0)
    own = offset_stores(worker, "c", OWN, store, client="c-0", use=use)
    assert isinstance(own, OwnOffsetsStore)
    assert own.topic == "mine"
