"""The framework's settings of a connector, typed."""

import pytest

from pyconnect_agent.core.config.connector_config import (
    ConnectorSettings,
    SinkTaskSettings,
    SourceTaskSettings,
    TransactionBoundary,
)
from pyconnect_api import ConfigException

MINIMAL = {"name": "c", "connector.class": "FileStreamSource", "own.setting": "x"}


def test_defaults_are_connects_and_wrong_settings_stop_the_connector() -> None:
    """It fails at the first error and has one task, as validation would have said."""
    settings = ConnectorSettings.parse(MINIMAL)
    assert (settings.tasks_max, settings.tolerate_all_errors) == (1, False)
    assert (settings.errors_retry_timeout_ms, settings.errors_retry_delay_max_ms) == (0, 60_000)
    assert settings.key_converter is None
    assert settings.restart_on_reload
    with pytest.raises(ConfigException, match=r"configuration tasks\.max: Value must be at least"):
        SourceTaskSettings.parse(MINIMAL | {"tasks.max": "0"})


def test_sinks_know_their_topics_and_where_errors_go() -> None:
    """Blank texts mean unset; a reporter exists when reports go anywhere."""
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
    """Choices may be in any case; an unset interval is the worker's."""
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
    """Every value differs from its default."""
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
