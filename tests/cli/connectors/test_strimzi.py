"""Strimzi's KafkaConnector documents in files."""

from pathlib import Path

import pytest

from pyconnect_cli.connectors.files import read_connector_files
from pyconnect_cli.errors import UsageError
from tests.support.cases import cases

CONNECTOR = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnector
metadata:
  name: orders
  labels: {strimzi.io/cluster: my-connect}
spec:
  class: org.apache.kafka.connect.file.FileStreamSourceConnector
  tasksMax: 2
  autoRestart: {enabled: true}
  state: stopped
  config:
    file: /opt/lines
    topic: orders
    flush: true
"""
OTHER = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnector
metadata: {name: other}
spec: {class: Sink, pause: true}
"""


def read(directory: Path, text: str) -> list[tuple[str, object, str | None]]:
    path = directory / "connectors.yaml"
    path.write_text(text)
    files = read_connector_files([str(path)])
    return [(file.name, dict(file.config), file.initial_state) for file in files]


def test_a_kafka_connector_is_taken_as_it_is(tmp_path: Path) -> None:
    """A file may mix KafkaConnectors and plain documents; the operator's settings are left out."""
    plain = "name: plain\nconnector.class: Sink\n"
    assert read(tmp_path, f"{CONNECTOR}---{OTHER}---\n{plain}") == [
        (
            "orders",
            {
                "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
                "tasks.max": "2",
                "file": "/opt/lines",
                "topic": "orders",
                "flush": "true",
            },
            "STOPPED",
        ),
        ("other", {"connector.class": "Sink"}, "PAUSED"),
        ("plain", {"name": "plain", "connector.class": "Sink"}, None),
    ]


def test_a_list_of_kubectl_is_read(tmp_path: Path) -> None:
    """The list that `kubectl get kafkaconnectors -o yaml` prints is read."""
    item = "".join(f"  {line}\n" for line in OTHER.strip().splitlines())
    text = f"apiVersion: v1\nkind: List\nitems:\n-{item[1:]}"
    assert [name for name, _, _ in read(tmp_path, text)] == ["other"]


@cases(
    "text, reason",
    (CONNECTOR.replace("KafkaConnector", "KafkaConnect"), "is a KafkaConnect, not"),
    (CONNECTOR.replace("tasksMax", "taskMax"), r"unknown member spec\.taskMax"),
    (CONNECTOR.replace("flush: true", "tasks.max: 3"), "tasks.max is set in spec and in"),
    (CONNECTOR.replace("  name: orders\n", ""), r"needs metadata\.name"),
    ("apiVersion: v1\nkind: KafkaConnector\nmetadata: {name: x}\n", "and spec"),
)
def test_contradictory_documents_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    """An unknown or contradictory member is refused, because a setting could be lost."""
    with pytest.raises(UsageError, match=reason):
        read(tmp_path, text)
