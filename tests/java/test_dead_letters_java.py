"""A Java worker's own dead letter queue: its headers make groups, and its letters are replayed."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands.pyconnect_command import Command
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker, SharedJavaWorker
from tests.support.servers.topics import create_topics, produce, read_topic

pytestmark = pytest.mark.java

BAD_JSON = (b"{bad 1", b"{bad 22")
BAD_PRICE = (b'{"price": "12 EUR"}', b'{"price": "7 EUR"}')


def test_letters_of_a_java_worker_are_grouped_and_replayed(
    java_worker: SharedJavaWorker, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """Two causes, whatever the values; mended records pass the sink that refused them."""
    command = Command(tmp_path / "home", java_worker.url, kafka_broker.bootstrap_servers)
    topic, dead, sink = (unique_name(each) for each in ("orders", "dead", "sink"))
    create_topics(kafka_broker.bootstrap_servers, [topic, dead])
    headers = [("h", b"\xff"), ("none", None)]
    produce(kafka_broker.bootstrap_servers, topic, *BAD_JSON, *BAD_PRICE, key=b"k", headers=headers)
    out = tmp_path / "out"
    config = {
        "connector.class": "FileStreamSink",
        "topics": topic,
        "file": str(out),
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "transforms": "cast",
        "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.cast.spec": "price:int32",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    settings = [word for key, value in config.items() for word in ("-s", f"{key}={value}")]
    assert command("connectors", "create", sink, *settings, "--wait", "RUNNING") == 0, command.err

    def groups() -> dict[str, Any]:
        assert command("connectors", "dlq", sink, "-o", "json") == 0, command.err
        return {group["stage"]: group for group in json.loads(command.out)}

    eventually(lambda: sum(group["count"] for group in groups().values()) == 4, describe=groups)
    found = groups()
    assert {stage: group["count"] for stage, group in found.items()} == {
        "VALUE_CONVERTER": 2,
        "TRANSFORMATION": 2,
    }
    failed = found["TRANSFORMATION"]
    assert failed["processor"] == "org.apache.kafka.connect.transforms.Cast$Value"
    assert failed["exception"] == "org.apache.kafka.connect.errors.DataException"
    assert failed["topic"] == topic
    assert found["VALUE_CONVERTER"]["root"].startswith("com.fasterxml.jackson.core.")
    assert failed["example"]["error"]["connector.name"] == sink

    mend = '.price |= (rtrimstr(" EUR") | tonumber)'
    replay = ("dlq", "replay", sink, "--group", failed["group"], "--mend", mend, "--yes")
    assert command(*replay) == 0, command.err
    eventually(lambda: out.read_text().splitlines() == ["{price=12}", "{price=7}"])
    records = read_topic(kafka_broker.bootstrap_servers, topic, committed=True)
    replayed = records[4:]
    assert [record.value() for record in replayed] == [b'{"price":12}', b'{"price":7}']
    assert [record.headers() for record in replayed] == [headers, headers]
    assert [record.timestamp() for record in replayed] == [r.timestamp() for r in records[2:4]]
    assert {stage: group["left"] for stage, group in groups().items()} == {
        "VALUE_CONVERTER": 2,
        "TRANSFORMATION": 0,
    }
    assert command("connectors", "delete", sink, "--yes") == 0, command.err
