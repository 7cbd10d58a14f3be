"""The reducer of the config topic (spec internal-topics.md §2.1-2.4)."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyconnect_agent.core import config_records
from pyconnect_agent.core.config_snapshot import ConfigSnapshot, SessionKey
from pyconnect_agent.core.configlog import (
    Applied,
    ConfigLog,
    ConnectorConfigRemoved,
    ConnectorConfigUpdated,
    LoggerLevelUpdated,
    RestartRequested,
    SessionKeyUpdated,
    TargetStateChanged,
    TaskConfigsUpdated,
)
from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.log_record import LogRecord, Severity

Raw = tuple[bytes | None, bytes | None]


def replay(records: Iterable[Raw]) -> ConfigLog:
    log = ConfigLog()
    for offset, (key, value) in enumerate(records):
        log.apply(offset, key, value)
    return log


class Feed:
    """Applies records at consecutive offsets."""

    def __init__(self) -> None:
        self.log = ConfigLog()
        self.next_offset = 0

    def __call__(self, key: bytes | str | None, value: bytes | str | None) -> Applied:
        raw_key = key.encode() if isinstance(key, str) else key
        raw_value = value.encode() if isinstance(value, str) else value
        applied = self.log.apply(self.next_offset, raw_key, raw_value)
        self.next_offset += 1
        return applied

    def write(self, *records: LogRecord) -> Applied:
        return [self(*record) for record in records][-1]

    def full(self, connector: str, tasks: int, config: dict[str, str] | None = None) -> None:
        self.write(*full_write(connector, tasks, config or {"name": connector}))

    @property
    def state(self) -> ConfigSnapshot:
        return self.log.snapshot()


def full_write(connector: str, tasks: int, config: dict[str, str]) -> list[LogRecord]:
    """What a leader writes: the config, a full set of tasks made from it, the commit."""
    return [
        config_records.connector_config(connector, config),
        *(
            config_records.task_config(ConnectorTaskId(connector, n), {**config, "n": str(n)})
            for n in range(tasks)
        ),
        config_records.tasks_commit(connector, tasks),
    ]


@pytest.fixture
def feed() -> Feed:
    return Feed()


def test_records_have_the_bytes_that_apache_writes() -> None:
    """Keys, member names and their order are those of a Java worker's records."""
    written = [
        config_records.connector_config("c", {"name": "c", "x": None}),
        *config_records.connector_removal("c"),
        config_records.target_state("c", TargetState.STARTED),
        config_records.target_state("c", TargetState.PAUSED),
        config_records.target_state("c", TargetState.STOPPED),
        config_records.task_config(ConnectorTaskId("c-d", 3), {"a": "ü"}),
        config_records.tasks_commit("c", 2),
        config_records.task_count_record("c", 3),
        config_records.session_key(
            SessionKey(key=b"\x00\xff\x10", algorithm="HmacSHA256", created_ms=1732000000000)
        ),
        config_records.restart_request("c", only_failed=False, include_tasks=True),
        config_records.logger_level("org.x", "DEBUG"),
    ]
    assert written == [
        (b"connector-c", b'{"properties":{"name":"c","x":null}}'),
        (b"connector-c", None),
        (b"target-state-c", None),
        (b"target-state-c", b'{"state":"STARTED","state.v2":"STARTED"}'),
        (b"target-state-c", b'{"state":"PAUSED","state.v2":"PAUSED"}'),
        (b"target-state-c", b'{"state":"PAUSED","state.v2":"STOPPED"}'),
        (b"task-c-d-3", '{"properties":{"a":"ü"}}'.encode()),
        (b"commit-c", b'{"tasks":2}'),
        (b"tasks-fencing-c", b'{"task-count":3}'),
        (
            b"session-key",
            b'{"key":"AP8Q","algorithm":"HmacSHA256","creation-timestamp":1732000000000}',
        ),
        (b"restart-connector-c", b'{"include-tasks":true,"only-failed":false}'),
        (b"logger-cluster-org.x", b'{"level":"DEBUG"}'),
    ]


def test_a_new_connector_is_started_unless_a_state_was_written_before(feed: Feed) -> None:
    """The default target state is STARTED; an initial one precedes the config, unreported."""
    assert feed.write(config_records.connector_config("a", {})).changes == (
        ConnectorConfigUpdated(connector="a"),
    )
    assert feed.write(config_records.target_state("b", TargetState.STOPPED)).changes == ()
    feed.write(config_records.connector_config("b", {}))
    assert feed.state.target_states == {"a": TargetState.STARTED, "b": TargetState.STOPPED}


