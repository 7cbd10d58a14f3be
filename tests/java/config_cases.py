"""Connector configurations whose validation is compared between Apache's worker and ours."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

ConfigValues = Mapping[str, str | None]

SOURCE: ConfigValues = {
    "connector.class": "FileStreamSource",
    "name": "case",
    "topic": "t",
    "file": "/tmp/file",
}
SINK: ConfigValues = {
    "connector.class": "FileStreamSink",
    "name": "case",
    "topics": "t",
    "file": "/tmp/file",
}
_TRANSFORMS = "org.apache.kafka.connect.transforms"


@dataclass(frozen=True, slots=True)
class ConfigCase:
    """`changes` are put over a valid config of the connector class."""

    base: ConfigValues
    changes: ConfigValues

    @property
    def connector_class(self) -> str:
        return str(self.base["connector.class"])

    @property
    def config(self) -> dict[str, str | None]:
        return {**self.base, **self.changes}

    @property
    def name(self) -> str:
        """For test ids."""
        return " ".join(
            [self.connector_class, *(f"{key}={it}" for key, it in self.changes.items())]
        )


def _transform(class_name: str, **settings: str) -> dict[str, str]:
    return {
        "transforms": "a",
        "transforms.a.type": f"{_TRANSFORMS}.{class_name}",
        **{f"transforms.a.{key.replace('_', '.')}": value for key, value in settings.items()},
    }


def _common() -> Iterator[ConfigValues]:
    yield {}
    for key, values in {
        "name": (None, "", "a\tb", "a;b/c%"),
        "tasks.max": (None, "0", "x", " 2 "),
        "tasks.max.enforce": ("false", "perhaps"),
        "unknown.key": ("x", None),
        "connector.plugin.version": ("[4,5)", "[4.3.1]"),
        "key.converter": (
            "",
            "nope",
            "JsonConverter",
            "org.apache.kafka.connect.json.JsonConverter",
        ),
        "key.converter.plugin.version": ("1.0", "4.3.1"),
        "value.converter": ("org.apache.kafka.connect.file.FileStreamSinkConnector",),
        "header.converter": (
            "SimpleHeaderConverter",
            "org.apache.kafka.connect.storage.StringConverter",
        ),
        "errors.tolerance": ("all", "some"),
        "errors.retry.timeout": ("-1", "x"),
        "errors.retry.delay.max.ms": ("-1",),
        "errors.log.enable": ("maybe",),
        "config.action.reload": ("none", "x"),
        "predicates": ("p",),
        "transforms": ("a", "a,a"),
        "producer.override.acks": ("x",),
        "producer.override.batch.size": ("x",),
        "producer.override.unknown": ("x",),
        "producer.override.client.rack": ("x",),
        "producer.override.partitioner.rack.aware": ("true",),
        "consumer.override.metadata.cluster.check.enable": ("false",),
        "producer.override.bootstrap.resolve.timeout.ms": ("1",),
        "consumer.override.group.id": ("g",),
        "consumer.override.max.poll.records": ("x",),
        "consumer.override.auto.offset.reset": ("never",),
        "admin.override.retries": ("x",),
    }.items():
        for value in values:
            yield {key: value}
    yield {
        "key.converter": "JsonConverter",
        "key.converter.schemas.enable": "x",
        "key.converter.schemas.cache.size": "y",
    }
    yield {"predicates": "p", "predicates.p.type": "nope"}
    yield {"transforms": "a", "transforms.a.type": "nope"}
    yield _transform("InsertField$Value", static_field="f")
    yield _transform("HoistField$Value")
    yield _transform("ReplaceField$Key", include="a", exclude="b")
    yield _transform("TimestampRouter", topic_format="x", predicate="p")
    yield _transform("ValueToKey", fields="a.b", field_syntax_version="V2")
    yield _transform("ValueToKey", fields="a.b", field_syntax_version="x")
    yield _transform("Filter", predicate="p") | {
        "predicates": "p",
        "predicates.p.type": f"{_TRANSFORMS}.predicates.TopicNameMatches",
        "predicates.p.pattern": "x",
    }


def _source() -> Iterator[ConfigValues]:
    for key, values in {
        "topic": (None, ""),
        "file": (None, ""),
        "topic.creation.groups": ("a", "a,a"),
        "topic.creation.default.partitions": ("0",),
        "exactly.once.support": ("required", "x"),
        "transaction.boundary": ("poll", "connector", "x"),
        "transaction.boundary.interval.ms": ("0", "x"),
        "offsets.storage.topic": ("", "own"),
    }.items():
        for value in values:
            yield {key: value}
    yield {"topic.creation.groups": "a", "topic.creation.a.include": "x"}
    yield {
        "topic.creation.groups": "a",
        "topic.creation.a.include": "x",
        "topic.creation.a.partitions": "0",
    }


def _sink() -> Iterator[ConfigValues]:
    for key, values in {
        "topics": (None, "", "a,a", "t, u ,,v"),
        "topics.regex": ("x",),
        "file": (None, ""),
        "errors.deadletterqueue.topic.name": ("t", "d"),
        "errors.deadletterqueue.topic.replication.factor": ("x",),
        "errors.deadletterqueue.context.headers.enable": ("x",),
    }.items():
        for value in values:
            yield {key: value}
    yield {"topics": None, "topics.regex": "x"}
    yield {"topics": "", "topics.regex": "x.*"}


CONFIG_CASES: tuple[ConfigCase, ...] = (
    *(ConfigCase(base, changes) for base in (SOURCE, SINK) for changes in _common()),
    *(ConfigCase(SOURCE, changes) for changes in _source()),
    *(ConfigCase(SINK, changes) for changes in _sink()),
)
