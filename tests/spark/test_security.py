"""Credentials reach Spark and the snapshots, and show nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from pyconnect_reconcile.bench import COMMITTED, read_topics
from pyconnect_reconcile.capture import capture
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import read_spec
from pyconnect_reconcile.topics import cluster_view
from pyconnect_sandbox.broker import BrokerSecurity
from tests.support.audits.audits import Audit, no_table
from tests.support.servers.kafka import Servers

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = MODULE + ' required username="{}" password="{}";'


def test_sasl_credentials_of_the_properties_file_are_used_and_never_shown(
    servers: Servers, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same file serves Java's consumer, librdkafka and kafka-python; plans hide it."""
    broker = servers.broker(security=BrokerSecurity(sasl_users={"auditor": "hunter2"}))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(60)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in [1, 2, 4]:
        producer.produce("t", str(number).encode())
    assert producer.flush(60) == 0
    properties = tmp_path / "client.properties"
    lines = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN"]
    properties.write_text(
        "\n".join([*lines, "sasl.jaas.config=" + JAAS.format("auditor", "hunter2")])
    )
    audit = Audit(spark, broker.sasl_bootstrap_servers, tmp_path)
    clusters = {"main": {"bootstrap": broker.sasl_bootstrap_servers, "properties": str(properties)}}
    answer = audit.run("sequence", topics=["t"], sequence=r"regex:(\d+)", clusters=clusters)
    assert answer.intervals("missing") == {(None, 3, 3)}
    spec = read_spec({"job": "ranges", "topics": ["t"], "clusters": clusters})
    ranges = capture(spec, tmp_path, no_table).snapshots["main"].partitions
    records = read_topics(spark, spec.clusters["main"], ranges, isolation=COMMITTED)
    assert "hunter2" not in records._jdf.queryExecution().toString()
    properties.write_text(
        "\n".join([*lines, "sasl.jaas.config=" + JAAS.format("auditor", "wrong")])
    )
    # librdkafka tries again until the time is over.
    monkeypatch.setattr(cluster_view, "TIMEOUT_S", 3.0)
    with pytest.raises(ReconcileError) as caught:
        audit.run("sequence", topics=["t"], sequence=r"regex:(\d+)", clusters=clusters)
    assert "wrong" not in caught.value.message
