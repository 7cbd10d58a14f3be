"""The expectations of the REST tests are facts about Apache's worker, and hold for ours.

The list asked here of a real Java worker is the one the application is tested with over a fake
herder; the life of a connector is told by a Java worker and by an agent, and compared.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyconnect_agent.core.apache_release import CONNECT_VERSION, RELEASE_4_4
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.conftest import Workers
from tests.java.rest_life import Life, Told
from tests.java.rest_stories import STORIES, Story
from tests.support.agents.rest_client import call_url
from tests.support.names import unique_name
from tests.support.plugins.java_plugin_jars import file_connectors
from tests.support.rest_scenarios import SCENARIOS, Scenario
from tests.support.servers.kafka import Servers, SharedBroker, SharedJavaWorker

pytestmark = pytest.mark.java


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_expected_answers_are_those_of_apaches_worker(scenario: Scenario, workers: Workers) -> None:
    """The answers that tests of the REST layer expect are those of a real Java worker."""
    answer = call_url(
        workers.java_url, scenario.method, scenario.target, scenario.body, scenario.headers
    )
    assert scenario.of(workers.release).differences(answer) == []


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_an_agent_answers_as_expected(scenario: Scenario, workers: Workers) -> None:
    """A complete agent answers the same list."""
    answer = call_url(
        workers.agent_url, scenario.method, scenario.target, scenario.body, scenario.headers
    )
    assert scenario.of(workers.release).differences(answer) == []


@pytest.mark.parametrize(
    "workers",
    [CONNECT_VERSION, pytest.param(RELEASE_4_4, marks=pytest.mark.long(only=True))],
    indirect=True,
)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_each_story_is_the_same_on_both(story: Story, workers: Workers, tmp_path: Path) -> None:
    """Every step of it is answered alike, but for addresses and the like."""
    assert differences(*told_by(story, [workers.java_url, workers.agent_url], tmp_path)) == []


@pytest.fixture(scope="module")
def url_of_agent_with_jar(
    kafka_broker: SharedBroker,
    kafka_runtime: KafkaRuntime,
    module_servers: Servers,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """The address of an agent that runs FileStream connectors out of Apache's jar."""
    plugin_path = tmp_path_factory.mktemp("plugins")
    file_connectors(kafka_runtime, plugin_path)
    properties = {"plugin.path": str(plugin_path), "agent.restart.policy": "never"}
    return module_servers.agent(
        kafka_broker.bootstrap_servers, unique_name("agents"), properties=properties
    ).url


@pytest.mark.long(only=True)
@pytest.mark.timeout(850)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_each_story_is_the_same_with_apaches_jar(
    story: Story, java_worker: SharedJavaWorker, url_of_agent_with_jar: str, tmp_path: Path
) -> None:
    """Also when each connector and task of the agent is a Java process."""
    assert differences(*told_by(story, [java_worker.url, url_of_agent_with_jar], tmp_path)) == []


def told_by(story: Story, urls: list[str], directory: Path) -> list[list[Told]]:
    """Have each worker tell the story, all at once."""
    lives = [Life(url, unique_name("life"), str(directory)) for url in urls]
    with ThreadPoolExecutor(len(lives)) as tellers:
        list(tellers.map(story, lives))
    return [life.told for life in lives]


def differences(on_java: list[Told], on_agent: list[Told]) -> list[tuple[str, str]]:
    """Return the steps that were answered differently."""
    return [
        (str(java), str(agent))
        for java, agent in zip(on_java, on_agent, strict=True)
        if java != agent
    ]
