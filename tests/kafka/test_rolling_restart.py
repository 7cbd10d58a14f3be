"""A rolling restart of three agents with three hundred connectors, as a package update does it."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pyconnect_agent.core.internal_topics import config_records
from tests.support.agents.rest_client import call_url, is_momentary
from tests.support.chaos.witness import Journal
from tests.support.eventually import eventually
from tests.support.servers.cluster import Cluster, cluster_of, status_faults, statuses_in, worker_of
from tests.support.servers.kafka import SharedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(3600)]

CONNECTORS = 300
WITH_TASKS = 30
WAIT_S = 900
ROLLED = {"scheduled.rebalance.max.delay.ms": "60000", "session.timeout.ms": "30000"}


@contextmanager
def asked_meanwhile(urls: list[str]) -> Iterator[Counter[str]]:
    """Ask workers for statuses all the time; count the answers that are good, and the others."""
    answers: Counter[str] = Counter()
    ended = threading.Event()

    def ask(url: str) -> None:
        while not ended.wait(0.5):
            for path in ("/connectors?expand=status", "/connectors/connector-0/config"):
                try:
                    answer = call_url(url, "GET", path)
                    # A worker that stops says so, as Apache's does.
                    told = is_momentary(answer) or "Worker is shutting down" in answer.text
                    good = answer.status == 200 or told
                    answers["good" if good else f"{path}: {answer.text}"] += 1
                except OSError:
                    # It is the one that restarts.
                    continue

    threads = [threading.Thread(target=ask, args=(url,)) for url in urls]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@pytest.mark.long(only=True)
def test_a_rolling_restart_with_many_connectors_starts_nothing_twice(
    kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """Statuses are true at the end, all runs, and no answer is a server's error."""
    journal = Journal(tmp_path / "journal")
    with cluster_of(3, kafka_broker.bootstrap_servers, tmp_path, ROLLED) as cluster:
        names = [f"connector-{number}" for number in range(CONNECTORS)]
        tasks = {name: int(number < WITH_TASKS) for number, name in enumerate(names)}
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
        for name in names:
            config = {"name": name, **journal.config(1), "tasks": str(tasks[name])}
            record = config_records.connector_config(name, config)
            producer.produce(f"{cluster.group_id}-configs", record.value, record.key)
        assert producer.flush(60) == 0
        eventually(lambda: all_run(cluster, tasks), WAIT_S, lambda: states(cluster))
        starts = journal.starts()
        with asked_meanwhile([agent.url for agent in cluster.agents]) as answers:
            for agent in cluster.agents:
                agent.process.stop()
                agent.process.start()
                eventually(lambda: all_run(cluster, tasks), WAIT_S, lambda: states(cluster))
        assert answers.keys() == {"good"}, answers
        assert journal.entries("overlap") == []
        # Each task moved with its worker and may have been given back; none is started for nothing.
        assert len(journal.started_since(starts)) <= 3 * WITH_TASKS
        written = statuses_in(kafka_broker.bootstrap_servers, f"{cluster.group_id}-status")
        assert status_faults(cluster.agents, written) == []


def states(cluster: Cluster) -> Counter[str]:
    listed = cluster.agents[0].get("/connectors?expand=status")
    return Counter(
        part["state"]
        for found in listed.values()
        if "status" in found
        for part in (found["status"]["connector"], *found["status"]["tasks"])
    )


def all_run(cluster: Cluster, tasks: dict[str, int]) -> bool:
    """Whether everything runs, on workers that are there, as each of them says."""
    workers = {worker_of(agent) for agent in cluster.agents}
    for agent in cluster.agents:
        answer = agent.call("GET", "/connectors?expand=status")
        if answer.status != 200:
            return False
        listed = answer.json()
        if listed.keys() != tasks.keys():
            return False
        for name, found in listed.items():
            status = found.get("status")
            parts = [] if status is None else [status["connector"], *status["tasks"]]
            if len(parts) != tasks[name] + 1:
                return False
            if any(p["state"] != "RUNNING" or p["worker_id"] not in workers for p in parts):
                return False
    return True
