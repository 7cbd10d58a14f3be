"""Records of an Apache worker, and our stores on its topics."""

from collections.abc import Iterator

import pytest

from pyconnect_agent.core.clients.configs import InternalTopic
from pyconnect_agent.stores.config import ConfigStore
from pyconnect_agent.stores.offset import KafkaOffsetStore
from pyconnect_agent.stores.status import StatusStore
from tests.java.internal_topics.java_scenario import JavaScenario, run_scenario
from tests.support.agents.rest_client import WorkerRest
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker, SharedJavaWorker


@pytest.fixture(scope="session")
def scenario(
    java_worker: SharedJavaWorker,
    kafka_broker: SharedBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> JavaScenario:
    """One for all tests of this directory: the worker takes its time."""
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
