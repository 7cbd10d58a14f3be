"""The records of the config topic."""

from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.internal_topics import config_records
from pyconnect_agent.core.internal_topics.config_snapshot import SessionKey


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
