"""Records of a trial of a connector, in this process."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pyconnect_agent.channel.reports import ConnectorTried
from pyconnect_agent.channel.requests import TryConnectorJob, WorkerSettings
from pyconnect_agent.core.plugin_catalog import PluginDesc, PluginKind
from pyconnect_agent.tasks import trial
from pyconnect_api import STRING_SCHEMA, SourceRecord
from tests.agent.tasks.parts import FakeControl
from tests.support.agents.worker_properties import JSON_CONVERTER, PROPERTIES
from tests.support.plugins.plain_connectors import PlainSource, PlainSourceTask

HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
NO_TOPIC = "ConnectException: A source record has no topic"
WRONG_TIME = "ConnectException: Invalid record timestamp -2"


class OddTask(PlainSourceTask):
    def start(self, props: Mapping[str, str]) -> None: ...

    def poll(self) -> Sequence[SourceRecord]:
        return [
            SourceRecord({}, {}, "t", value_schema=STRING_SCHEMA, value="fine"),
            SourceRecord({}, {}, None, value_schema=STRING_SCHEMA, value="no topic"),
            SourceRecord({}, {}, "t", value="no time", timestamp=-2),
            SourceRecord({}, {}, "t", value_schema=STRING_SCHEMA, value=5),
            SourceRecord({}, {}, "t", value="now", timestamp=-1),
        ]


class OddSource(PlainSource):
    def task_class(self) -> type[OddTask]:
        return OddTask


def tried(connector_class: str, *plugins: PluginDesc) -> list[dict[str, Any]]:
    config = {"name": "c", "connector.class": connector_class}
    job = TryConnectorJob(
        worker=WorkerSettings(properties=PROPERTIES, plugins=plugins),
        connector="c",
        config=config,
        task_config=config,
        given=None,
        most=5,
        time_ms=60_000,
    )
    answer = trial.try_connector(job, FakeControl())  # type: ignore[arg-type]  # what it looks at
    assert isinstance(answer, ConnectorTried), answer
    assert answer.failure is None
    return [json.loads(record) for record in answer.records]


def ends(records: Sequence[Mapping[str, Any]]) -> list[object]:
    """Return the error of each record, else its written value."""
    return [each["steps"][-1].get("error") or each["kafka"]["value"] for each in records]


def test_a_record_that_fails_a_task_is_shown_as_failed() -> None:
    """A record without topic, with a wrong timestamp or refused by a converter has an error."""
    records = tried(f"{__name__}.OddSource")
    fine, no_topic, no_time, refused, now = ends(records)
    assert "fine" in str(fine)
    assert (no_topic, no_time) == (NO_TOPIC, WRONG_TIME)
    assert "DataException" in str(refused)
    assert "now" in str(now)
    steps = [[step["step"] for step in each["steps"]] for each in records]
    assert steps == [
        ["polled"],
        ["polled", "written"],
        ["polled", "written"],
        ["polled", "JsonConverter"],
        ["polled"],
    ]
    assert ["kafka" in each for each in records] == [True, False, False, False, True]


class FakeLink:
    """The Java process of a source whose last transformation removes the topic."""

    def begin(self, job: object) -> None: ...

    def stop(self) -> None: ...

    def call(self, method: str, **_: object) -> Any:
        if method == "start":
            return None
        value = base64.b64encode(b"x").decode()
        return [
            {
                "steps": [
                    {"step": "polled", "record": {"topic": "t", "timestamp": None}},
                    {"step": "change", "record": {"topic": topic, "timestamp": timestamp}},
                ],
                "kafka": {"key": None, "value": value, "headers": []},
            }
            for topic, timestamp in (("t", None), (None, None), ("t", -2), ("t", 1), ("t", 0))
        ]


def test_a_record_that_fails_a_java_task_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent checks the topic and timestamp of Java records, as the Java process does not."""
    monkeypatch.setattr(trial, "start_link", lambda *_, **__: FakeLink())
    plugins = [
        PluginDesc(class_name=name, python_path="", kind=kind, version="1", is_java=True)
        for name, kind in (
            ("a.Source", PluginKind.SOURCE),
            (JSON_CONVERTER, PluginKind.CONVERTER),
            (HEADERS, PluginKind.HEADER_CONVERTER),
        )
    ]
    assert ends(tried("a.Source", *plugins)) == ["x", NO_TOPIC, WRONG_TIME, "x", "x"]
