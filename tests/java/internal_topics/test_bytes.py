"""Our records of the internal topics, byte for byte those of an Apache worker."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from pyconnect_agent.core.clients.configs import InternalTopic
from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.internal_topics import config_records
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot
from pyconnect_agent.core.internal_topics.log_record import LogRecord
from pyconnect_agent.core.internal_topics.offsetlog import parse_key
from pyconnect_agent.core.internal_topics.statuslog import (
    StatusLog,
    TopicStatus,
    encode_status,
    topic_record,
)
from pyconnect_agent.core.offsets.source import offset_value, parse_offset, partition_key
from pyconnect_agent.kafka.log import CompactedLog, ReadRecord
from pyconnect_agent.stores.config import ConfigStore
from pyconnect_agent.stores.status import StatusStore
from tests.java.internal_topics.java_scenario import TIMEOUT_MS, JavaScenario

pytestmark = pytest.mark.java


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
    scenario: JavaScenario, configs: ConfigStore
) -> None:
    """For every record of the topic, the session key included, whatever text is in it."""
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
    """Connectors, tasks and topics; keys are placed where we place them."""
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
    """Key and value of every entry of the connectors made here."""
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
    """Rewriting a key that Java wrote must replace it, not add a copy elsewhere."""
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
