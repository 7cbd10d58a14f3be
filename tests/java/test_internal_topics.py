"""Internal topics shared with an Apache worker: same state read, same bytes written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from pyconnect_agent.core import config_records, json_text
from pyconnect_agent.core.client_configs import InternalTopic
from pyconnect_agent.core.config_snapshot import ConfigSnapshot
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.log_record import LogRecord
from pyconnect_agent.core.offsetlog import parse_key
from pyconnect_agent.core.source_offsets import offset_value, parse_offset, partition_key
from pyconnect_agent.core.statuslog import StatusLog, TopicStatus, encode_status, topic_record
from pyconnect_agent.kafka.log import CompactedLog, ReadRecord
from pyconnect_agent.stores.config import KafkaConfigStore
from pyconnect_agent.stores.offset import KafkaOffsetStore
from pyconnect_agent.stores.status import KafkaStatusStore
from pyconnect_agent.stores.topics import StoreTopic, config_log, offset_log, status_log
from tests.support.eventually import eventually
from tests.support.kafka import SharedBroker, SharedJavaWorker
from tests.support.names import unique_name
from tests.support.stores import store_topic

pytestmark = pytest.mark.java

TIMEOUT_MS = 30_000
ODD_TEXT = 'ü "quoted" \\ / \t\x01\x1f\x7f \u2028 😀 <&>'


class Rest:
    """The Java worker's REST API."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, method: str, path: str, body: object = None) -> Any:
        request = Request(
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urlopen(request, timeout=90) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def state(self, connector: str) -> tuple[str, list[str]]:
        """State of the connector and its tasks; nothing before there is a status."""
        try:
            status = self("GET", f"/connectors/{connector}/status")
        except HTTPError as error:
            if error.code not in (404, 409):
                raise
            return "", []
        return status["connector"]["state"], [task["state"] for task in status["tasks"]]

    def until(self, connector: str, state: str, *tasks: str) -> None:
        eventually(
            lambda: self.state(connector) == (state, list(tasks)),
            timeout_s=60,
            describe=lambda: self.state(connector),
        )


@dataclass(frozen=True)
class Scenario:
    """What the Java worker was made to write, and where."""

    rest: Rest
    topics: Mapping[str, StoreTopic]
    source: str
    sink: str
    paused: str
    stopped: str
    deleted: str

    @property
    def living(self) -> tuple[str, ...]:
        return (self.source, self.sink, self.paused, self.stopped)


@pytest.fixture(scope="module")
def scenario(
    java_worker: SharedJavaWorker,
    kafka_broker: SharedBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Scenario:
    """Connectors created, paused, stopped, restarted, moved and deleted through Java's REST."""
    topics = {
        ending: store_topic(
            kind, kafka_broker.bootstrap_servers, f"{java_worker.group_id}-{ending}"
        )
        for ending, kind in (
            ("configs", InternalTopic.CONFIGS),
            ("status", InternalTopic.STATUSES),
            ("offsets", InternalTopic.OFFSETS),
        )
    }
    directory = tmp_path_factory.mktemp("internal-topics")
    done = Scenario(
        Rest(java_worker.url),
        topics,
        *(unique_name(kind) for kind in ("source", "sink-1", "paused", "stopped", "deleted")),
    )
    run_scenario(done, directory)
    return done


def run_scenario(done: Scenario, directory: Path) -> None:
    rest, lines = done.rest, unique_name("lines")
    (directory / "in").write_text("first\nsecond\n")
    source = file_source(lines, directory / "in")
    rest("PUT", f"/connectors/{done.source}/config", {**source, "odd": ODD_TEXT, "empty": ""})
    rest(
        "PUT",
        f"/connectors/{done.sink}/config",
        {
            "connector.class": "FileStreamSink",
            "tasks.max": "2",
            "file": str(directory / "out"),
            "topics": lines,
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        },
    )
    create = {"name": done.paused, "config": source, "initial_state": "PAUSED"}
    rest("POST", "/connectors", create)
    for name in (done.stopped, done.deleted):
        rest("PUT", f"/connectors/{name}/config", source)
        rest.until(name, "RUNNING", "RUNNING")
    rest("PUT", f"/connectors/{done.stopped}/stop")
    rest("DELETE", f"/connectors/{done.deleted}")
    rest("PUT", "/admin/loggers/org.example.interop?scope=cluster", {"level": "DEBUG"})
    rest.until(done.source, "RUNNING", "RUNNING")
    rest.until(done.sink, "RUNNING", "RUNNING", "RUNNING")
    rest("POST", f"/connectors/{done.source}/restart?includeTasks=true&onlyFailed=false")
    rest.until(done.stopped, "STOPPED")
    rest.until(done.paused, "PAUSED")
    rest.until(done.source, "RUNNING", "RUNNING")
    eventually(lambda: rest("GET", f"/connectors/{done.source}/offsets")["offsets"], 60)
    for name in (done.source, done.sink):
        eventually(lambda name=name: rest("GET", f"/connectors/{name}/topics")[name]["topics"], 60)


def file_source(topic: str, path: Path) -> dict[str, str]:
    return {
        "connector.class": "FileStreamSource",
        "file": str(path),
        "topic": topic,
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }


class Raw:
    """Every record of a topic."""

    def __init__(self) -> None:
        self.records: list[ReadRecord] = []

    def apply(self, record: ReadRecord) -> None:
        self.records.append(record)

    def applied(self) -> None: ...
    def caught_up(self) -> None: ...


def read_raw(log: CompactedLog) -> list[ReadRecord]:
    raw = Raw()
    log.start(raw)
    log.stop()
    return raw.records


def names_connector(record: ReadRecord, *connectors: str) -> bool:
    return any(name.encode() in (record.key or b"") for name in connectors)


@pytest.fixture
def configs(scenario: Scenario) -> Iterator[KafkaConfigStore]:
    store = KafkaConfigStore(config_log(scenario.topics["configs"]))
    store.start(lambda changes: None)
    yield store
    store.stop()


@pytest.fixture
def statuses(scenario: Scenario) -> Iterator[KafkaStatusStore]:
    store = KafkaStatusStore(status_log(scenario.topics["status"]))
    store.start()
    yield store
    store.stop()


@pytest.fixture
def offsets(scenario: Scenario) -> Iterator[KafkaOffsetStore]:
    store = KafkaOffsetStore(offset_log(scenario.topics["offsets"]))
    store.start()
    yield store
    store.stop()


def test_configs_that_java_wrote_are_read_as_its_rest_shows_them(
    scenario: Scenario, configs: KafkaConfigStore
) -> None:
    """Configs, tasks, target states, and what was deleted."""
    state = configs.snapshot()
    targets = dict(
        zip(
            scenario.living,
            (TargetState.STARTED, TargetState.STARTED, TargetState.PAUSED, TargetState.STOPPED),
            strict=True,
        )
    )
    for name in scenario.living:
        shown = scenario.rest("GET", f"/connectors/{name}")
        assert state.connector_config(name) == shown["config"]
        assert [(t.connector, t.task) for t in state.tasks(name)] == [
            (task["connector"], task["task"]) for task in shown["tasks"]
        ]
        for task in scenario.rest("GET", f"/connectors/{name}/tasks"):
            task_id = ConnectorTaskId(task["id"]["connector"], task["id"]["task"])
            assert state.task_config(task_id) == task["config"]
        assert state.target_state(name) is targets[name]
        assert name not in state.inconsistent
        # A connector created paused has never made task configs.
        assert state.applied_config(name) == (None if name == scenario.paused else shown["config"])
    assert (state.connector_config(scenario.source) or {})["odd"] == ODD_TEXT
    assert not state.contains(scenario.deleted)
    assert state.target_state(scenario.deleted) is None
    assert state.task_count(scenario.deleted) == 0


def test_statuses_that_java_wrote_are_read_as_its_rest_shows_them(
    scenario: Scenario, statuses: KafkaStatusStore
) -> None:
    """State, worker, trace and plugin version of connectors and tasks; active topics."""
    for name in scenario.living:
        shown = scenario.rest("GET", f"/connectors/{name}/status")
        found = statuses.connector(name)
        assert found is not None
        assert (found.state.value, found.worker_id, found.version) == (
            shown["connector"]["state"],
            shown["connector"]["worker_id"],
            shown["connector"]["version"],
        )
        assert {
            number: (task.state.value, task.worker_id, task.version)
            for number, task in statuses.tasks(name).items()
            if ConnectorTaskId(name, number) in configs_tasks(shown)
        } == {
            task["id"]: (task["state"], task["worker_id"], task["version"])
            for task in shown["tasks"]
        }
        topics = scenario.rest("GET", f"/connectors/{name}/topics")[name]["topics"]
        assert list(statuses.topics(name)) == sorted(topics)
    assert statuses.topics(scenario.source) != ()
    eventually(lambda: statuses.connector(scenario.deleted) is None, 30)


def configs_tasks(shown: Any) -> set[ConnectorTaskId]:
    return {ConnectorTaskId(shown["name"], task["id"]) for task in shown["tasks"]}


def test_offsets_that_java_wrote_are_read_as_its_rest_shows_them(
    scenario: Scenario, offsets: KafkaOffsetStore
) -> None:
    """By connector, and by a key that our own source task would make."""
    shown = scenario.rest("GET", f"/connectors/{scenario.source}/offsets")["offsets"]
    (entry,) = shown
    key = partition_key(scenario.source, entry["partition"])
    found = offsets.read([key], TIMEOUT_MS)[key]
    assert parse_offset(found) == entry["offset"] == {"position": 13}
    assert offsets.connector_entries(scenario.source) == {key: found}


def reencoded(record: ReadRecord, state: ConfigSnapshot) -> LogRecord | None:
    """Encode the facts of a config record ourselves; None for kinds not known here."""
    key = (record.key or b"").decode()
    value: Any = json.loads(record.value or b"null")
    kinds: dict[str, Callable[[str], LogRecord]] = {
        "target-state-": lambda name: config_records.target_state(
            name, TargetState[value["state.v2"]]
        ),
        "connector-": lambda name: config_records.connector_config(name, value["properties"]),
        "task-": lambda name: config_records.task_config(
            ConnectorTaskId.parse(name), value["properties"]
        ),
        "commit-": lambda name: config_records.tasks_commit(name, value["tasks"]),
        "restart-connector-": lambda name: config_records.restart_request(
            name, only_failed=value["only-failed"], include_tasks=value["include-tasks"]
        ),
        "logger-cluster-": lambda name: config_records.logger_level(name, value["level"]),
    }
    if key == "session-key" and state.session_key is not None:
        return config_records.session_key(state.session_key)
    for prefix, encode in kinds.items():
        if key.startswith(prefix):
            return encode(key.removeprefix(prefix))
    return None


def test_our_config_records_have_the_bytes_that_java_wrote(
    scenario: Scenario, configs: KafkaConfigStore
) -> None:
    """For every record of the topic, the session key included, whatever text is in it."""
    records = read_raw(config_log(scenario.topics["configs"]))
    session_keys = [record for record in records if record.key == b"session-key"]
    compared: set[str] = set()
    for record in records:
        if record.value is None or record in session_keys[:-1]:
            continue
        encoded = reencoded(record, configs.snapshot())
        assert encoded is not None, record.key
        assert encoded == (record.key, record.value)
        compared.add((record.key or b"").decode().split("-")[0])
    assert compared == {"target", "connector", "task", "commit", "restart", "logger", "session"}
    removal = [(r.key, r.value) for r in records if r.value is None]
    deleted = config_records.connector_removal(scenario.deleted)
    assert [record for record in removal if record in deleted] == list(deleted)


def test_our_status_records_have_the_bytes_that_java_wrote(scenario: Scenario) -> None:
    """Connectors, tasks and topics; keys are placed where we place them."""
    compared: set[str] = set()
    records = read_raw(status_log(scenario.topics["status"]))
    for record in records:
        if record.value is None:
            continue
        reader = StatusLog()
        assert reader.apply(record.key, record.value) == ()
        key = (record.key or b"").decode()
        if key.startswith("status-topic-"):
            inner = json.loads(record.value)["topic"]
            ours = topic_record(
                TopicStatus(
                    topic=inner["name"],
                    connector=inner["connector"],
                    task=inner["task"],
                    discovered_ms=inner["discoverTimestamp"],
                )
            )
            assert ours == (record.key, record.value)
        else:
            task = key.startswith("status-task-")
            name = key.removeprefix("status-task-" if task else "status-connector-")
            found = reader.task(ConnectorTaskId.parse(name)) if task else reader.connector(name)
            assert found is not None
            assert encode_status(found) == record.value
        compared.add(key.split("-")[1])
    assert compared == {"connector", "task", "topic"}
    tombstones = {record.key for record in records if record.value is None}
    assert f"status-connector-{scenario.deleted}".encode() in tombstones


def test_our_offset_records_have_the_bytes_that_java_wrote(scenario: Scenario) -> None:
    """Key and value of every entry of the connectors made here."""
    records = [
        record
        for record in read_raw(offset_log(scenario.topics["offsets"]))
        if names_connector(record, scenario.source, scenario.stopped)
    ]
    assert records
    for record in records:
        parsed = parse_key(record.key or b"")
        assert not isinstance(parsed, str)
        assert partition_key(parsed.connector, parsed.partition) == record.key
        assert offset_value(parse_offset(record.value)) == record.value


def test_our_writes_land_in_the_partitions_of_javas_writes(
    scenario: Scenario, statuses: KafkaStatusStore
) -> None:
    """Rewriting a key that Java wrote must replace it, not add a copy elsewhere."""
    before = read_raw(status_log(scenario.topics["status"]))
    java = {r.key: r.partition for r in before if names_connector(r, *scenario.living)}
    task = ConnectorTaskId(scenario.source, 0)
    status = statuses.task(task)
    assert status is not None
    statuses.put_task(task, status)
    for name in scenario.living:
        known = statuses.connector(name)
        assert known is not None
        statuses.put_connector(name, known)
    statuses.flush(TIMEOUT_MS)
    after = read_raw(status_log(scenario.topics["status"]))
    written = [record for record in after if record not in before and record.key in java]
    assert len({record.key for record in written}) >= len(scenario.living) + 1
    assert {record.key: record.partition for record in written} == {
        record.key: java[record.key] for record in written
    }


def test_java_obeys_what_our_stores_write(
    scenario: Scenario,
    configs: KafkaConfigStore,
    statuses: KafkaStatusStore,
    offsets: KafkaOffsetStore,
    tmp_path: Path,
) -> None:
    """A config, a target state and an offset of ours become the Java worker's own."""
    (tmp_path / "in").write_text("skipped\nread\n")
    name, rest = unique_name("ours"), scenario.rest
    source = {**file_source(unique_name("lines"), tmp_path / "in"), "name": name, "odd": ODD_TEXT}
    configs.put_connector_config(name, source, TargetState.PAUSED)
    rest.until(name, "PAUSED")
    assert rest("GET", f"/connectors/{name}")["config"] == source
    configs.put_target_state(name, TargetState.STARTED)
    rest.until(name, "RUNNING", "RUNNING")
    configs.refresh(TIMEOUT_MS)
    assert configs.snapshot().task_count(name) == 1
    configs.put_task_configs(name, [])
    configs.put_target_state(name, TargetState.STOPPED)
    rest.until(name, "STOPPED")
    eventually(lambda: (found := statuses.connector(name)) and found.state is State.STOPPED)
    key = partition_key(name, {"filename": str(tmp_path / "in")})
    eventually(lambda: offsets.read([key], TIMEOUT_MS)[key], 30)
    offsets.write({key: json_text.dumps({"position": 8})}, TIMEOUT_MS)
    assert rest("GET", f"/connectors/{name}/offsets")["offsets"] == [
        {"partition": {"filename": str(tmp_path / "in")}, "offset": {"position": 8}}
    ]
    configs.remove_connector_config(name)
    eventually(lambda: name not in rest("GET", "/connectors"), 30)
