"""Typed settings of a connector, and groups of the topics that it creates (KIP-158)."""

import pytest

from pyconnect_agent.core.config.connector_config import (
    ConnectorSettings,
    SinkTaskSettings,
    SourceTaskSettings,
    TransactionBoundary,
)
from pyconnect_agent.core.config.topic_creation import topic_creation_groups
from pyconnect_api import ConfigException
from tests.support.cases import cases

MINIMAL = {"name": "c", "connector.class": "FileStreamSource", "own.setting": "x"}


def test_defaults_are_connects_and_wrong_settings_stop_the_connector() -> None:
    """Unset settings have Connect's defaults, and the first error is raised as in validation."""
    settings = ConnectorSettings.parse(MINIMAL)
    assert (settings.tasks_max, settings.tolerate_all_errors) == (1, False)
    assert (settings.errors_retry_timeout_ms, settings.errors_retry_delay_max_ms) == (0, 60_000)
    assert settings.key_converter is None
    assert settings.restart_on_reload
    with pytest.raises(ConfigException, match=r"configuration tasks\.max: Value must be at least"):
        SourceTaskSettings.parse(MINIMAL | {"tasks.max": "0"})


def test_sinks_know_their_topics_and_where_errors_go() -> None:
    """Blank texts mean unset, and a reporter exists if errors go to a queue or the log."""
    settings = SinkTaskSettings.parse(MINIMAL | {"topics": "a, b", "topics.regex": ""})
    assert settings.topics == ("a", "b")
    assert settings.dlq_topic is None
    assert not settings.has_errant_record_reporter
    logged = SinkTaskSettings.parse(MINIMAL | {"errors.log.enable": "true"})
    assert logged.has_errant_record_reporter
    queue = SinkTaskSettings.parse(MINIMAL | {"errors.deadletterqueue.topic.name": "dlq"})
    assert (queue.dlq_topic, queue.dlq_replication_factor) == ("dlq", 3)
    assert queue.has_errant_record_reporter


def test_sources_know_their_boundaries_and_topics() -> None:
    """Choices ignore case, and an unset transaction interval is that of the worker."""
    settings = SourceTaskSettings.parse(
        MINIMAL
        | {
            "transaction.boundary": "INTERVAL",
            "topic.creation.default.partitions": "1",
            "topic.creation.default.replication.factor": "1",
        }
    )
    assert settings.transaction_boundary is TransactionBoundary.INTERVAL
    assert settings.transaction_interval_ms is None
    assert [group.name for group in settings.topic_creation] == ["default"]


def test_each_setting_of_a_sink_comes_from_its_key() -> None:
    """Each attribute of a sink's settings has the value of its key."""
    queue = "errors.deadletterqueue"
    sink = SinkTaskSettings.parse(
        {
            "name": "c",
            "connector.class": "k",
            "connector.plugin.version": "[1,2)",
            "tasks.max": "7",
            "tasks.max.enforce": "false",
            "transforms": "a, b",
            "config.action.reload": "none",
            "errors.retry.timeout": "-1",
            "errors.retry.delay.max.ms": "5",
            "errors.tolerance": "all",
            "errors.log.enable": "true",
            "errors.log.include.messages": "TRUE",
            "topics.regex": "t.*",
            f"{queue}.topic.name": "dlq",
            f"{queue}.topic.replication.factor": "1",
            f"{queue}.context.headers.enable": "true",
        }
    )
    assert (sink.connector_version, sink.tasks_max, sink.tasks_max_enforce) == ("[1,2)", 7, False)
    assert not sink.restart_on_reload
    assert (sink.errors_retry_timeout_ms, sink.errors_retry_delay_max_ms) == (-1, 5)
    assert sink.tolerate_all_errors
    assert (sink.errors_log_enable, sink.errors_log_include_messages) == (True, True)
    assert sink.topics == ()
    assert (sink.dlq_topic, sink.dlq_replication_factor) == ("dlq", 1)
    assert sink.dlq_context_headers


DEFAULT = {
    "topic.creation.default.partitions": "2",
    "topic.creation.default.replication.factor": "-1",
}


def test_settings_make_the_default_group_required() -> None:
    """With any such setting the `default` group is required; its own patterns are ignored."""
    assert topic_creation_groups({"name": "c"}) == ()
    (default,) = topic_creation_groups(DEFAULT | {"topic.creation.default.include": "("})
    assert default.matches("anything")
    with pytest.raises(ConfigException, match=r"topic\.creation\.default\.replication\.factor"):
        topic_creation_groups({"topic.creation.groups": "g"})


def test_groups_come_in_order_and_default_last() -> None:
    """`default` comes last without being listed, and gives other groups their missing values."""
    groups = topic_creation_groups(
        DEFAULT
        | {
            "topic.creation.groups": "compacted, default, big",
            "topic.creation.compacted.include": "c-.*, d",
            "topic.creation.compacted.exclude": "c-x",
            "topic.creation.compacted.cleanup.policy": "compact",
            "topic.creation.big.include": "b.*",
            "topic.creation.big.partitions": "50",
        }
    )
    assert [group.name for group in groups] == ["compacted", "big", "default"]
    compacted, big, default = groups
    assert (compacted.partitions, compacted.replication_factor) == (2, -1)
    assert compacted.other_configs == {"cleanup.policy": "compact"}
    assert (big.partitions, default.partitions) == (50, 2)


@cases("topic, group", ("c-1", "g"), ("c-x", "default"), ("xc-1", "default"), ("d", "g"))
def test_names_match_as_a_whole_and_exclusion_wins(topic: str, group: str) -> None:
    """A topic belongs to the first group that matches its whole name and does not exclude it."""
    groups = topic_creation_groups(
        DEFAULT
        | {
            "topic.creation.groups": "g",
            "topic.creation.g.include": "c-.*,d",
            "topic.creation.g.exclude": "c-x",
        }
    )
    assert next(item.name for item in groups if item.matches(topic)) == group


@cases(
    "changes, message",
    (
        {"topic.creation.default.partitions": "0"},
        "Number of partitions must be positive, or -1 to use the broker's default",
    ),
    ({"topic.creation.groups": "g", "topic.creation.g.include": "("}, "Syntax error in regular"),
)
def test_wrong_settings_are_refused(changes: dict[str, str], message: str) -> None:
    """A wrong number and a wrong pattern are refused."""
    with pytest.raises(ConfigException, match=message):
        topic_creation_groups(DEFAULT | changes)


def test_patterns_have_javas_meaning() -> None:
    """Digits are ASCII, flags of a pattern apply to later ones, and syntax errors are refused."""
    rules = DEFAULT | {
        "topic.creation.groups": "g",
        "topic.creation.g.include": r"n-\d+,(?i)low,high,\p{Upper}+",
    }
    group = topic_creation_groups(rules)[0]
    assert [name for name in ("n-1", "n-٣", "LOW", "HIGH", "ABC", "n") if group.matches(name)] == [
        "n-1",
        "LOW",
        "HIGH",
        "ABC",
        "n",
    ]
    with pytest.raises(ConfigException, match="Syntax error in regular expression"):
        topic_creation_groups(rules | {"topic.creation.g.include": "(?<n>"})
