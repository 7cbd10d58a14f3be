"""`pyconnect upgrade` on real agents: with a running source, with ACLs, and by the runbook.

On brokers with ACLs it is refused until all grants are there. The runbook's commands run in its
order.
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer

from pyconnect_cli.acls.plan.grants import Grant
from pyconnect_cli.kafka.admin import KafkaAccess, connected
from pyconnect_cli.upgrade.gather import aborted_offsets
from pyconnect_cli.upgrade.perform import cluster_lock
from pyconnect_cli.upgrade.plan.run import Entry, Finished, StepChanged, StepStarted, StepVerified
from pyconnect_clients.acls.needs import ClusterFacts, ConnectorFacts, WorkerFacts
from tests.support.agents.agent import Agent, Agents
from tests.support.agents.upgrade_cluster import ALLOWED, SETTLE, Tool, phases, upgradable_cluster
from tests.support.audits.sequences import Sequences
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.cluster import QUICK_GROUP, Cluster, cluster_of
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.secured import SecuredBroker, internal, needed_grants, overrides
from tests.support.servers.topics import open_records

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def cluster(
    kafka_broker: SharedBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Three agents with exactly-once disabled, to which each test returns them."""
    directory = tmp_path_factory.mktemp("agents")
    with upgradable_cluster(3, kafka_broker.bootstrap_servers, directory) as cluster:
        yield cluster


@pytest.fixture
def tool(kafka_broker: SharedBroker, cluster: Cluster, tmp_path: Path) -> Tool:
    return Tool(kafka_broker.bootstrap_servers, cluster.agents[0].url, tmp_path)


@pytest.fixture
def sequences(kafka_broker: SharedBroker, cluster: Cluster, tmp_path: Path) -> Iterator[Sequences]:
    """A source of two tasks that runs during the whole test."""
    found = Sequences(kafka_broker.bootstrap_servers, tmp_path)
    config = {**found.config(2), "exactly.once.support": "requested"}
    # Offsets outlive a connector, so each test has a connector name of its own.
    cluster.agents[0].create(found.topic, config)
    cluster.wait_until_running({found.topic: 2}, 60)
    yield found
    cluster.delete_all()


def check_complete(sequences: Sequences, last: int, *, once_after: int | None = None) -> None:
    """Check that no line is missing and that lines after `once_after` are there once."""
    sequences.wait_for(last, 2)
    for key, values in sequences.seen().items():
        counted = Counter(values)
        assert set(counted) == set(range(1, last + 1)), key
        if once_after is not None:
            again = [value for value in counted if value > once_after and counted[value] > 1]
            assert again == [], key


def goes_on_after_a_kill(cluster: Cluster, tool: Tool, target: str, *options: str) -> None:
    """Check that the same command resumes the run and does not repeat the worker that is done."""
    before = len(tool.journal())
    told = tool.must_upgrade(target, *options)
    assert "continues" in told
    assert phases(cluster) == [target] * 3
    run = tool.journal()[tool.started_at(before) :]
    verified = [entry.url for entry in run if isinstance(entry, StepVerified)]
    assert sorted(verified) == sorted(agent.url for agent in cluster.agents)
    assert isinstance(run[-1], Finished)


def second(kind: type[Entry]) -> Callable[[list[Entry]], bool]:
    """Return a function that says whether the newest run has two entries of a kind."""

    def reached(run: list[Entry]) -> bool:
        return sum(isinstance(entry, kind) for entry in run) >= 2

    return reached


def test_up_and_down_with_a_source_running_and_kills_on_the_way(
    cluster: Cluster, tool: Tool, sequences: Sequences
) -> None:
    """No record is missing, none is doubled once all workers are enabled, and no task fails.

    Each rolling restart is killed at another point of the second worker's turn.
    """
    sequences.allow(20)
    tool.upgrade_until(second(StepStarted), "preparing")
    (halfway,) = json.loads(tool.run("upgrade", "status", "-o", "json").stdout)
    assert (halfway["target"], halfway["verified"] != []) == ("preparing", True)
    goes_on_after_a_kill(cluster, tool, "preparing")
    sequences.allow(40)
    tool.upgrade_until(second(StepChanged), "enabled")
    goes_on_after_a_kill(cluster, tool, "enabled")
    cluster.wait_until_running({sequences.topic: 2}, 60)
    check_complete(sequences, 40)
    sequences.allow(60)
    check_complete(sequences, 60, once_after=40)
    tool.upgrade_until(second(StepVerified), "disabled", "--direct")
    goes_on_after_a_kill(cluster, tool, "disabled", "--direct")
    cluster.wait_until_running({sequences.topic: 2}, 60)
    sequences.allow(80)
    check_complete(sequences, 80)
    leaders_last = [entry for entry in tool.journal() if isinstance(entry, StepVerified)]
    assert len(leaders_last) == 9


