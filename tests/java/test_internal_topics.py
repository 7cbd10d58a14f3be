"""The internal topics of an Apache worker, which our stores read and write byte for byte."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pyconnect_agent.core.clients.configs import InternalTopic
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.internal_topics import LogRecord, config_records
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot
from pyconnect_agent.core.internal_topics.offsetlog import parse_key
from pyconnect_agent.core.internal_topics.statuslog import (
    StatusLog,
    TopicStatus,
    encode_status,
    topic_record,
)
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.offsets.source import offset_value, parse_offset, partition_key
from pyconnect_agent.kafka.log import CompactedLog, ReadRecord
from pyconnect_agent.stores.config import ConfigStore
from pyconnect_agent.stores.offset import KafkaOffsetStore
from pyconnect_agent.stores.status import StatusStore
from tests.support.agents.agent import STRING_CONVERTER, sink_config, source_config
from tests.support.agents.rest_client import WorkerRest
from tests.support.agents.worker_properties import store_log
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker, SharedJavaWorker

pytestmark = pytest.mark.java

WAIT_S = 150
TIMEOUT_MS = 30_000
ODD_TEXT = 'ü "quoted" \\ / \t\x01\x1f\x7f \u2028 😀 <&>'


@dataclass(frozen=True)
class JavaScenario:
    """The connectors whose records the Java worker has written."""

    rest: WorkerRest[SharedJavaWorker]
    bootstrap_servers: str
    group_id: str
    source: str
    sink: str
    paused: str
    stopped: str
    deleted: str

    @property
    def living(self) -> tuple[str, ...]:
        return (self.source, self.sink, self.paused, self.stopped)

    def log(self, kind: InternalTopic) -> CompactedLog:
        ending = "status" if kind is InternalTopic.STATUSES else kind.value
        return store_log(kind, self.bootstrap_servers, f"{self.group_id}-{ending}")


def run_scenario(done: JavaScenario, directory: Path) -> None:
    """Create, pause, stop, restart and delete connectors over REST."""
    rest, lines = done.rest, unique_name("lines")
    (directory / "in").write_text("first\nsecond\n")
    source = source_config(directory / "in", lines, value_converter=STRING_CONVERTER)
    rest.do("PUT", f"/connectors/{done.source}/config", {**source, "odd": ODD_TEXT, "empty": ""})
    rest.do(
        "PUT",
        f"/connectors/{done.sink}/config",
        sink_config(directory / "out", lines, tasks_max="2", value_converter=STRING_CONVERTER),
    )
    create = {"name": done.paused, "config": source, "initial_state": "PAUSED"}
    rest.do("POST", "/connectors", create)
    for name in (done.stopped, done.deleted):
        rest.do("PUT", f"/connectors/{name}/config", source)
        rest.wait_for_states(name, "RUNNING", "RUNNING", timeout_s=WAIT_S)
    rest.do("PUT", f"/connectors/{done.stopped}/stop")
    rest.do("DELETE", f"/connectors/{done.deleted}")
    rest.do("PUT", "/admin/loggers/org.example.interop?scope=cluster", {"level": "DEBUG"})
    rest.wait_for_states(done.source, "RUNNING", "RUNNING", timeout_s=WAIT_S)
    rest.wait_for_states(done.sink, "RUNNING", "RUNNING", "RUNNING", timeout_s=WAIT_S)
    rest.do("POST", f"/connectors/{done.source}/restart?includeTasks=true&onlyFailed=false")
    rest.wait_for_states(done.stopped, "STOPPED", timeout_s=WAIT_S)
    rest.wait_for_states(done.paused, "PAUSED", timeout_s=WAIT_S)
    # RUNNING may be the state before the restart; PAUSED cannot.
    rest.do("PUT", f"/connectors/{done.source}/pause")
    rest.wait_for_states(done.source, "PAUSED", "PAUSED", timeout_s=WAIT_S)
    rest.do("PUT", f"/connectors/{done.source}/resume")
    rest.wait_for_states(done.source, "RUNNING", "RUNNING", timeout_s=WAIT_S)
    read = [{"position": (directory / "in").stat().st_size}]
    offsets = f"/connectors/{done.source}/offsets"
    eventually(lambda: [at["offset"] for at in rest.get(offsets)["offsets"]] == read, WAIT_S)
    for name in (done.source, done.sink):
        eventually(lambda name=name: rest.get(f"/connectors/{name}/topics")[name]["topics"], WAIT_S)


def test_configs_that_java_wrote_are_read_as_its_rest_shows_them(
    scenario: JavaScenario, configs: ConfigStore
) -> None:
    """Our store reads the configs, tasks, target states and deletions of a Java worker."""
    state = configs.snapshot()
    targets = dict(
        zip(
            scenario.living,
            (TargetState.STARTED, TargetState.STARTED, TargetState.PAUSED, TargetState.STOPPED),
            strict=True,
        )
    )
    for name in scenario.living:
        shown = scenario.rest.get(f"/connectors/{name}")
        assert state.connector_config(name) == shown["config"]
        assert [(t.connector, t.task) for t in state.tasks(name)] == [
            (task["connector"], task["task"]) for task in shown["tasks"]
        ]
        for task in scenario.rest.get(f"/connectors/{name}/tasks"):
            task_id = ConnectorTaskId(task["id"]["connector"], task["id"]["task"])
            assert state.task_config(task_id) == task["config"]
        assert state.target_state(name) is targets[name]
        assert name not in state.inconsistent
        # A connector that is created paused has not made task configs.
        assert state.applied_config(name) == (None if name == scenario.paused else shown["config"])
    assert (state.connector_config(scenario.source) or {})["odd"] == ODD_TEXT
    assert not state.contains(scenario.deleted)
    assert state.target_state(scenario.deleted) is None
    assert state.task_count(scenario.deleted) == 0


def test_statuses_that_java_wrote_are_read_as_its_rest_shows_them(
    scenario: JavaScenario, statuses: StatusStore
) -> None:
    """State, worker, trace, plugin version and active topics are those of the worker's REST."""
    for name in scenario.living:
        shown = scenario.rest.get(f"/connectors/{name}/status")
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
            if number in {task["id"] for task in shown["tasks"]}
        } == {
            task["id"]: (task["state"], task["worker_id"], task["version"])
            for task in shown["tasks"]
        }
        topics = scenario.rest.get(f"/connectors/{name}/topics")[name]["topics"]
        assert list(statuses.topics(name)) == sorted(topics)
    assert statuses.topics(scenario.source) != ()
    eventually(lambda: statuses.connector(scenario.deleted) is None)


