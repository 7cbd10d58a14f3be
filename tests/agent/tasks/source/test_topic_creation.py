"""Creation of the topics that a source task's records need (KIP-158)."""

from collections.abc import Callable, Sequence

import pytest

from pyconnect_agent.core.config.topic_creation import topic_creation_groups
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.core.errors import AuthorizationError, KafkaError, RetriableKafkaError
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.kafka.admin import TopicCreated, TopicSpec
from pyconnect_agent.tasks.source.pipeline import TopicCreation, compose, topic_creation_of
from pyconnect_api import STRING_SCHEMA, ConnectException, RetriableException, SourceRecord
from tests.agent.tasks.parts import converters, tolerance
from tests.support.cases import cases

DEFAULT = {
    "topic.creation.default.partitions": "3",
    "topic.creation.default.replication.factor": "-1",
}
COMPACTED = {
    "topic.creation.groups": "compacted",
    "topic.creation.compacted.include": "c-.*",
    "topic.creation.compacted.exclude": "c-x",
    "topic.creation.compacted.partitions": "1",
    "topic.creation.compacted.cleanup.policy": "compact",
}


class FakeTopics:
    """A cluster's topics; `outcome` replaces a creation's result, `silent` fails each look-up."""

    def __init__(self, *existing: str) -> None:
        self.existing = set(existing)
        self.looks: list[str] = []
        self.created: list[TopicSpec] = []
        self.outcome: TopicCreated | KafkaError = TopicCreated.NOW
        self.silent: KafkaError | None = None

    def describe_topics(self, topics: Sequence[str], timeout_ms: int) -> dict[str, int]:
        self.looks += topics
        if self.silent is not None:
            raise self.silent
        return {topic: 1 for topic in topics if topic in self.existing}

    def create_or_find_topic(self, topic: TopicSpec, timeout_ms: int) -> TopicCreated:
        self.created.append(topic)
        if isinstance(self.outcome, KafkaError):
            raise self.outcome
        return self.outcome


def creation(topics: FakeTopics, **rules: str) -> TopicCreation:
    groups = topic_creation_groups({**DEFAULT, **COMPACTED, **rules})
    return TopicCreation(groups, topics, timeout_ms=1_000)


def conversion(topics: TopicCreation) -> Callable[[SourceRecord], object]:
    """Return the conversion of single records."""
    made = compose(converters=converters(), chain=None, tolerance=tolerance(), topics=topics)
    return lambda record: made.convert(record, record)


def record(topic: str, value: str = "v") -> SourceRecord:
    return SourceRecord({}, {}, topic, value_schema=STRING_SCHEMA, value=value)


def test_a_topic_is_created_by_the_first_rule_that_matches() -> None:
    """The rule gives partitions, replicas and settings; topics without a match use `default`."""
    topics = FakeTopics()
    rules = creation(topics)
    for name in ("c-1", "c-x"):
        rules.ensure(name)
    assert topics.created == [
        TopicSpec(
            name="c-1", partitions=1, replication_factor=-1, settings={"cleanup.policy": "compact"}
        ),
        TopicSpec(name="c-x", partitions=3, replication_factor=-1, settings={}),
    ]


def test_a_topic_is_looked_for_once_before_it_is_made() -> None:
    """A task looks a topic up once; another client may create it in between."""
    topics = FakeTopics("old")
    convert = conversion(creation(topics))
    for name in ("old", "new", "old", "new"):
        convert(record(name))
    assert topics.looks == ["old", "new"]
    assert [spec.name for spec in topics.created] == ["new"]
    topics = FakeTopics()
    topics.outcome = TopicCreated.BEFORE
    rules = creation(topics)
    rules.ensure("t")
    assert rules.known == {"t"}


def test_a_topic_that_can_neither_be_made_nor_found_fails_the_task() -> None:
    """The task fails with Kafka's text, which names the remedies."""
    topics = FakeTopics()
    topics.outcome = TopicCreated.NOT
    rules = creation(topics)
    with pytest.raises(ConnectException) as caught:
        rules.ensure("c-1")
    assert str(caught.value) == (
        "Task failed to create new topic (name=c-1, numPartitions=1, replicationFactor=default, "
        "replicasAssignments=null, configs={cleanup.policy=compact}). Ensure that the task is "
        "authorized to create topics or that the topic exists and restart the task"
    )
    assert rules.known == set()


@cases(
    "failure, raised",
    (RetriableKafkaError("slow"), RetriableException),
    (AuthorizationError("no"), ConnectException),
)
def test_a_look_that_may_succeed_is_repeated(failure: KafkaError, raised: type[Exception]) -> None:
    """A look-up that may succeed later raises RetriableException, so the record is sent again."""
    topics = FakeTopics()
    topics.silent = failure
    with pytest.raises(ConnectException) as caught:
        creation(topics).ensure("t")
    assert type(caught.value) is raised


def test_a_creation_that_fails_is_not_repeated() -> None:
    """A creation that timed out fails the task, as in Kafka."""
    topics = FakeTopics()
    topics.outcome = RetriableKafkaError("Timed out while checking for or creating topic(s) 't'.")
    with pytest.raises(ConnectException, match="Timed out") as caught:
        creation(topics).ensure("t")
    assert type(caught.value) is ConnectException


@cases(
    "worker, rules, active", ("true", DEFAULT, True), ("false", DEFAULT, False), ("true", {}, False)
)
def test_worker_and_connector_want_it(worker: str, rules: dict[str, str], active: bool) -> None:
    """Creation needs `topic.creation.enable` of the worker and rules of the connector."""
    config = WorkerConfig.parse(
        {
            "bootstrap.servers": "127.0.0.1:1",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "topic.creation.enable": worker,
        }
    )
    connector = {"name": "c", "connector.class": "FileStreamSource", **rules}
    found = topic_creation_of(config, connector, ConnectorTaskId("c", 0))
    assert (found is not None) == active
