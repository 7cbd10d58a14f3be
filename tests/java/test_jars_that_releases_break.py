"""Third-party connectors that Java workers of a release cannot run, all on one agent.

`plugins check` finds in the jars what the workers' errors name.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pyconnect_agent.core.plugin_catalog import RELEASE_4_4, RELEASE_KEY
from pyconnect_clients.plugin_findings import check_locations
from pyconnect_sandbox.jars import KAFKA_VERSION, find_runtime
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.agents.agent import STRING_CONVERTER, Agent, Agents
from tests.support.agents.agent import closing as closing_agents
from tests.support.agents.rest_client import WorkerRest
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.maven_plugins import (
    DEBEZIUM,
    IGNITE,
    MIRROR,
    MIRUS,
    MYSQL,
    NEW_ICEBERG_SINK,
    RABBITMQ,
    file_connectors,
    location_of,
)
from tests.support.servers import mariadb
from tests.support.servers.kafka import Servers, SharedBroker
from tests.support.servers.postgres import PASSWORD, USER, PostgresServer, running_postgres
from tests.support.servers.topics import create_topics

pytestmark = [pytest.mark.java, pytest.mark.long(only=True), pytest.mark.timeout(850)]

WAIT_S = 150
BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
UTILS = "org.apache.kafka.common.utils"
PLUGINS = (DEBEZIUM, IGNITE, MIRROR, MIRUS, MYSQL, NEW_ICEBERG_SINK, RABBITMQ)
FILE = "file"


@dataclass(frozen=True, slots=True)
class Case:
    """A connector that a Java worker of `release` cannot run, with `error` as its error.

    `needed` is the finding of `plugins check`. `runs`: some known release of Kafka can run it, so
    that an agent does.
    """

    location: str
    release: str
    needed: str
    error: str
    config: Mapping[str, str] = field(default_factory=dict)
    refused: bool = False
    """A validation fails; else the connector or a task fails."""
    runs: bool = True
    later: bool = False
    """The first start succeeds and the next one fails."""

    def full(self, name: str, world: World) -> dict[str, str]:
        settings = {**world.settings, "slot": name.replace("-", "_")}
        texts = {key: value.format(**settings) for key, value in self.config.items()}
        return {
            "name": name,
            "tasks.max": "1",
            "key.converter": STRING_CONVERTER,
            "value.converter": STRING_CONVERTER,
            **texts,
        }


@dataclass(frozen=True, slots=True)
class World:
    """Workers by release, an agent, locations by name, and settings for the cases' configs."""

    settings: Mapping[str, str]
    locations: Mapping[str, Path]
    workers: Mapping[str, WorkerRest[Any]]
    agent: Agent