# The worker has changed its phase and is about to restart, or has restarted; the journal does not
# have the entry yet, or has it already.
POINTS = (
    "StepChanged before 2",
    "StepStarted after 1",
    "Started after 1",
    "StepStarted before 2",
    "StepChanged after 1",
    "StepVerified before 1",
    "StepVerified after 3",
    "LegFinished before 1",
    "LegFinished after 1",
    "Finished before 1",
)


@pytest.mark.long(only=True)
@pytest.mark.parametrize("point", POINTS)
def test_a_run_killed_at_a_point_of_its_journal_is_continued(
    cluster: Cluster, tool: Tool, sequences: Sequences, point: str
) -> None:
    """A second run after a kill brings every worker to the target without a lost record."""
    tool.upgrade_killed_at(point, "preparing")
    sequences.allow(10)
    assert "continues" in tool.must_upgrade("preparing")
    assert phases(cluster) == ["preparing"] * 3
    assert isinstance(tool.journal()[-1], Finished)
    cluster.wait_until_running({sequences.topic: 2}, 60)
    check_complete(sequences, 10)
    tool.must_upgrade("disabled")


@pytest.mark.long(only=True)
def test_a_full_stop_skips_preparing(
    cluster: Cluster, tool: Tool, sequences: Sequences, kafka_broker: SharedBroker
) -> None:
    """`preparing` can be skipped only when all workers are drained first."""
    refused = tool.upgrade("enabled")
    assert refused.returncode == 9
    assert "preparing would be skipped" in refused.stderr
    brokers = KafkaAccess(bootstrap=kafka_broker.bootstrap_servers)
    with (
        connected(brokers, lambda: 10.0) as protocol,
        cluster_lock(brokers, protocol, cluster.group_id) as lock,
    ):
        second = tool.upgrade("enabled", "--full-stop")
        # The lock is checked first: its loss would explain every other result.
        assert lock.held()
        assert second.returncode == 6
    tool.must_upgrade("enabled", "--full-stop")
    assert phases(cluster) == ["enabled"] * 3
    cluster.wait_until_running({sequences.topic: 2}, 60)
    sequences.allow(20)
    check_complete(sequences, 20, once_after=0)
    assert "already" in tool.must_upgrade("enabled")