def test_offsets_that_java_wrote_are_read_as_its_rest_shows_them(
    scenario: JavaScenario, offsets: KafkaOffsetStore
) -> None:
    """Our store finds the offset by the connector and by the key of our source task."""
    shown = scenario.rest.get(f"/connectors/{scenario.source}/offsets")["offsets"]
    (entry,) = shown
    key = partition_key(scenario.source, entry["partition"])
    found = offsets.read([key], TIMEOUT_MS)[key]
    assert parse_offset(found) == entry["offset"] == {"position": 13}
    assert offsets.connector_entries(scenario.source) == {key: found}


def test_java_reads_records_of_our_stores(
    scenario: JavaScenario,
    configs: ConfigStore,
    statuses: StatusStore,
    offsets: KafkaOffsetStore,
    tmp_path: Path,
) -> None:
    """A Java worker takes over a config, a target state and an offset from our stores."""
    (tmp_path / "in").write_text("skipped\nread\n")
    name, rest = unique_name("ours"), scenario.rest
    source = {
        **source_config(tmp_path / "in", unique_name("lines"), value_converter=STRING_CONVERTER),
        "name": name,
        "odd": ODD_TEXT,
    }
    configs.put_connector_config(name, source, TargetState.PAUSED)
    rest.wait_for_states(name, "PAUSED", timeout_s=WAIT_S)
    assert rest.get(f"/connectors/{name}")["config"] == source
    configs.put_target_state(name, TargetState.STARTED)
    rest.wait_for_states(name, "RUNNING", "RUNNING", timeout_s=WAIT_S)
    configs.refresh(TIMEOUT_MS)
    assert configs.snapshot().task_count(name) == 1
    configs.put_task_configs(name, [])
    configs.put_target_state(name, TargetState.STOPPED)
    rest.wait_for_states(name, "STOPPED", timeout_s=WAIT_S)
    eventually(lambda: (found := statuses.connector(name)) and found.state is State.STOPPED)
    key = partition_key(name, {"filename": str(tmp_path / "in")})
    eventually(lambda: offsets.read([key], TIMEOUT_MS)[key])
    offsets.write({key: json_text.dumps({"position": 8})}, TIMEOUT_MS)
    assert rest.get(f"/connectors/{name}/offsets")["offsets"] == [
        {"partition": {"filename": str(tmp_path / "in")}, "offset": {"position": 8}}
    ]
    configs.remove_connector_config(name)
    eventually(lambda: name not in rest.get("/connectors"))


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


