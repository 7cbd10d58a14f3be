"""Records of killed workers, checked independently by Spark."""

from pathlib import Path

import pytest

from pyconnect_reconcile.findings import Verdict
from tests.support.audits.audits import Audit
from tests.support.audits.sequences import WAIT_S, Sequences
from tests.support.eventually import eventually
from tests.support.servers.cluster import Cluster, cluster_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

PROVENANCE = {"pyconnect.provenance.headers": "true"}
NEVER = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "3600000"}
LAST = 40


def kill_the_owner_of(cluster: Cluster, sequences: Sequences, config: dict[str, str]) -> None:
    """Kill the worker with -9 after it has written LAST numbers and committed none."""
    cluster.agents[0].create("numbers", config)
    cluster.wait_until_running({"numbers": 1})
    sequences.allow(LAST)
    sequences.wait_for(LAST, committed=False)
    cluster.kill(cluster.named(cluster.owners()["numbers-0"]))
    cluster.wait_until_running({"numbers": 1}, WAIT_S)
    eventually(lambda: sequences.seen(committed=False)["0"].count(LAST) == 2, WAIT_S)


def test_an_exactly_once_run_is_confirmed(audit: Audit, tmp_path: Path) -> None:
    """The killed worker's records are repeated, but readers of committed records see each once."""
    sequences = Sequences(audit.bootstrap, tmp_path)
    enabled = {
        "exactly.once.source.support": "enabled",
        "task.shutdown.graceful.timeout.ms": "2000",
    }
    with cluster_of(2, audit.bootstrap, tmp_path, enabled) as cluster:
        kill_the_owner_of(cluster, sequences, {**sequences.config(), **NEVER, **PROVENANCE})
        assert cluster.agents[0].call("PUT", "/connectors/numbers/pause").status == 202
        sequences.wait_for(LAST)
    topics = [sequences.topic]
    numbers = audit.run("sequence", topics=topics, sequence="text", group="key")
    assert numbers.outcome.findings == ()
    assert numbers.outcome.counts["rows"] == LAST
    found = audit.run("duplicates", topics=topics, identity="provenance")
    assert found.verdict is Verdict.AGREE
    assert len(found.of("benign-duplicate")) == LAST
    stamped = audit.run("sequence", topics=topics, sequence="provenance")
    assert stamped.outcome.findings == ()
    assert stamped.outcome.counts["rows"] == LAST


@pytest.mark.long(only=True)
def test_duplicates_of_an_at_least_once_run_are_found(audit: Audit, tmp_path: Path) -> None:
    """Without transactions each of the killed worker's records is a duplicate at known offsets."""
    sequences = Sequences(audit.bootstrap, tmp_path)
    config = {**sequences.config(), "exactly.once.support": "requested", **PROVENANCE}
    with cluster_of(
        2, audit.bootstrap, tmp_path, {"offset.flush.interval.ms": "3600000"}
    ) as cluster:
        kill_the_owner_of(cluster, sequences, config)
    topics = [sequences.topic]
    found = audit.run("duplicates", topics=topics, identity="provenance")
    assert found.verdict is Verdict.DIFFER
    assert found.places("duplicate") == {
        frozenset({(0, number), (0, LAST + number)}) for number in range(LAST)
    }
    numbers = audit.run("sequence", topics=topics, sequence="text", group="key")
    assert numbers.intervals("repeated") == {("0", n, n) for n in range(1, LAST + 1)}
    assert numbers.kinds() == {"repeated"}
