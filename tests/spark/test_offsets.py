"""Faults of offsets and of their writers in Connect's internal topics, on a real broker."""

import json
from pathlib import Path

import pytest

from pyconnect_reconcile.findings import Verdict
from tests.support.agents.agent import Agents, append_lines, source_config
from tests.support.audits.audits import Audit
from tests.support.audits.seeding import Record, Seed, seed_topic
from tests.support.audits.sequences import Sequences
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.cluster import cluster_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

# Segments never end, so that the broker does not compact these old records at once.
COMPACT = {"cleanup.policy": "compact", "segment.ms": str(100 * 365 * 86_400_000)}
START_MS = 1_760_000_400_000


def offset(connector: str, file: str, position: int | None, *, at_s: int = 0) -> Record:
    key = json.dumps([connector, {"filename": file}]).encode()
    value = None if position is None else json.dumps({"position": position}).encode()
    return Record(value, key=key, timestamp_ms=START_MS + at_s * 1000)


def status(name: str, state: str, worker: str, generation: int, *, at_s: int = 0) -> Record:
    content = {
        "state": state, "trace": None, "worker_id": worker, "generation": generation,
    }  # fmt: skip
    return Record(
        json.dumps(content).encode(),
        key=f"status-{name}".encode(),
        timestamp_ms=START_MS + at_s * 1000,
    )


def configured(connector: str, *tasks: dict[str, str]) -> list[Record]:
    contents: list[tuple[str, object]] = [
        (f"connector-{connector}", {"properties": {"name": connector}}),
        *((f"task-{connector}-{n}", {"properties": task}) for n, task in enumerate(tasks)),
        (f"commit-{connector}", {"tasks": len(tasks)}),
    ]
    return [
        Record(json.dumps(value).encode(), key=key.encode(), timestamp_ms=START_MS)
        for key, value in contents
    ]


@pytest.fixture
def worker(audit: Audit) -> Seed:
    return seed_topic(audit.bootstrap, partitions=2, config=COMPACT)


@pytest.fixture
def config(audit: Audit) -> Seed:
    return seed_topic(audit.bootstrap, config=COMPACT)


@pytest.fixture
def statuses(audit: Audit) -> Seed:
    return seed_topic(audit.bootstrap, partitions=2, config=COMPACT)


def test_histories_of_source_offsets_are_judged(audit: Audit, worker: Seed, config: Seed) -> None:
    """A regression, a reset, an orphan and a copy that is ahead are found at their records."""
    own = seed_topic(audit.bootstrap, config=COMPACT)
    config.write([*configured("fine"), *configured("left"), Record(None, key=b"connector-left")])
    worker.write([offset("fine", "a", 10), offset("fine", "a", 20), offset("fine", "b", 5)])
    places = worker.write([offset("back", "a", 90), offset("back", "a", 40)])
    [forgotten, _] = worker.write([offset("fine", "b", None), offset("fine", "b", 1)])
    left = worker.write([offset("gone", "x", 7), offset("left", "x", 7), offset("own", "a", 31)])
    [kept] = own.write([offset("own", "a", 30)])
    answer = audit.run(
        "offsets",
        offsets={
            "worker": worker.topic,
            "connectors": {"own": own.topic},
            "config": config.topic,
            "known": ["back", "own"],
        },
    )
    assert answer.places("regression") == {frozenset(places)}
    assert answer.places("reset") == {frozenset({forgotten})}
    assert answer.places("orphan") == {frozenset({left[0]}), frozenset({left[1]})}
    assert answer.places("topics-disagree") == {frozenset({kept, left[2]})}
    assert answer.kinds() == {"regression", "topics-disagree"}
    assert len(answer.outcome.findings) == 5


def test_two_tasks_at_one_source_partition_are_found_and_named(
    audit: Audit, worker: Seed, config: Seed, statuses: Seed
) -> None:
    """Alternating offsets are one finding with the tasks that share the file and their holders."""
    config.write(configured("twice", {"files": "a,b"}, {"files": "b,c"}))
    statuses.write([status("task-twice-0", "RUNNING", "one:8083", 3)])
    statuses.write([status("task-twice-1", "RUNNING", "two:8083", 3)])
    worker.write([offset("twice", "a", 1, at_s=1), offset("twice", "a", 2, at_s=2)])
    positions = [100, 200, 110, 300, 120, 400]
    places = worker.write([offset("twice", "b", position, at_s=3) for position in positions])
    answer = audit.run(
        "offsets",
        offsets={"worker": worker.topic, "config": config.topic, "status": statuses.topic},
    )
    [found] = answer.of("two-writers")
    assert (found.count, found.group) == (2, "twice")
    assert [(copy.partition, copy.offset) for copy in found.copies] == places[1:5]
    assert "configurations of tasks 0, 1 name the same source (in files)" in found.message
    assert "task 0 by one:8083, task 1 by two:8083" in found.message
    [note] = answer.of("overlapping-tasks")
    assert '{"filename":"b"}' in note.message
    assert len(answer.outcome.findings) == 2
    assert answer.verdict is Verdict.DIFFER