def reencoded(record: ReadRecord, state: ConfigSnapshot) -> LogRecord | None:
    """Return a config record encoded by us from its facts; None for kinds not known here."""
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
    scenario: JavaScenario, configs: ConfigStore
) -> None:
    """Every record is encoded to the same bytes, the session key and odd texts included."""
    records = read_raw(scenario.log(InternalTopic.CONFIGS))
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


def test_our_status_records_have_the_bytes_that_java_wrote(scenario: JavaScenario) -> None:
    """Statuses of connectors, tasks and topics have the same keys, values and partitions."""
    compared: set[str] = set()
    records = read_raw(scenario.log(InternalTopic.STATUSES))
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


def test_our_offset_records_have_the_bytes_that_java_wrote(scenario: JavaScenario) -> None:
    """Each offset record of these connectors has the same key and value in bytes."""
    records = [
        record
        for record in read_raw(scenario.log(InternalTopic.OFFSETS))
        if names_connector(record, scenario.source, scenario.stopped)
    ]
    assert records
    for record in records:
        parsed = parse_key(record.key or b"")
        assert not isinstance(parsed, str)
        assert partition_key(parsed.connector, parsed.partition) == record.key
        assert offset_value(parse_offset(record.value)) == record.value


def test_our_writes_land_in_the_partitions_of_javas_writes(
    scenario: JavaScenario, statuses: StatusStore
) -> None:
    """Our record must replace the Java worker's, not add a copy in another partition."""
    before = read_raw(scenario.log(InternalTopic.STATUSES))
    java = {r.key: r.partition for r in before if names_connector(r, *scenario.living)}
    task = ConnectorTaskId(scenario.source, 0)
    status = statuses.task(task)
    assert status is not None
    statuses.put(task, status)
    for name in scenario.living:
        known = statuses.connector(name)
        assert known is not None
        statuses.put(name, known)
    statuses.flush(TIMEOUT_MS)
    after = read_raw(scenario.log(InternalTopic.STATUSES))
    written = [record for record in after if record not in before and record.key in java]
    assert len({record.key for record in written}) >= len(scenario.living) + 1
    assert {record.key: record.partition for record in written} == {
        record.key: java[record.key] for record in written
    }


@pytest.fixture(scope="module")
def scenario(
    java_worker: SharedJavaWorker,
    kafka_broker: SharedBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> JavaScenario:
    """The records of all tests; they are written once, because the worker takes its time."""
    directory = tmp_path_factory.mktemp("internal-topics")
    done = JavaScenario(
        WorkerRest(java_worker),
        kafka_broker.bootstrap_servers,
        java_worker.group_id,
        *(unique_name(kind) for kind in ("source", "sink-1", "paused", "stopped", "deleted")),
    )
    run_scenario(done, directory)
    return done


@pytest.fixture
def configs(scenario: JavaScenario) -> Iterator[ConfigStore]:
    store = ConfigStore(scenario.log(InternalTopic.CONFIGS))
    store.start(lambda snapshot, changes: None)
    yield store
    store.stop()


@pytest.fixture
def statuses(scenario: JavaScenario) -> Iterator[StatusStore]:
    store = StatusStore(scenario.log(InternalTopic.STATUSES))
    store.start()
    yield store
    store.stop()


@pytest.fixture
def offsets(scenario: JavaScenario) -> Iterator[KafkaOffsetStore]:
    store = KafkaOffsetStore(scenario.log(InternalTopic.OFFSETS))
    store.start()
    yield store
    store.stop()
