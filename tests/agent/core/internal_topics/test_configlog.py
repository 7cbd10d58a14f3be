"""The records of the config topic, and their reducer."""

import pytest

from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.internal_topics import NoticeLevel, config_records
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot, SessionKey
from pyconnect_agent.core.internal_topics.configlog import (
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
from tests.agent.core.internal_topics.config_topic import ConfigTopicFeed, full_write
from tests.support.cases import cases


@pytest.fixture
def feed() -> ConfigTopicFeed:
    return ConfigTopicFeed()


def test_a_target_state_is_reported_only_when_it_differs(feed: ConfigTopicFeed) -> None:
    """The state is STARTED by default; an equal state, or one before its config, is no change."""
    assert feed.write(config_records.connector_config("a", {})).changes == (
        ConnectorConfigUpdated(connector="a"),
    )
    assert feed.write(config_records.target_state("b", TargetState.STOPPED)).changes == ()
    feed.write(config_records.connector_config("b", {}))
    assert feed.state.target_states == {"a": TargetState.STARTED, "b": TargetState.STOPPED}
    feed.full("c", 0)
    paused = config_records.target_state("c", TargetState.PAUSED)
    assert feed.write(paused).changes == (TargetStateChanged(connector="c"),)
    assert feed.write(paused).changes == ()


@cases(
    "value, state, notices",
    ('{"state":"PAUSED","state.v2":"STOPPED"}', TargetState.STOPPED, 0),
    ('{"state":"PAUSED"}', TargetState.PAUSED, 0),
    ('{"state":"PAUSED","state.v2":null}', TargetState.PAUSED, 0),
    ('{"state":"PAUSED","state.v2":7}', TargetState.PAUSED, 1),
    ('{"state":7,"state.v2":7}', TargetState.STARTED, 2),
    ('{"state.v2":"GONE","state":"PAUSED"}', TargetState.STARTED, 1),
    ("[1]", TargetState.STARTED, 1),
)
def test_state_v2_wins(feed: ConfigTopicFeed, value: str, state: TargetState, notices: int) -> None:
    """An unusable `state.v2` falls back to `state`; an unknown name changes nothing."""
    feed.full("c", 0)
    assert len(feed("target-state-c", value).notices) == notices
    assert feed.state.target_state("c") is state


def test_a_removed_target_state_of_a_configured_connector_is_started(feed: ConfigTopicFeed) -> None:
    """Every connector with a config has a target state."""
    feed.full("c", 0)
    feed.write(config_records.target_state("c", TargetState.STOPPED))
    assert feed("target-state-c", None).changes == ()
    assert feed.state.target_state("c") is TargetState.STARTED
    feed("target-state-other", None)
    assert feed.state.target_state("other") is None


@cases("value", None, b"", b"  ", b"null")
def test_null_payloads_remove_a_connector(feed: ConfigTopicFeed, value: bytes | None) -> None:
    """Empty payloads and a null literal count as tombstones."""
    feed.full("c", 1)
    assert feed("connector-c", value).changes == (ConnectorConfigRemoved(connector="c"),)
    assert not feed.state.contains("c")


def test_removal_keeps_the_task_count_for_fencing(feed: ConfigTopicFeed) -> None:
    """The count stays, so that a new connector of the same name fences the old one's tasks."""
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


def test_task_configs_count_only_when_committed(feed: ConfigTopicFeed) -> None:
    """Task configs wait for the commit that has their number."""
    feed.write(config_records.connector_config("c", {"v": "1"}))
    task = config_records.task_config(ConnectorTaskId("c", 0), {"t": "1"})
    assert feed.write(task) == Applied()
    assert feed.state.tasks("c") == ()
    assert feed.write(config_records.tasks_commit("c", 1)).changes == (
        TaskConfigsUpdated(connector="c"),
    )
    assert feed.state.tasks("c") == (ConnectorTaskId("c", 0),)
    assert feed.state.task_config(ConnectorTaskId("c", 0)) == {"t": "1"}
    assert feed.state.applied_config("c") == {"v": "1"}
    assert feed.state.pending_fencing == {"c"}


def test_an_incomplete_commit_makes_the_connector_inconsistent(feed: ConfigTopicFeed) -> None:
    """After an incomplete commit no task is usable, until a complete one follows."""
    feed.full("c", 1)
    feed.write(config_records.task_config(ConnectorTaskId("c", 1), {}))
    assert feed.write(config_records.tasks_commit("c", 2)).changes == (
        TaskConfigsUpdated(connector="c"),
    )
    assert feed.state.inconsistent == {"c"}
    assert (feed.state.tasks("c"), feed.state.task_count("c")) == ((), 2)
    assert feed.state.task_config(ConnectorTaskId("c", 0)) is not None
    feed.full("c", 2)
    assert feed.state.inconsistent == frozenset()
    assert len(feed.state.tasks("c")) == 2


def test_a_commit_never_uses_task_configs_of_before_the_previous_one(feed: ConfigTopicFeed) -> None:
    """The buffered configs of an incomplete task set are dropped with its commit."""
    feed.write(config_records.connector_config("c", {}))
    feed.write(config_records.task_config(ConnectorTaskId("c", 0), {}))
    feed.write(config_records.tasks_commit("c", 2))
    feed.write(config_records.task_config(ConnectorTaskId("c", 1), {}))
    feed.write(config_records.tasks_commit("c", 2))
    assert feed.state.inconsistent == {"c"}


def test_surplus_tasks_after_a_shrink_are_kept_but_do_not_exist(feed: ConfigTopicFeed) -> None:
    """The count decides which tasks exist; compaction may bring surplus configs back."""
    feed.full("c", 3)
    feed.full("c", 1)
    assert feed.state.tasks("c") == (ConnectorTaskId("c", 0),)
    assert len(feed.state.task_configs) == 3


def test_an_empty_commit_is_a_generation_only_after_task_configs(feed: ConfigTopicFeed) -> None:
    """An empty commit starts a generation only if task configs have been read before."""
    feed.full("c", 0)
    assert feed.state.task_config_generations == {}
    feed.full("c", 1)
    feed.full("c", 0)
    assert feed.state.task_config_generations == {"c": 1}


def test_a_commit_without_connector_config_is_a_removal(feed: ConfigTopicFeed) -> None:
    """Compaction may remove a connector's config and tombstone but leave its commit."""
    feed.write(*full_write("c", 2, {})[1:])
    assert feed.write(config_records.tasks_commit("c", 2)).changes == ()
    feed.write(config_records.connector_config("c", {}))
    feed.write(config_records.tasks_commit("c", 2))
    assert feed.state.inconsistent == {"c"}


def test_a_task_count_record_ends_pending_fencing(feed: ConfigTopicFeed) -> None:
    """A task count record means that all producers of older task sets are fenced."""
    feed.full("c", 2)
    feed.write(config_records.task_count_record("c", 2))
    assert feed.state.pending_fencing == frozenset()
    feed.full("c", 2)
    assert feed.state.pending_fencing == {"c"}


def test_a_session_key_is_read_back_as_written(feed: ConfigTopicFeed) -> None:
    """A session key is base64 with or without padding, and the latest one counts."""
    key = SessionKey(key=bytes(range(32)), algorithm="HmacSHA256", created_ms=5)
    assert feed.write(config_records.session_key(key)).changes == (
        SessionKeyUpdated(session_key=key),
    )
    assert feed.state.session_key == key
    unpadded = feed("session-key", '{"key":"AA","algorithm":"X","creation-timestamp":1}')
    assert unpadded.notices == ()


def test_restart_requests_and_logger_levels_are_only_reported(feed: ConfigTopicFeed) -> None:
    """Restart requests and logger levels change no state."""
    before = feed.state
    request = config_records.restart_request("c", only_failed=True, include_tasks=False)
    assert feed.write(request).changes == (
        RestartRequested(connector="c", only_failed=True, include_tasks=False),
    )
    defaulted = feed("restart-connector-c", '{"only-failed":"yes"}')
    assert defaulted.changes == (
        RestartRequested(connector="c", only_failed=False, include_tasks=False),
    )
    assert [notice.severity for notice in defaulted.notices] == [NoticeLevel.WARNING] * 2
    assert feed.write(config_records.logger_level("a.b", "TRACE")).changes == (
        LoggerLevelUpdated(namespace="a.b", level="TRACE"),
    )
    assert feed("logger-cluster-a.b", '{"level":" debug "}').changes == (
        LoggerLevelUpdated(namespace="a.b", level="DEBUG"),
    )
    assert feed.state.connector_configs is before.connector_configs


@cases(
    "key, value",
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
    ("logger-cluster-a", '{"level":"warning"}'),
    ("logger-cluster-a", '{"level":""}'),
    ("session-key-2", "{}"),
    ("unknown", "{}"),
    (None, "{}"),
)
def test_a_useless_record_is_noticed_and_counts_for_the_offset(
    feed: ConfigTopicFeed, key: str | None, value: str | None
) -> None:
    """A useless record only changes the offset; its notice has offset and key, not the value."""
    feed.full("c", 1)
    before = feed.state
    applied = feed(key, value)
    assert applied.changes == ()
    (notice,) = applied.notices
    assert notice.severity is NoticeLevel.ERROR
    assert (notice.offset, notice.key) == (feed.next_offset - 1, key or "null")
    assert without_offset(feed.state) == without_offset(before)
    assert feed.state.offset == feed.next_offset


@cases("value", b"{", b"\xff", b"nonsense", b"'x'", b"NaN")
def test_an_unreadable_value_keeps_the_offset(feed: ConfigTopicFeed, value: bytes) -> None:
    """Workers compare offsets, and Apache's does not count such a record."""
    feed.full("c", 1)
    before = feed.state
    assert len(feed("connector-c", value).notices) == 1
    assert feed.state == before


def test_markers_leave_the_offset_behind_the_log_end() -> None:
    """The offset is that of the last record + 1, even if a transaction marker follows."""
    log = ConfigLog()
    log.apply(4, *config_records.connector_config("c", {}))
    assert log.offset == 5
    log.apply(6, *config_records.tasks_commit("c", 0))
    assert log.offset == 7


def test_properties_of_other_types_become_their_json_text(feed: ConfigTopicFeed) -> None:
    """Values of other types, which no worker writes, become text, as a Java worker reads them."""
    feed("connector-c", '{"properties":{"a":1,"b":true,"c":null,"d":"x"}}')
    assert feed.state.connector_config("c") == {"a": "1", "b": "true", "c": None, "d": "x"}


def without_offset(state: ConfigSnapshot) -> tuple[object, ...]:
    return tuple(
        getattr(state, name) for name in ConfigSnapshot.__dataclass_fields__ if name != "offset"
    )


def test_a_snapshot_copies_only_changed_entries(feed: ConfigTopicFeed) -> None:
    """A changed target state does not cost a copy of thousands of task configs."""
    feed.full("c", 2)
    first = feed.state
    assert feed.state is first
    feed.write(config_records.target_state("c", TargetState.PAUSED))
    second = feed.state
    assert second.task_configs is first.task_configs
    assert second.connector_configs is first.connector_configs
    assert second.target_states is not first.target_states
    assert first.target_state("c") is TargetState.STARTED


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