@pytest.mark.long(only=True)
def test_an_agent_that_may_not_change_itself_is_left_to_its_operator(
    kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """An agent that may not change itself makes the command exit with 75 and the manual step.

    Any worker of an inventory reaches the cluster.
    """
    with cluster_of(1, kafka_broker.bootstrap_servers, tmp_path) as cluster:
        (agent,) = cluster.agents
        tool = Tool(kafka_broker.bootstrap_servers, agent.url, tmp_path)
        told = tool.upgrade("preparing")
        assert told.returncode == 75
        assert "set exactly.once.source.support=preparing" in told.stderr
        assert tool.upgrade("preparing").returncode == 75
        agent.process.stop()
        agent.process.config = replace(
            agent.process.config,
            properties={
                **agent.process.config.properties,
                "exactly.once.source.support": "preparing",
            },
        )
        agent.process.start()
        assert "continues" in tool.must_upgrade("preparing")
        assert phases(cluster) == ["preparing"]
        inventory = tmp_path / "inventory.toml"
        inventory.write_text(f'[[workers]]\nurl = "{agent.url}"\n')
        dead = "http://127.0.0.1:9"
        elsewhere = Tool(kafka_broker.bootstrap_servers, dead, tmp_path / "elsewhere")
        assert "already" in elsewhere.must_upgrade("preparing", "--inventory", str(inventory))


def test_offsets_of_aborted_transactions_are_found(kafka_broker: SharedBroker) -> None:
    """Keys whose newest record was aborted are found, unless they were committed again."""
    topic = unique_name("offsets")
    settings = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    producer = Producer({**settings, "transactional.id": unique_name("t")})
    producer.init_transactions(30)
    for commits, keys in ((True, "abc"), (False, "bc"), (True, "c")):
        producer.begin_transaction()
        for key in keys:
            producer.produce(topic, b"1", key)
        if commits:
            producer.commit_transaction(30)
        else:
            producer.flush(30)
            producer.abort_transaction(30)
    eventually(lambda: open_records(kafka_broker.bootstrap_servers, topic) == 0)
    assert aborted_offsets(settings, topic) == ("partition 0, key b",)


WAIT_S = 150


def refusal(tool: Tool, phase: str) -> str:
    done = tool.upgrade(phase)
    assert done.returncode == 9, done.stderr
    return done.stderr


@pytest.mark.long(only=True)
def test_an_upgrade_waits_for_its_grants(secured: SecuredBroker, tmp_path: Path) -> None:
    """The leader's id needs a grant before `preparing`, a task's before `enabled`."""
    group, source = unique_name("granted"), unique_name("source")
    sequences = Sequences(secured.plaintext, tmp_path)
    config = {
        **sequences.config(1),
        **overrides(secured.client_users()),
        "exactly.once.support": "requested",
    }
    properties = {**internal(group), **secured.worker(secured.user())}
    worker = WorkerFacts(name="w", properties=properties, is_agent=True)
    topics = {name for key, name in properties.items() if key.endswith(".storage.topic")}
    secured.create_topics(sequences.topic, *topics)
    there = {"": frozenset({sequences.topic, *topics})}
    workers = ClusterFacts(workers=(worker,), existing_topics=there)
    connector = ConnectorFacts(name=source, type="source", config=config)
    facts = ClusterFacts(workers=(worker,), connectors=(connector,), existing_topics=there)
    leaders, tasks = (needed_grants(facts, rules={rule}) for rule in ("W7", "X1"))
    secured.grant(needed_grants(workers) - leaders)
    secured.grant(needed_grants(facts) - needed_grants(workers) - tasks)
    agents = Agents(secured.sasl, tmp_path)
    try:
        agent = agents.start(group_id=group, properties={**QUICK_GROUP, **ALLOWED, **properties})
        agent.create(source, config)
        tool = Tool(secured.plaintext, agent.url, tmp_path)
        check_is_refused(tool, "preparing", leaders, agent, "disabled")
        secured.grant(leaders)
        eventually(lambda: "missing ACL" not in plan(tool, "preparing"), WAIT_S)
        tool.must_upgrade("preparing")
        check_is_refused(tool, "enabled", tasks, agent, "preparing")
        secured.grant(tasks)
        eventually(lambda: "missing ACL" not in plan(tool, "enabled"), WAIT_S)
        tool.must_upgrade("enabled")
        sequences.allow(10)
        sequences.check(10, 1)
        agent.call("DELETE", f"/connectors/{source}")
    finally:
        agents.close()


def check_is_refused(tool: Tool, phase: str, lacks: set[Grant], agent: Agent, before: str) -> None:
    told = refusal(tool, phase)
    (lack,) = lacks
    assert f"missing ACL: {lack.operation.value}" in told
    assert f"{lack.resource.name} for {lack.principal}" in told
    assert told.count("missing ACL") == 1, told
    assert agent.get("/agent")["exactly_once_source_support"] == before


def plan(tool: Tool, phase: str) -> str:
    return tool.run("upgrade", "plan", "--phase", phase).stderr


RUNBOOK = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "upgrade-to-exactly-once.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PHASED = (["plan", "--phase"], ["run", "--phase"])
LINE = re.compile(r"\$ pyconnect (?P<arguments>[^#]*)(?:# exit (?P<code>\d+).*)?")


class Step(NamedTuple):
    """A command of the runbook, with its documented exit code."""

    arguments: list[str]
    code: int


def steps() -> list[Step]:
    found = []
    for block in BLOCK.findall(RUNBOOK.read_text("utf-8")):
        for line in block.splitlines():
            match = LINE.fullmatch(line)
            assert match is not None, line
            found.append(Step(shlex.split(match["arguments"]), int(match["code"] or 0)))
    return found


@pytest.mark.long(only=True)
def test_the_runbook_does_what_it_says(kafka_broker: SharedBroker, tmp_path: Path) -> None:
    """The commands of the runbook go from disabled to enabled and back."""
    assert sum(step.arguments[1:3] in PHASED for step in steps()) >= 6
    reached = []
    with upgradable_cluster(1, kafka_broker.bootstrap_servers, tmp_path) as cluster:
        tool = Tool(kafka_broker.bootstrap_servers, cluster.agents[0].url, tmp_path)
        for arguments, code in steps():
            quick = ["--settle", SETTLE] if arguments[:2] == ["upgrade", "run"] else []
            done = tool.run(*arguments, *quick)
            assert done.returncode == code, f"{arguments}: {done.stdout}{done.stderr}"
            reached += phases(cluster)
    assert list(dict.fromkeys(reached)) == ["disabled", "preparing", "enabled"]
    assert reached[-1] == "disabled"
