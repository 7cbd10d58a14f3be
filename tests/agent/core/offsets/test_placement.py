"""Which topic a source connector's offsets are in."""

from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.core.offsets.source import OwnTopic, own_topic
from tests.support.agents.worker_properties import distributed
from tests.support.cases import cases

ELSEWHERE = {"producer.override.bootstrap.servers": "other:9092"}


@cases("support", "disabled", "preparing")
def test_without_exactly_once_a_topic_has_to_be_named(support: str) -> None:
    """The topic of the producer is not a reason in this phase."""
    config = distributed(exactly_once_source_support=support)
    assert own_topic(config, ELSEWHERE) is None
    own = OwnTopic(name="mine", is_workers_name=False)
    assert own_topic(config, {"offsets.storage.topic": "mine"}) == own


def test_the_workers_topic_is_on_its_brokers_or_in_its_file() -> None:
    """Named or not, in any order of brokers; a standalone worker ignores the name."""
    config = distributed(bootstrap_servers="a:1,b:2", exactly_once_source_support="enabled")
    named = {"offsets.storage.topic": config.offset_storage_topic}
    turned = {"producer.override.bootstrap.servers": "b:2, a:1"}
    assert own_topic(config, {}) is None
    assert own_topic(config, named) is None
    assert own_topic(config, {**named, **turned}) is None
    config = WorkerConfig.parse({"key.converter": "K", "value.converter": "V"})
    assert own_topic(config, {"offsets.storage.topic": "mine"}) is None


def test_other_brokers_may_have_another_topic_of_the_workers_name() -> None:
    """Exactly-once offsets are where the records are; only the clusters' ids can tell."""
    config = distributed(exactly_once_source_support="enabled")
    expected = OwnTopic(name=config.offset_storage_topic, is_workers_name=True)
    assert own_topic(config, ELSEWHERE) == expected
    config = distributed(
        exactly_once_source_support="enabled", producer_bootstrap_servers="other:9092"
    )
    assert own_topic(config, {}) == expected
