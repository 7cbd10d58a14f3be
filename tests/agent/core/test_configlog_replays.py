"""Replays of the config topic, whole, in parts and compacted."""

import copy
from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.internal_topics import LogRecord, config_records
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot
from pyconnect_agent.core.internal_topics.configlog import ConfigLog
from tests.agent.core.internal_topics.config_topic import full_write

Raw = tuple[bytes | None, bytes | None]


def replay(records: Iterable[Raw]) -> ConfigLog:
    log = ConfigLog()
    for offset, (key, value) in enumerate(records):
        log.apply(offset, key, value)
    return log


names = st.sampled_from(["a", "b", "a-1", "b-0", "ü"])
configs = st.dictionaries(st.sampled_from(["name", "x", "y"]), st.text(max_size=2), max_size=2)
json_junk = st.sampled_from(
    [b"", b"null", b"{}", b"[]", b"7", b'"x"', b"{", b"\xff", b'{"properties":{}}', b'{"tasks":1}']
)
any_key = st.one_of(
    st.none(),
    st.binary(max_size=6),
    st.builds(
        lambda prefix, name, tail: f"{prefix}{name}{tail}".encode(),
        st.sampled_from(
            [
                "connector-",
                "task-",
                "commit-",
                "target-state-",
                "tasks-fencing-",
                "session-key",
                "restart-connector-",
                "logger-cluster-",
            ]
        ),
        names,
        st.sampled_from(["", "-0", "-1"]),
    ),
)
well_formed = st.one_of(
    st.builds(config_records.connector_config, names, configs),
    st.builds(config_records.target_state, names, st.sampled_from(TargetState)),
    st.builds(
        lambda name, n, config: config_records.task_config(ConnectorTaskId(name, n), config),
        names,
        st.integers(0, 2),
        configs,
    ),
    st.builds(config_records.tasks_commit, names, st.integers(0, 3)),
    st.builds(config_records.task_count_record, names, st.integers(0, 3)),
    st.builds(lambda name: config_records.connector_removal(name)[0], names),
    st.builds(lambda name: config_records.connector_removal(name)[1], names),
)
any_records = st.lists(
    st.one_of(well_formed, st.tuples(any_key, st.one_of(st.none(), json_junk))), max_size=40
)


@given(any_records, st.lists(st.integers(0, 39)))
def test_a_prefix_and_the_rest_give_the_state_of_the_whole(
    records: list[Raw], snapshots_at: list[int]
) -> None:
    """Snapshots in between change neither the later state nor themselves."""
    log = ConfigLog()
    taken: list[tuple[int, ConfigSnapshot, ConfigSnapshot]] = []
    for offset, (key, value) in enumerate(records):
        log.apply(offset, key, value)
        if offset in snapshots_at:
            taken.append((offset, log.snapshot(), copy.deepcopy(log.snapshot())))
    assert log.snapshot() == replay(records).snapshot()
    for offset, snapshot, as_it_was in taken:
        assert snapshot == as_it_was == replay(records[: offset + 1]).snapshot()


@given(any_records)
def test_no_record_raises_and_configs_have_target_states(records: list[Raw]) -> None:
    """The invariants of the reducer hold for every sequence of records."""
    state = replay(records).snapshot()
    assert set(state.connector_configs) <= set(state.target_states)
    assert set(state.applied_connector_configs) <= set(state.connector_configs)
    assert set(state.task_counts) <= set(state.connector_configs)
    assert {task.connector for task in state.task_configs} <= set(state.connector_configs)
    for connector in state.connectors():
        assert all(state.task_config(task) is not None for task in state.tasks(connector))


operations = st.lists(
    st.one_of(
        st.tuples(st.just("full"), names, st.integers(0, 3), configs),
        st.tuples(st.just("delete"), names),
        st.tuples(st.just("state"), names, st.sampled_from(TargetState)),
        st.tuples(st.just("fence"), names, st.integers(0, 3)),
        st.tuples(st.just("crash"), names, st.integers(1, 3), configs, st.integers(0, 3)),
    ),
    max_size=15,
)


@settings(max_examples=300)
@given(operations, st.integers(0, 100), st.booleans())
def test_compaction_keeps_the_state_of_every_completely_written_connector(
    history: list[tuple], compacted_percent: int, tombstones_expire: bool
) -> None:
    """After compaction a replay differs only where a leader died between tasks and commit.

    Local facts (generations) may differ, and, for such a connector and for a removed one, its
    tasks and pending fencing; the next full write ends the differences.
    """
    records, interrupted = leaders_writes(history)
    boundary = len(records) * compacted_percent // 100
    live = replay(records)
    offsets_left = compact(records, boundary, tombstones_expire)
    replayed = ConfigLog()
    for offset in offsets_left:
        replayed.apply(offset, *records[offset])
    before, after = live.snapshot(), replayed.snapshot()
    assert after.connector_configs == before.connector_configs
    assert after.target_states == before.target_states
    assert after.task_count_records == before.task_count_records
    for connector in before.connectors():
        if connector not in interrupted:
            assert view(after, connector) == view(before, connector)
    repair = [
        record
        for connector in before.connectors()
        for record in full_write(connector, 2, {"repaired": "yes"})
    ]
    for offset, (key, value) in enumerate(repair, start=len(records)):
        live.apply(offset, key, value)
        replayed.apply(offset, key, value)
    before, after = live.snapshot(), replayed.snapshot()
    for connector in before.connectors():
        assert view(after, connector) == view(before, connector)
        assert connector not in after.inconsistent


def leaders_writes(history: list[tuple]) -> tuple[list[LogRecord], set[str]]:
    """Return the records of a history, and the connectors with an unfinished last write."""
    records: list[LogRecord] = []
    interrupted: set[str] = set()
    configured: set[str] = set()
    for kind, connector, *details in history:
        match kind:
            case "full":
                records += full_write(connector, *details)
                configured.add(connector)
                interrupted.discard(connector)
            case "delete":
                records += config_records.connector_removal(connector)
                configured.discard(connector)
                interrupted.discard(connector)
            case "state":
                records.append(config_records.target_state(connector, *details))
            case "fence":
                records.append(config_records.task_count_record(connector, *details))
            case "crash":
                tasks, config, written = details
                records += full_write(connector, tasks, config)[: 1 + min(written, tasks)]
                configured.add(connector)
                interrupted.add(connector)
    return records, interrupted


def compact(records: list[LogRecord], boundary: int, tombstones_expire: bool) -> list[int]:
    """Return the offsets that are left after compaction of all records before `boundary`."""
    last = {key: offset for offset, (key, _) in enumerate(records[:boundary])}
    return [
        offset
        for offset, (key, value) in enumerate(records)
        if offset >= boundary or (last[key] == offset and not (tombstones_expire and value is None))
    ]


def view(state: ConfigSnapshot, connector: str) -> tuple[object, ...]:
    """Return the facts about a connector that all workers must agree on."""
    return (
        state.connector_config(connector),
        state.target_state(connector),
        state.tasks(connector),
        [state.task_config(task) for task in state.tasks(connector)],
        state.applied_config(connector),
        connector in state.inconsistent,
        connector in state.pending_fencing,
    )
