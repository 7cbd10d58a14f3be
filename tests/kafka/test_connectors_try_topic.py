"""`pyconnect connectors try` of a sink with the records of a topic."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.support.agents.agent import sink_config
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import create_topics, produce

pytestmark = pytest.mark.kafka


def test_a_sink_would_get_the_newest_records_of_a_topic(
    kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """They are read without a group: none is there afterwards, and the sink's file neither."""
    topic, name = unique_name("lines"), unique_name("tried")
    bootstrap = kafka_broker.bootstrap_servers
    create_topics(bootstrap, [topic])
    produce(bootstrap, topic, b'"a"', b'"b"', b'"c"')
    written = tmp_path / "out.txt"
    file = tmp_path / "sink.json"
    file.write_text(json.dumps({"name": name, "config": sink_config(written, topic)}))
    command = ["-m", "pyconnect_cli", "connectors", "try", str(file), "-n", "2", "-o", "json"]
    done = subprocess.run(
        [sys.executable, *command, "--topic", topic, "--kafka-bootstrap", bootstrap],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    # Without schemas an envelope is missing: the converter is the default of Kafka's own files.
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 of 2 records fail" in done.stderr
    found = json.loads(done.stdout)["records"]
    assert [step["step"] for each in found for step in each["steps"]] == ["JsonConverter"] * 2
    assert not written.exists()
    groups = AdminClient({"bootstrap.servers": bootstrap}).list_consumer_groups().result()
    assert not [each.group_id for each in groups.valid if name in each.group_id]
