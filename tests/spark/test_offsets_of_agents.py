"""Internal topics of a real worker are read as its history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pyconnect_reconcile.findings import Verdict
from tests.support.agents.agent import Agents, append_lines, closing, source_config
from tests.support.audits.audits import Audit
from tests.support.audits.sequences import Sequences
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.cluster import cluster_of
from tests.support.servers.kafka import SharedBroker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

WAIT_S = 150
LINES = 30


@pytest.fixture
def agents(kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[Agents]:
    yield from closing(lambda: Agents(kafka_broker.bootstrap_servers, tmp_path))


def internal_topics() -> dict[str, str]:
    """Topics of the test's own, as a spec names them."""
    return {kind: unique_name(kind) for kind in ("worker", "config", "status")}


def properties_of(topics: dict[str, str]) -> dict[str, str]:
    return {
        "offset.storage.topic": topics["worker"],
        "config.storage.topic": topics["config"],
        "status.storage.topic": topics["status"],
        "offset.flush.interval.ms": "200",
    }


def test_an_operators_changes_over_rest_are_distinguished_from_faults(
    audit: Audit, agents: Agents, tmp_path: Path
) -> None:
    """Read, stopped, set back, read again, stopped, reset, deleted: notes only, each once."""
    topics = internal_topics()
    agent = agents.start(properties=properties_of(topics))
    file, name, other = tmp_path / "in.txt", unique_name("lines"), unique_name("left")
    append_lines(file, 1, LINES)
    path, source = f"/connectors/{name}", {"filename": str(file)}
    end = {"position": file.stat().st_size}

    def committed(connector: str) -> list[object]:
        offsets: list[object] = agent.get(f"/connectors/{connector}/offsets")["offsets"]
        return offsets

    def stop() -> None:
        assert agent.call("PUT", f"{path}/stop").status == 204
        agent.wait_for_states(name, "STOPPED")

    for connector in (name, other):
        agent.create(connector, source_config(file, unique_name("lines")))
        whole = [{"partition": source, "offset": end}]
        eventually(lambda connector=connector, whole=whole: committed(connector) == whole, WAIT_S)
    stop()
    back = {"partition": source, "offset": {"position": 0}}
    assert agent.call("PATCH", f"{path}/offsets", {"offsets": [back]}).status == 200
    assert agent.call("PUT", f"{path}/resume").status == 202
    eventually(lambda: committed(name) == whole, WAIT_S)
    stop()
    assert agent.call("DELETE", f"{path}/offsets").status == 200
    assert agent.call("DELETE", f"/connectors/{other}").status == 204
    # A commit has succeeded before its markers are written: readers do not see it yet.
    ranges = {"topics": list(topics.values())}
    eventually(lambda: not audit.run("ranges", **ranges).of("open-transaction"), WAIT_S)
    answer = audit.run("offsets", offsets=topics)
    told = sorted((each.kind, each.group) for each in answer.outcome.findings)
    assert told == [("altered", name), ("orphan", other), ("reset", name)]
    [reset] = answer.of("reset")
    assert "a reset over REST" in reset.message
    assert answer.verdict is Verdict.AGREE


def test_a_worker_that_died_leaves_no_fault(audit: Audit, tmp_path: Path) -> None:
    """Its task went on elsewhere from the last commit; that it was taken over is counted."""
    topics, sequences = internal_topics(), Sequences(audit.bootstrap, tmp_path)
    path = "/connectors/numbers/offsets"
    with cluster_of(2, audit.bootstrap, tmp_path, properties_of(topics)) as cluster:
        cluster.agents[0].create("numbers", sequences.config(exactly_once_support="requested"))
        cluster.wait_until_running({"numbers": 1})
        for last in (10, 20):
            sequences.allow(last)
            stored = [{"partition": {"number": "0"}, "offset": {"last": last}}]
            eventually(
                lambda stored=stored: cluster.agents[0].get(path)["offsets"] == stored, WAIT_S
            )
            if last == 10:
                cluster.kill(cluster.named(cluster.owners()["numbers-0"]))
                cluster.wait_until_running({"numbers": 1}, WAIT_S)
    answer = audit.run("offsets", offsets=topics)
    assert answer.outcome.findings == ()
    assert answer.outcome.counts["takeovers"] == 1
    assert answer.verdict is Verdict.AGREE