def test_a_target_state_is_reported_only_when_it_differs(feed: Feed) -> None:
    """Writing the state that is there changes nothing for the owner."""
    feed.full("c", 0)
    paused = config_records.target_state("c", TargetState.PAUSED)
    assert feed.write(paused).changes == (TargetStateChanged(connector="c"),)
    assert feed.write(paused).changes == ()


@pytest.mark.parametrize(
    ("value", "state", "notices"),
    [
        ('{"state":"PAUSED","state.v2":"STOPPED"}', TargetState.STOPPED, 0),
        ('{"state":"PAUSED"}', TargetState.PAUSED, 0),
        ('{"state":"PAUSED","state.v2":null}', TargetState.PAUSED, 0),
        ('{"state":"PAUSED","state.v2":7}', TargetState.PAUSED, 1),
        ('{"state":7,"state.v2":7}', TargetState.STARTED, 2),
        ('{"state.v2":"GONE","state":"PAUSED"}', TargetState.STARTED, 1),
        ("[1]", TargetState.STARTED, 1),
    ],
)
def test_state_v2_is_read_before_state(
    feed: Feed, value: str, state: TargetState, notices: int
) -> None:
    """An unusable `state.v2` falls back to `state`, an unknown name keeps what was."""
    feed.full("c", 0)
    assert len(feed("target-state-c", value).notices) == notices
    assert feed.state.target_state("c") is state


def test_a_removed_target_state_of_a_configured_connector_is_started(feed: Feed) -> None:
    """Every connector with a config has a target state."""
    feed.full("c", 0)
    feed.write(config_records.target_state("c", TargetState.STOPPED))
    assert feed("target-state-c", None).changes == ()
    assert feed.state.target_state("c") is TargetState.STARTED
    feed("target-state-other", None)
    assert feed.state.target_state("other") is None


@pytest.mark.parametrize("value", [None, b"", b"  ", b"null"])
def test_what_jackson_reads_as_null_removes_a_connector(feed: Feed, value: bytes | None) -> None:
    """Empty payloads and a null literal are tombstones for the config store."""
    feed.full("c", 1)
    assert feed("connector-c", value).changes == (ConnectorConfigRemoved(connector="c"),)
    assert not feed.state.contains("c")


def test_removal_keeps_what_fencing_needs(feed: Feed) -> None:
    """A re-created connector is fenced against the tasks of the removed one."""
    feed.full("c", 2)
    feed.full("other", 1)
    feed.write(config_records.task_count_record("c", 2))
    feed.full("c", 3)
    feed.write(*config_records.connector_removal("c"))
    state = feed.state
    assert (state.task_count("c"), state.applied_config("c")) == (0, None)
    assert set(state.task_configs) == {ConnectorTaskId("other", 0)}
    assert state.task_count_records == {"c": 2}
    assert state.pending_fencing == {"c", "other"}
    assert state.task_config_generations == {"c": 1, "other": 0}
    assert state.target_state("c") is None


def test_task_configs_count_only_when_committed(feed: Feed) -> None:
    """Task records wait for the commit that says how many there are."""
    feed.write(config_records.connector_config("c", {"v": "1"}))
    task = config_records.task_config(ConnectorTaskId("c", 0), {"t": "1"})
    assert feed.write(task) == Applied()
    assert feed.state.tasks("c") == ()
    assert feed.write(config_records.tasks_commit("c", 1)).changes == (
        TaskConfigsUpdated(connector="c", task_ids=(ConnectorTaskId("c", 0),)),
    )
    assert feed.state.tasks("c") == (ConnectorTaskId("c", 0),)
    assert feed.state.task_config(ConnectorTaskId("c", 0)) == {"t": "1"}
    assert feed.state.applied_config("c") == {"v": "1"}
    assert feed.state.pending_fencing == {"c"}


