"""Three agents under random kills and freezes: readers see every line once and in order."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.chaos import ENABLED, Chaos
from tests.support.cluster import Cluster, cluster_of
from tests.support.kafka import SharedBroker
from tests.support.seeds import LONG, picked_seed

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(600)]

SECONDS = 120 if LONG else 30
LINES_PER_S = 100 if LONG else 30
SEED_VARIABLE = "PYCONNECT_CHAOS_SEED"
"""Repeats a schedule; the machine decides what the schedule meets."""


@pytest.fixture
def cluster(kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[Cluster]:
    with cluster_of(3, kafka_broker.bootstrap_servers, tmp_path, ENABLED) as cluster:
        yield cluster


def test_every_line_is_seen_once_and_in_order(
    cluster: Cluster,
    kafka_broker: SharedBroker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Supervisors, tasks and whole hosts die and freeze past their session while lines come."""
    seed = int(os.environ.get(SEED_VARIABLE, picked_seed()))
    chaos = Chaos(
        cluster,
        kafka_broker.bootstrap_servers,
        tmp_path,
        seed=seed,
        lines_per_s=LINES_PER_S,
    )
    try:
        chaos.run(SECONDS)
    finally:
        with capsys.disabled():
            sys.stdout.write(f"\n{chaos.report.summary()}\n")
    for topic, last in chaos.expected().items():
        assert chaos.seen[topic] == list(range(1, last + 1)), chaos.report.summary()
    assert len(chaos.report.blows) > 3, "too few blows to prove anything"
    assert chaos.report.aborted_transactions > 0, "no blow hit a transaction"
