"""A worker's version, and the parts that use its keys."""

import re

from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_agent.core.group_protocol import ProtocolVersion
from pyconnect_agent.core.herder.state import HerderSettings, SessionKeySettings
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.metric_values import Sampling
from pyconnect_agent.core.plugin_catalog import CONNECT_VERSION
from pyconnect_agent.herder.loop import ChildEvents
from pyconnect_agent.herder.port import WorkerClock
from pyconnect_agent.stores import MemoryLog
from pyconnect_agent.stores.status import StatusStore
from pyconnect_agent.worker.lifecycle import distributed_settings, group_options, server_info
from pyconnect_clients.installation import version
from tests.support.agents.worker_properties import distributed
from tests.support.cases import cases

EVERY_WORKER = HerderSettings(worker_id="w:1", connector_type=lambda _: "source")


def settings_of(config: DistributedConfig) -> HerderSettings:
    return distributed_settings(EVERY_WORKER, config)


def test_the_herder_keeps_the_times_of_its_worker() -> None:
    """The herder gets the timeouts of catching up, and the delay for lost work."""
    settings = settings_of(
        distributed(
            worker_sync_timeout_ms="11",
            worker_unsync_backoff_ms="12",
            scheduled_rebalance_max_delay_ms="13",
        )
    )
    assert settings.worker_sync_timeout_ms == 11
    assert settings.worker_unsync_backoff_ms == 12
    assert settings.scheduled_rebalance_max_delay_ms == 13
    assert settings.worker_id == EVERY_WORKER.worker_id
    assert settings.connector_type is EVERY_WORKER.connector_type


def test_session_keys_and_samples_are_as_the_worker_says() -> None:
    """Algorithm, size and TTL of session keys, and the windows of metrics, come from the keys."""
    settings = settings_of(
        distributed(
            inter_worker_key_generation_algorithm="HmacSHA1",
            inter_worker_key_size="256",
            inter_worker_key_ttl_ms="14",
        )
    )
    expected = SessionKeySettings(algorithm="HmacSHA1", size_bits=256, ttl_ms=14)
    assert settings.session_key == expected
    config = distributed(metrics_sample_window_ms="500", metrics_num_samples="7")
    assert config.sampling == Sampling(count=7, window_ms=500)


@cases("phase, enabled", ("disabled", False), ("preparing", False), ("enabled", True))
def test_sources_are_exactly_once_in_the_last_phase_only(phase: str, enabled: bool) -> None:
    """Before `enabled`, no task waits for a fencing round."""
    config = distributed(exactly_once_source_support=phase)
    assert settings_of(config).exactly_once_source is enabled


@cases("protocol", "eager", "compatible", "sessioned")
def test_membership_is_as_the_worker_says(protocol: str) -> None:
    """The group's client gets protocol, timeouts and back-off."""
    options = group_options(
        distributed(
            connect_protocol=protocol,
            session_timeout_ms="20001",
            heartbeat_interval_ms="3001",
            rebalance_timeout_ms="60001",
            request_timeout_ms="40001",
            retry_backoff_ms="101",
            scheduled_rebalance_max_delay_ms="13",
        ),
        "http://w:1/",
    )
    assert options.protocol is ProtocolVersion[protocol.upper()]
    membership = options.membership
    assert membership.session_timeout_ms == 20_001
    assert membership.heartbeat_interval_ms == 3_001
    assert membership.rebalance_timeout_ms == 60_001
    assert membership.request_timeout_ms == 40_001
    assert membership.retry_backoff_ms == 101
    assert options.scheduled_rebalance_max_delay_ms == 13


@cases("tracked", True, False)
def test_topics_are_tracked_unless_the_worker_says_no(tracked: bool) -> None:
    """Used topics are stored unless `topic.tracking.enable` is false."""
    statuses = StatusStore(MemoryLog())
    statuses.start()
    events = ChildEvents(lambda _: None, statuses, WorkerClock(), track_topics=tracked)
    events.topic_used(ConnectorTaskId("c", 0), "t")
    assert statuses.has_topic("c", "t") is tracked
    statuses.stop()


def test_an_agent_is_recognised_by_version_and_commit() -> None:
    """`version` is a Kafka release, which clients compare; `commit` has the product's version."""
    assert server_info(CONNECT_VERSION, "id").version == CONNECT_VERSION
    assert re.fullmatch(r"\d+\.\d+\.\d+", CONNECT_VERSION)
    assert server_info(CONNECT_VERSION, "id").commit == f"pyconnect-{version()}"
    assert version() != "unknown"