def test_an_incomplete_commit_makes_the_connector_inconsistent(feed: Feed) -> None:
    """Its tasks are not used, the old configs stay, a complete commit repairs it."""
    feed.full("c", 1)
    feed.write(config_records.task_config(ConnectorTaskId("c", 1), {}))
    assert feed.write(config_records.tasks_commit("c", 2)).changes == (
        TaskConfigsUpdated(connector="c", task_ids=()),
    )
    assert feed.state.inconsistent == {"c"}
    assert (feed.state.tasks("c"), feed.state.task_count("c")) == ((), 2)
    assert feed.state.task_config(ConnectorTaskId("c", 0)) is not None
    feed.full("c", 2)
    assert feed.state.inconsistent == frozenset()
    assert len(feed.state.tasks("c")) == 2


def test_a_commit_never_uses_task_configs_of_before_the_previous_one(feed: Feed) -> None:
    """An incomplete set is thrown away with its commit."""
    feed.write(config_records.connector_config("c", {}))
    feed.write(config_records.task_config(ConnectorTaskId("c", 0), {}))
    feed.write(config_records.tasks_commit("c", 2))
    feed.write(config_records.task_config(ConnectorTaskId("c", 1), {}))
    feed.write(config_records.tasks_commit("c", 2))
    assert feed.state.inconsistent == {"c"}


def test_surplus_tasks_after_a_shrink_are_kept_but_do_not_exist(feed: Feed) -> None:
    """Only the count says which tasks there are; compaction brings old ones back."""
    feed.full("c", 3)
    feed.full("c", 1)
    assert feed.state.tasks("c") == (ConnectorTaskId("c", 0),)
    assert len(feed.state.task_configs) == 3


def test_an_empty_commit_is_a_generation_only_after_task_configs(feed: Feed) -> None:
    """The generation advances when task configs of the connector were ever buffered."""
    feed.full("c", 0)
    assert feed.state.task_config_generations == {}
    feed.full("c", 1)
    feed.full("c", 0)
    assert feed.state.task_config_generations == {"c": 1}


def test_a_commit_without_connector_config_is_a_removal(feed: Feed) -> None:
    """Compaction may leave the commit of a connector whose config and tombstone are gone."""
    feed.write(*full_write("c", 2, {})[1:])
    assert feed.write(config_records.tasks_commit("c", 2)).changes == ()
    feed.write(config_records.connector_config("c", {}))
    feed.write(config_records.tasks_commit("c", 2))
    assert feed.state.inconsistent == {"c"}


def test_a_task_count_record_ends_pending_fencing(feed: Feed) -> None:
    """It says that every producer of older generations has been fenced."""
    feed.full("c", 2)
    feed.write(config_records.task_count_record("c", 2))
    assert feed.state.pending_fencing == frozenset()
    feed.full("c", 2)
    assert feed.state.pending_fencing == {"c"}


def test_a_session_key_is_read_back_as_written(feed: Feed) -> None:
    """The key travels as base64; the latest counts."""
    key = SessionKey(key=bytes(range(32)), algorithm="HmacSHA256", created_ms=5)
    assert feed.write(config_records.session_key(key)).changes == (
        SessionKeyUpdated(session_key=key),
    )
    assert feed.state.session_key == key
    unpadded = feed("session-key", '{"key":"AA","algorithm":"X","creation-timestamp":1}')
    assert unpadded.notices == ()


def test_restart_requests_and_logger_levels_are_only_reported(feed: Feed) -> None:
    """They change no state."""
    before = feed.state
    request = config_records.restart_request("c", only_failed=True, include_tasks=False)
    assert feed.write(request).changes == (
        RestartRequested(connector="c", only_failed=True, include_tasks=False),
    )
    defaulted = feed("restart-connector-c", '{"only-failed":"yes"}')
    assert defaulted.changes == (
        RestartRequested(connector="c", only_failed=False, include_tasks=False),
    )
    assert [notice.severity for notice in defaulted.notices] == [Severity.WARNING] * 2
    assert feed.write(config_records.logger_level("a.b", "TRACE")).changes == (
        LoggerLevelUpdated(namespace="a.b", level="TRACE"),
    )
    assert feed.state.connector_configs is before.connector_configs


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("connector-c", "[]"),
        ("connector-c", "{}"),
        ("connector-c", '{"properties":"x"}'),
        ("task-c", '{"properties":{}}'),
        ("task-c-x", '{"properties":{}}'),
        ("task-c-0", None),
        ("task-c-0", '{"properties":[]}'),
        ("commit-c", None),
        ("commit-c", '{"tasks":"2"}'),
        ("commit-c", '{"tasks":1.0}'),
        ("commit-c", '{"tasks":true}'),
        ("commit-c", '{"tasks":-1}'),
        ("tasks-fencing-c", None),
        ("tasks-fencing-c", '{"task-count":null}'),
        ("session-key", None),
        ("session-key", '{"key":"?","algorithm":"a","creation-timestamp":1}'),
        ("session-key", '{"key":"AAAA","algorithm":"a","creation-timestamp":"1"}'),
        ("session-key", '{"key":"AAAA","creation-timestamp":1}'),
        ("restart-connector-c", None),
        ("logger-cluster-a", None),
        ("logger-cluster-a", '{"level":1}'),
        ("session-key-2", "{}"),
        ("unknown", "{}"),
        (None, "{}"),
    ],
)
def test_a_useless_record_is_noticed_and_counts_for_the_offset(
    feed: Feed, key: str | None, value: str | None
) -> None:
    """It changes nothing else; the notice names offset and key, never the value."""
    feed.full("c", 1)
    before = feed.state
    applied = feed(key, value)
    assert applied.changes == ()
    (notice,) = applied.notices
    assert notice.severity is Severity.ERROR
    assert (notice.offset, notice.key) == (feed.next_offset - 1, key or "null")
    assert without_offset(feed.state) == without_offset(before)
    assert feed.state.offset == feed.next_offset


