"""`reconcile topic-topic` over two clusters that share only the names of their topics."""

import json
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from pyconnect_reconcile.capture import capture
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import Verdict
from pyconnect_reconcile.spec import read_spec
from pyconnect_reconcile.topics import cluster_view
from tests.support.audits.audits import Answer, Audit, no_table
from tests.support.audits.seeding import Record, Seed, seed_topic
from tests.support.commands.pyconnect_command import Pyconnect
from tests.support.names import unique_name
from tests.support.servers.kafka import Servers, SharedBroker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

KEYS = [f"k{n}".encode() for n in range(60)]


@pytest.fixture(scope="module")
def far(module_servers: Servers) -> str:
    """The brokers of a cluster other than the session's."""
    return module_servers.broker().bootstrap_servers


def cluster_id(bootstrap: str) -> str | None:
    found: str | None = (
        AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=400).cluster_id
    )
    return found


def mirrored(near: str, far: str) -> tuple[Seed, Seed]:
    """Write the same records in both clusters, at other offsets and in other partitions."""
    name = unique_name("mirrored")
    origin = seed_topic(near, name=name, partitions=2)
    mirror = seed_topic(far, name=name, partitions=3)
    records = [Record(b"v%d" % n, key=key, partition=n % 2) for n, key in enumerate(KEYS)]
    origin.write(records[:10], outcome="commit")
    origin.write(records[10:])
    mirror.write([Record(b"v%d" % n, key=key, partition=n % 3) for n, key in enumerate(KEYS)])
    return origin, mirror


def test_a_mirror_in_another_cluster_agrees_and_then_differs_by_offsets(
    audit: Audit, far: str, tmp_path: Path
) -> None:
    """A mirror agrees by options or a spec, and each fault has the offset of its own cluster."""
    near = audit.bootstrap
    assert cluster_id(near) != cluster_id(far)
    origin, mirror = mirrored(near, far)
    command = Pyconnect(tmp_path, "http://127.0.0.1:1", near)

    def compared(*options: str) -> Answer:
        both = ("topic-topic", origin.topic, origin.topic)
        ended = command("reconcile", *both, *options, "--print-spec", "-o", "json")
        assert ended.code == 0, ended.err
        return audit.run(**json.loads(ended.out))

    agreed = compared("--right-bootstrap", far)
    assert (agreed.verdict, agreed.kinds()) == (Verdict.AGREE, set())
    counts = agreed.outcome.counts
    assert (counts["rows_left"], counts["rows_right"]) == (len(KEYS), len(KEYS))

    [lost] = origin.write([Record(b"only here", key=b"k7", partition=1)])
    [foreign] = mirror.write([Record(b"only there", key=b"k7", partition=2)])
    [again] = mirror.write([Record(b"v3", key=KEYS[3], partition=0)])
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        f"""
job: topic-topic
clusters:
  main: {{bootstrap: "127.0.0.1:1"}}
  near: {{bootstrap: "{near}"}}
  far: {{bootstrap: "{far}"}}
left: {{kind: topic, topics: [{origin.topic}], cluster: near}}
right: {{kind: topic, topics: [{origin.topic}], cluster: far}}
"""
    )
    differs = compared("--spec", str(spec))
    assert differs.verdict is Verdict.DIFFER
    assert differs.kinds() == {"extra", "missing", "repeated"}
    assert differs.places("extra") == {frozenset({foreign})}
    assert differs.places("missing") == {frozenset({lost})}
    assert differs.places("repeated") == {frozenset({(0, 1), again})}


def test_a_second_cluster_that_does_not_answer_is_named(
    kafka_broker: SharedBroker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A cluster that does not answer is an error with its address, not an empty topic."""
    monkeypatch.setattr(cluster_view, "TIMEOUT_S", 3.0)
    seed = seed_topic(kafka_broker.bootstrap_servers)
    side = {"kind": "topic", "topics": [seed.topic]}
    clusters = {
        "main": {"bootstrap": kafka_broker.bootstrap_servers},
        "far": {"bootstrap": "127.0.0.1:1"},
    }
    spec = read_spec(
        {
            "job": "topic-topic",
            "clusters": clusters,
            "left": side,
            "right": {**side, "cluster": "far"},
        }
    )
    with pytest.raises(ReconcileError, match=r"Kafka at 127\.0\.0\.1:1: .*Connection refused"):
        capture(spec, tmp_path, no_table)