CASES = (
    Case(
        FILE,
        RELEASE_4_4,
        f"{UTILS}.AppInfoParser",
        "NoClassDefFoundError: org/apache/kafka/common/utils/AppInfoParser",
        {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "topics": "{topic}",
            "file": "{file}",
        },
        refused=True,
    ),
    Case(
        MIRROR.name,
        RELEASE_4_4,
        f"{UTILS}.AppInfoParser",
        "NoClassDefFoundError: org/apache/kafka/common/utils/AppInfoParser",
        {
            "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
            "source.cluster.alias": "a",
            "target.cluster.alias": "b",
            "source.cluster.bootstrap.servers": "{broker}",
            "target.cluster.bootstrap.servers": "{broker}",
            "heartbeats.topic.replication.factor": "1",
        },
        refused=True,
    ),
    Case(
        IGNITE.name,
        RELEASE_4_4,
        f"{UTILS}.AppInfoParser",
        "NoClassDefFoundError: org/apache/kafka/common/utils/AppInfoParser",
        {
            "connector.class": "org.apache.ignite.stream.kafka.connect.IgniteSinkConnector",
            "topics": "{topic}",
            "cacheName": "c",
            "igniteCfg": "nowhere.xml",
        },
        refused=True,
    ),
    Case(
        NEW_ICEBERG_SINK.name,
        RELEASE_4_4,
        f"{UTILS}.AppInfoParser",
        "NoClassDefFoundError: org/apache/kafka/common/utils/AppInfoParser",
        {
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "topics": "{topic}",
            "iceberg.tables": "db.t",
            "iceberg.control.topic": "{control}",
            "iceberg.kafka.bootstrap.servers": "{broker}",
            "iceberg.catalog.catalog-impl": "org.apache.iceberg.inmemory.InMemoryCatalog",
        },
    ),
    Case(
        DEBEZIUM.name,
        RELEASE_4_4,
        f"{UTILS}.Sanitizer",
        "NoClassDefFoundError: org/apache/kafka/common/utils/Sanitizer",
        {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "database.hostname": "127.0.0.1",
            "database.port": "{port}",
            "database.user": USER,
            "database.password": PASSWORD,
            "database.dbname": "{database}",
            "topic.prefix": "{database}",
            "slot.name": "{slot}",
            "publication.name": "{slot}",
        },
    ),
    Case(
        MYSQL.name,
        KAFKA_VERSION,
        "org.apache.kafka.clients.consumer.KafkaConsumer.poll()",
        "org.apache.kafka.clients.consumer.KafkaConsumer.poll(long)'",
        {
            "connector.class": "io.debezium.connector.mysql.MySqlConnector",
            "database.hostname": "127.0.0.1",
            "database.port": "{maria_port}",
            "database.user": mariadb.USER,
            "database.password": mariadb.PASSWORD,
            "database.server.id": "77",
            "database.include.list": "{maria_database}",
            "topic.prefix": "{slot}",
            "schema.history.internal.kafka.bootstrap.servers": "{broker}",
            "schema.history.internal.kafka.topic": "{slot}.history",
        },
        later=True,
    ),
    Case(
        MIRUS.name,
        KAFKA_VERSION,
        "org.apache.kafka.common.metrics.JmxReporter.<init>()",
        "NoSuchMethodError: 'void org.apache.kafka.common.metrics.JmxReporter.<init>(",
        {
            "connector.class": "com.salesforce.mirus.MirusSourceConnector",
            "topics.whitelist": "{topic}",
            "consumer.bootstrap.servers": "{broker}",
            "consumer.client.id": "mirus",
            "consumer.key.deserializer": BYTES,
            "consumer.value.deserializer": BYTES,
            "destination.bootstrap.servers": "{broker}",
            "destination.consumer.bootstrap.servers": "{broker}",
            "enable.destination.topic.checking": "false",
        },
        runs=False,
    ),
    Case(
        RABBITMQ.name,
        KAFKA_VERSION,
        f"{UTILS}.SystemTime",
        f"IllegalAccessError: failed to access class {UTILS}.SystemTime",
        {
            "connector.class": (
                "com.github.jcustenborder.kafka.connect.rabbitmq.RabbitMQSourceConnector"
            ),
            "kafka.topic": "{topic}",
            "rabbitmq.queue": "q",
        },
        runs=False,
    ),
)
IDS = [case.location for case in CASES]


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def maria() -> Iterator[mariadb.MariaDbServer]:
    """A MariaDB server with the binary log that Debezium reads."""
    with mariadb.running_mariadb(
        {"log-bin": "log", "binlog-format": "ROW", "server-id": "1"}
    ) as made:
        yield made