@pytest.mark.parametrize("value", [b"{", b"\xff", b"nonsense", b"'x'", b"NaN"])
def test_an_undecodable_value_does_not_advance_the_offset(feed: Feed, value: bytes) -> None:
    """Workers compare offsets, and Apache's stays behind such a record."""
    feed.full("c", 1)
    before = feed.state
    assert len(feed("connector-c", value).notices) == 1
    assert feed.state == before


def test_markers_leave_the_offset_behind_the_log_end() -> None:
    """The offset is the last record's + 1 although a transaction marker follows it."""
    log = ConfigLog()
    log.apply(4, *config_records.connector_config("c", {}))
    assert log.offset == 5
    log.apply(6, *config_records.tasks_commit("c", 0))
    assert log.offset == 7


def test_properties_of_other_types_become_their_json_text(feed: Feed) -> None:
    """Only a foreign writer makes such; the connector exists as it does for Java workers."""
    feed("connector-c", '{"properties":{"a":1,"b":true,"c":null,"d":"x"}}')
    assert feed.state.connector_config("c") == {"a": "1", "b": "true", "c": None, "d": "x"}


# --- properties ---------------------------------------------------------------------------------

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
    """Snapshots in between neither change what follows nor change themselves."""
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
def test_no_record_raises_and_every_connector_with_config_has_a_target_state(
    records: list[Raw],
) -> None:
    """Whatever is on the topic, the reducer's invariants hold."""
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
    """A replay after compaction differs only where a leader died between tasks and commit.

    Differences are allowed in what is local (generations) and, for such a connector and for a
    removed one, in its tasks and pending fencing; the next full write ends them.
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
    """Records of a history, and the connectors whose last write a leader did not finish."""
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
    """Offsets left when everything before `boundary` is compacted."""
    last = {key: offset for offset, (key, _) in enumerate(records[:boundary])}
    return [
        offset
        for offset, (key, value) in enumerate(records)
        if offset >= boundary or (last[key] == offset and not (tombstones_expire and value is None))
    ]


def view(state: ConfigSnapshot, connector: str) -> tuple[object, ...]:
    """What must agree between workers about a connector."""
    return (
        state.connector_config(connector),
        state.target_state(connector),
        state.tasks(connector),
        [state.task_config(task) for task in state.tasks(connector)],
        state.applied_config(connector),
        connector in state.inconsistent,
        connector in state.pending_fencing,
    )


def without_offset(state: ConfigSnapshot) -> tuple[object, ...]:
    return tuple(
        getattr(state, name) for name in ConfigSnapshot.__dataclass_fields__ if name != "offset"
    )


def test_a_snapshot_copies_only_what_changed(feed: Feed) -> None:
    """With thousands of tasks, a target state must not cost a copy of them."""
    feed.full("c", 2)
    first = feed.state
    assert feed.state is first
    feed.write(config_records.target_state("c", TargetState.PAUSED))
    second = feed.state
    assert second.task_configs is first.task_configs
    assert second.connector_configs is first.connector_configs
    assert second.target_states is not first.target_states
    assert first.target_state("c") is TargetState.STARTED