def test_a_worker_that_missed_a_rebalance_is_found_by_its_reports(
    audit: Audit, worker: Seed, config: Seed, statuses: Seed
) -> None:
    """A report in an older generation proves a double run, and the regression names that worker."""
    config.write(configured("c", {"file": "a"}))
    reports = statuses.write(
        [
            status("task-c-0", "RUNNING", "lost:8083", 4, at_s=1),
            status("task-c-0", "RUNNING", "next:8083", 5, at_s=10),
            status("task-c-0", "PAUSED", "lost:8083", 4, at_s=30),
        ]
    )
    statuses.write([status("connector-c", "RUNNING", "next:8083", 5), Record(b"?", key=b"other")])
    commits = worker.write([offset("c", "a", 500, at_s=12), offset("c", "a", 90, at_s=13)])
    answer = audit.run(
        "offsets",
        offsets={"worker": worker.topic, "config": config.topic, "status": statuses.topic},
    )
    assert answer.places("double-run") == {frozenset(reports[1:])}
    assert answer.places("regression") == {frozenset(commits)}
    [regression] = answer.of("regression")
    assert "taken over by next:8083" in regression.message
    assert "lost:8083 had not reported its end" in regression.message
    assert len(answer.outcome.findings) == 2
    assert answer.outcome.counts["takeovers"] == 2


def test_offsets_set_while_a_connector_was_stopped_are_not_a_loss(
    audit: Audit, worker: Seed, config: Seed, statuses: Seed
) -> None:
    """An offset that is set back while the connector is stopped is a note, not a regression."""
    config.write(configured("c", {"file": "a"}))
    reports = [
        status("connector-c", "RUNNING", "w:8083", 1, at_s=0),
        status("task-c-0", "RUNNING", "w:8083", 1, at_s=1),
        status("connector-c", "STOPPED", "w:8083", 1, at_s=20),
        status("task-c-0", "UNASSIGNED", "w:8083", 1, at_s=21),
        status("connector-c", "RUNNING", "w:8083", 1, at_s=40),
        status("task-c-0", "RUNNING", "w:8083", 1, at_s=41),
    ]
    statuses.write(reports)
    times = {10: 500, 21: 600, 30: 90, 50: 95}
    places = worker.write([offset("c", "a", at, at_s=time) for time, at in times.items()])
    answer = audit.run(
        "offsets",
        offsets={"worker": worker.topic, "config": config.topic, "status": statuses.topic},
    )
    assert answer.places("altered") == {frozenset({places[2]})}
    assert len(answer.outcome.findings) == 1
    assert answer.verdict is Verdict.AGREE


def test_an_offset_in_two_partitions_is_found(audit: Audit, worker: Seed) -> None:
    """An offset in two partitions is an error, because compaction never removes the stray copy."""
    [kept] = worker.write([offset("c", "a", 5)])
    record = offset("c", "a", 3)
    [stray] = worker.write([Record(record.value, key=record.key, partition=1)])
    answer = audit.run("offsets", offsets={"worker": worker.topic, "known": ["c"]})
    assert answer.places("split-offset") == {frozenset({kept, stray})}
    assert len(answer.outcome.findings) == 1


def test_an_empty_offsets_topic_proves_nothing(audit: Audit, worker: Seed) -> None:
    """An empty offsets topic is unknown, because workers probably use another one."""
    answer = audit.run("offsets", offsets={"worker": worker.topic})
    assert answer.verdict is Verdict.UNKNOWN


WAIT_S = 150
LINES = 30


def internal_topics() -> dict[str, str]:
    """Return names of the test's own topics, as a spec names them."""
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
    """Offsets that an operator changes over REST are notes, one for each change."""
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
    # A commit succeeds before its markers are written, so readers may not see it yet.
    ranges = {"topics": list(topics.values())}
    eventually(lambda: not audit.run("ranges", **ranges).of("open-transaction"), WAIT_S)
    answer = audit.run("offsets", offsets=topics)
    told = sorted((each.kind, each.group) for each in answer.outcome.findings)
    assert told == [("altered", name), ("orphan", other), ("reset", name)]
    [reset] = answer.of("reset")
    assert "a reset over REST" in reset.message
    assert answer.verdict is Verdict.AGREE


def test_a_worker_that_died_leaves_no_fault(audit: Audit, tmp_path: Path) -> None:
    """A task that continues elsewhere from the last commit counts as a takeover, not a fault."""
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