@pytest.fixture(scope="module")
def world(
    kafka_broker: SharedBroker,
    kafka_runtime: KafkaRuntime,
    postgres: PostgresServer,
    maria: mariadb.MariaDbServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    """Two Java workers and an agent whose default release is 4.4, with the same plugins."""
    directory = tmp_path_factory.mktemp("world")
    path = directory / "plugins"
    for plugin in PLUGINS:
        shutil.copytree(location_of(plugin), path / plugin.name)
    (path / FILE).mkdir()
    file_connectors(kafka_runtime, path / FILE)
    properties = {
        "plugin.path": str(path),
        "plugin.discovery": "hybrid_warn",
        "offset.flush.interval.ms": "1000",
    }
    bootstrap = kafka_broker.bootstrap_servers
    settings = {
        "broker": bootstrap,
        "file": str(directory / "out"),
        "topic": unique_name("topic"),
        "control": unique_name("control"),
        "port": str(postgres.port),
        "database": postgres.new_database(),
        "maria_port": str(maria.port),
        "maria_database": maria.new_database(),
    }
    maria.execute(settings["maria_database"], "CREATE TABLE numbers (id int PRIMARY KEY)")
    maria.execute(settings["maria_database"], "INSERT INTO numbers VALUES (1)")
    create_topics(bootstrap, [settings["topic"], settings["control"]])
    runtimes = {KAFKA_VERSION: kafka_runtime, RELEASE_4_4: find_runtime(version=RELEASE_4_4)}
    servers = {}
    for release, runtime in runtimes.items():
        (directory / release).mkdir()
        servers[release] = Servers(runtime, directory / release)
    agents = closing_agents(lambda: Agents(bootstrap, directory))
    with closing(servers[KAFKA_VERSION]), closing(servers[RELEASE_4_4]):
        workers = {}
        for release, each in servers.items():
            java = each.java_worker(bootstrap, unique_name("java"), properties=properties)
            workers[release] = WorkerRest(java)
        for made in agents:
            agent = made.start(properties={**properties, RELEASE_KEY: RELEASE_4_4})
            yield World(settings, {each.name: each for each in path.iterdir()}, workers, agent)


def validated(worker: WorkerRest[Any], config: Mapping[str, str]) -> tuple[int, str]:
    """Return the status of a validation, and its number of errors or the text of the answer."""
    path = f"/connector-plugins/{config['connector.class']}/config/validate"
    answer = worker.call("PUT", path, dict(config))
    if answer.status != 200:
        return answer.status, answer.text
    return answer.status, str(answer.json()["error_count"])


def traces(worker: WorkerRest[Any], name: str) -> str:
    """Return the traces of the connector and its tasks; empty while none has failed."""
    status = worker.call("GET", f"/connectors/{name}/status").json()
    parts = [status.get("connector", {}), *status.get("tasks", ())]
    return "".join(part.get("trace") or "" for part in parts)


def start_again(worker: WorkerRest[Any], name: str) -> None:
    """Stop a connector after its first commit, and resume it."""
    worker.wait_for_states(name, "RUNNING", "RUNNING")
    eventually(lambda: worker.get(f"/connectors/{name}/offsets")["offsets"], WAIT_S)
    worker.do("PUT", f"/connectors/{name}/stop")
    worker.wait_for_states(name, "STOPPED")
    worker.do("PUT", f"/connectors/{name}/resume")


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_java_worker_fails_by_what_the_check_names(case: Case, world: World) -> None:
    """`plugins check` predicts the worker's failure from the jar."""
    worker, name = world.workers[case.release], unique_name("broken")
    config = case.full(name, world)
    assert config["connector.class"] in {each["class"] for each in worker.get("/connector-plugins")}
    if case.refused:
        status, text = validated(worker, config)
        assert status == 500
    else:
        assert validated(worker, config) == (200, "0")
        worker.create(name, config)
        if case.later:
            start_again(worker, name)
        text = eventually(
            partial(traces, worker, name), WAIT_S, lambda: worker.get(f"/connectors/{name}/status")
        )
        worker.do("DELETE", f"/connectors/{name}")
    assert case.error in text
    found = check_locations([world.locations[case.location]], case.release)
    failures = [each.detail for each in found if each.status == "failed"]
    assert sum(case.needed in text for text in failures) == 1


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_an_agent_of_4_4_validates_and_runs_it(case: Case, world: World) -> None:
    """The agent runs the connector, unless no known release of Kafka can: then the task fails."""
    name = unique_name("runs")
    config = case.full(name, world)
    assert validated(world.agent, config) == (200, "0")
    world.agent.create(name, config)
    if case.later:
        start_again(world.agent, name)
    if case.runs:
        world.agent.wait_for_states(name, "RUNNING", "RUNNING")
    else:
        text = eventually(partial(traces, world.agent, name), WAIT_S)
        assert f"IllegalAccessError: failed to access class {UTILS}.SystemTime" in text
        (found, *_) = check_locations([world.locations[case.location]])
        assert (found.status, found.kafka) == ("failed", "none")
