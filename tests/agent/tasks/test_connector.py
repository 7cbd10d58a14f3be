"""Errors that make a connector FAILED before its plugin is called."""

import pytest

from pyconnect_agent.builtin.connectors.file_stream import (
    FileStreamSinkConnector,
    FileStreamSourceConnector,
)
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.tasks.connector import check_connector_config
from pyconnect_api import ConfigException, ConnectException, Connector
from tests.support.cases import cases

SOURCE = {"name": "c", "connector.class": "FileStreamSource", "topic": "t"}


def check(config: dict[str, str | None], connector: Connector | None = None, **worker: str) -> None:
    properties = {
        "bootstrap.servers": "localhost:1",
        "key.converter": "StringConverter",
        "value.converter": "StringConverter",
        **{name.replace("_", "."): text for name, text in worker.items()},
    }
    given = {name: text for name, text in config.items() if text is not None}
    check_connector_config(
        WorkerConfig.parse(properties), config, connector or FileStreamSourceConnector(), given
    )


@cases(
    "settings, text",
    (
        {"partitions": "x", "replication.factor": "1"},
        (
            "Invalid value x for configuration topic.creation.default.partitions: "
            "Not a number of type INT"
        ),
    ),
    (
        {"partitions": "1"},
        (
            'Missing required configuration "topic.creation.default.replication.factor" which '
            "has no default value."
        ),
    ),
)
def test_topic_creation_settings_are_read_at_the_start(settings: dict[str, str], text: str) -> None:
    """Wrong settings fail the connector at its start, unless the worker creates no topics."""
    config = SOURCE | {f"topic.creation.default.{name}": it for name, it in settings.items()}
    with pytest.raises(ConfigException) as raised:
        check(config)
    assert str(raised.value) == text
    check(config, topic_creation_enable="false")


def test_a_sink_without_topics_and_null_values_fail() -> None:
    """A sink without topics and topics.regex fails, and a plugin gets no null value."""
    with pytest.raises(ConfigException):
        check({"name": "c"}, FileStreamSinkConnector())
    with pytest.raises(ConfigException, match=r"for key topic: null$"):
        check(SOURCE | {"topic": None})


def test_a_connector_is_a_source_or_a_sink() -> None:
    """A class that is only a Connector raises ConnectException."""

    class Neither(Connector):
        def version(self) -> str:
            return "1"

        def start(self, props: object) -> None: ...
        def stop(self) -> None: ...
        def task_class(self) -> type:
            return object

        def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
            return []

        def config(self) -> None: ...

    with pytest.raises(ConnectException, match="SourceConnector or SinkConnector"):
        check(SOURCE, Neither())
