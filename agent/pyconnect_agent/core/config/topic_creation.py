"""Settings of the topics that a source connector lets the worker create (KIP-158).

Corresponds to ``TopicCreationConfig``, ``TopicCreationGroup`` and the enrichment in
``SourceConnectorConfig`` of Kafka Connect; error texts are Kafka's.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyconnect_agent.core.java_text.regex import compile_java_regex
from pyconnect_api.configdef import (
    NO_DEFAULT,
    CompositeValidator,
    ConfigDef,
    ConfigType,
    Importance,
    LambdaValidator,
    NonNullValidator,
    Validator,
    Width,
    invalid_value,
    parse_type,
)
from pyconnect_api.errors import ConfigException

TOPIC_CREATION_PREFIX = "topic.creation."
TOPIC_CREATION_GROUPS = "topic.creation.groups"
DEFAULT_GROUP = "default"
DISPLAY_GROUP = "Topic Creation"
_OWN_KEYS = ("include", "exclude", "replication.factor", "partitions")


def _positive_or_broker_default(what: str, limit: str) -> LambdaValidator:
    def check(name: str, value: object) -> None:
        if not isinstance(value, int) or value < -1 or value == 0:
            raise invalid_value(
                name, value, f"{what} must be positive{limit}, or -1 to use the broker's default"
            )

    return LambdaValidator(check, f"Positive number{limit}, or -1 to use the broker's default")


PARTITIONS_VALIDATOR = _positive_or_broker_default("Number of partitions", "")
REPLICATION_FACTOR_VALIDATOR = LambdaValidator(
    _positive_or_broker_default(
        "Replication factor", " and not larger than the number of brokers in the Kafka cluster"
    ).check,
    "Positive number not larger than the number of brokers in the Kafka cluster, "
    "or -1 to use the broker's default",
)


def _check_patterns(name: str, value: object) -> None:
    assert isinstance(value, Sequence)
    for pattern in value:
        try:
            compile_java_regex(pattern)
        except re.error as error:
            raise invalid_value(
                name, value, f"Syntax error in regular expression: {error}"
            ) from error


_PATTERNS_VALIDATOR = CompositeValidator.of(
    NonNullValidator(), LambdaValidator(_check_patterns, "regular expressions")
)


def _group_config_def(
    group: str, replication_factor: object, partitions: object, include: list[str]
) -> ConfigDef:
    definition = ConfigDef()
    rows: tuple[tuple[str, ConfigType, object, Validator, str], ...] = (
        ("include", ConfigType.LIST, include, _PATTERNS_VALIDATOR, "Inclusion Topic Pattern for"),
        ("exclude", ConfigType.LIST, [], _PATTERNS_VALIDATOR, "Exclusion Topic Pattern for"),
        (
            "replication.factor",
            ConfigType.SHORT,
            replication_factor,
            REPLICATION_FACTOR_VALIDATOR,
            "Replication Factor for Topics in",
        ),
        (
            "partitions",
            ConfigType.INT,
            partitions,
            PARTITIONS_VALIDATOR,
            "Partition Count for Topics in",
        ),
    )
    for order, (name, config_type, default, validator, display) in enumerate(rows, 1):
        definition.define(
            name,
            config_type,
            default=default,
            validator=validator,
            importance=Importance.LOW,
            documentation=_DOCUMENTATION[name],
            group=group,
            order_in_group=order,
            width=Width.LONG,
            display_name=f"{display} {group}",
        )
    return definition


_DOCUMENTATION = {
    "include": "Patterns of the topic names this group is for; a name must match as a whole.",
    "exclude": "Patterns of topic names this group is not for; they win over include.",
    "replication.factor": "Replicas of the group's new topics; -1 as the broker says.",
    "partitions": "Partitions of the group's new topics; -1 as the broker says.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCreationGroup:
    """Settings for the new topics of a group; ``other_configs`` go to the topic unchanged."""

    name: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    replication_factor: int
    partitions: int
    other_configs: Mapping[str, str]

    def matches(self, topic: str) -> bool:
        """Return whether the group is for ``topic``; the group ``default`` is for every topic."""
        if self.name == DEFAULT_GROUP:
            return True
        return not _matches(self.exclude, topic) and _matches(self.include, topic)


def _matches(patterns: tuple[str, ...], topic: str) -> bool:
    """Match the joined patterns, as Kafka does: flags of one apply to the later ones too."""
    return compile_java_regex("|".join(patterns)).fullmatch(topic) is not None


def uses_topic_creation(props: Mapping[str, object]) -> bool:
    """Return whether a connector configuration asks for topic creation at all."""
    return any(name.startswith(TOPIC_CREATION_PREFIX) for name in props)


def topic_creation_groups(props: Mapping[str, str]) -> tuple[TopicCreationGroup, ...]:
    """Return the groups in the order of matching; ``default`` is the last.

    Empty when the connector does not use topic creation. Raises ConfigException when a value is
    wrong or the required settings of ``default`` are missing.
    """
    if not uses_topic_creation(props):
        return ()
    names = parse_type(TOPIC_CREATION_GROUPS, props.get(TOPIC_CREATION_GROUPS), ConfigType.LIST)
    assert names is None or isinstance(names, list)
    default = _group(
        props, DEFAULT_GROUP, _group_config_def(DEFAULT_GROUP, NO_DEFAULT, NO_DEFAULT, [".*"])
    )
    others = (
        _group(
            props,
            name,
            _group_config_def(
                f"{DISPLAY_GROUP}: {name}", default.replication_factor, default.partitions, []
            ),
        )
        for name in dict.fromkeys(names or ())
        if name != DEFAULT_GROUP
    )
    return (*others, default)


def _group(props: Mapping[str, str], name: str, definition: ConfigDef) -> TopicCreationGroup:
    prefix = f"{TOPIC_CREATION_PREFIX}{name}."
    embedded = ConfigDef()
    embedded.embed(prefix, DISPLAY_GROUP, 0, definition)
    # Patterns of the group `default` are ignored: it gets all topics that no other group matches.
    given = {
        key: value
        for key, value in props.items()
        if name != DEFAULT_GROUP or key not in (f"{prefix}include", f"{prefix}exclude")
    }
    values = embedded.parse(given)
    include, exclude = values[f"{prefix}include"], values[f"{prefix}exclude"]
    replication_factor, partitions = (
        values[f"{prefix}replication.factor"],
        values[f"{prefix}partitions"],
    )
    if not isinstance(replication_factor, int) or not isinstance(partitions, int):
        raise ConfigException(
            f"Topic creation group {name} has no partitions or replication factor"
        )
    assert isinstance(include, list)
    assert isinstance(exclude, list)
    return TopicCreationGroup(
        name=name,
        include=tuple(include),
        exclude=tuple(exclude),
        replication_factor=replication_factor,
        partitions=partitions,
        other_configs={
            key.removeprefix(prefix): value
            for key, value in props.items()
            if key.startswith(prefix) and key.removeprefix(prefix) not in _OWN_KEYS
        },
    )
