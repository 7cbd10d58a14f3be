"""Three agents under random kills and freezes: readers see every line once and in order."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.chaos.chaos import ENABLED, Chaos
from tests.support.plugins.java_jars import file_connectors
from tests.support.seeds import LONG, picked_seed
from tests.support.servers.cluster import Cluster, cluster_of
from tests.support.servers.kafka import SharedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(900)]

SECONDS = 120 if LONG else 30
LINES_PER_S = 100 if LONG else 30
IN_JAVA = 1 if LONG else 0
"""The sources are Java plugins, each with a Java sink."""
SEED_VARIABLE = "PYCONNECT_CHAOS_SEED"
"""A seed that repeats a schedule of kills; its effects depend on the machine."""


@pytest.fixture
def cluster(
    kafka_broker: SharedBroker, kafka_runtime: KafkaRuntime, tmp_path: Path
) -> Iterator[Cluster]:
    properties = dict(ENABLED)
    if IN_JAVA:
        plugin_path = tmp_path / "plugins"
        plugin_path.mkdir()
        file_connectors(kafka_runtime, plugin_path)
        properties["plugin.path"] = str(plugin_path)
    with cluster_of(3, kafka_broker.bootstrap_servers, tmp_path, properties) as cluster:
        yield cluster


def test_every_line_is_seen_once_and_in_order(
    cluster: Cluster, kafka_broker: SharedBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line is seen once and in order, although workers, tasks and hosts die or freeze."""
    seed = int(os.environ.get(SEED_VARIABLE, picked_seed()))
    chaos = Chaos(
        cluster,
        kafka_broker.bootstrap_servers,
        tmp_path,
        seed=seed,
        lines_per_s=LINES_PER_S,
        in_java=IN_JAVA,
    )
    try:
        chaos.run(SECONDS)
    finally:
        with capsys.disabled():
            sys.stdout.write(f"\n{chaos.report.summary()}\n")
    for topic, last in chaos.expected().items():
        assert chaos.seen[topic] == list(range(1, last + 1)), chaos.report.summary()
    assert chaos.report.missing_in_sinks == 0, chaos.report.summary()
    assert chaos.report.status_faults == [], chaos.report.summary()
    assert chaos.report.comparisons > 0, "no fault was over before the next one"
    assert len(chaos.report.blows) > 3, "too few blows to prove anything"
    assert chaos.report.aborted_transactions > 0, "no blow hit a transaction"
