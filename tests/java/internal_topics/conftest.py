"""Records of an Apache worker, and our stores on its topics."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyconnect_agent.core.clients.configs import InternalTopic
from pyconnect_agent.stores.config import ConfigStore
from pyconnect_agent.stores.offset import KafkaOffsetStore
from pyconnect_agent.stores.status import StatusStore
from pyconnect_agent.stores.topics import config_log, offset_log, status_log
from tests.java.internal_topics.java_scenario import JavaScenario, run_scenario
from tests.support.agents.worker_rest import WorkerRest
from tests.support.fakes.stores import store_topic
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker, SharedJavaWorker


@pytest.fixture(scope="session")
def scenario(
    java_worker: SharedJavaWorker,
    kafka_broker: SharedBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> JavaScenario:
    """One for all tests of this directory: the worker takes its time."""
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
    done = JavaScenario(
        WorkerRest(java_worker),
        topics,
        *(unique_name(kind) for kind in ("source", "sink-1", "paused", "stopped", "deleted")),
    )
    run_scenario(done, directory)
    return done


@pytest.fixture
def configs(scenario: JavaScenario) -> Iterator[ConfigStore]:
    store = ConfigStore(config_log(scenario.topics["configs"]))
    store.start(lambda snapshot, changes: None)
    yield store
    store.stop()


@pytest.fixture
def statuses(scenario: JavaScenario) -> Iterator[StatusStore]:
    store = StatusStore(status_log(scenario.topics["status"]))
    store.start()
    yield store
    store.stop()


@pytest.fixture
def offsets(scenario: JavaScenario) -> Iterator[KafkaOffsetStore]:
    store = KafkaOffsetStore(offset_log(scenario.topics["offsets"]))
    store.start()
    yield store
    store.stop()
