"""The expectations of the REST tests are facts about Apache's worker, and hold for ours.

The list asked here of a real Java worker is the one the application is tested with over a fake
herder; the life of a connector is told by a Java worker and by an agent, and compared.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.java.rest_life import Life, Told
from tests.java.rest_stories import STORIES, Story
from tests.support.kafka import SharedAgentWorker, SharedJavaWorker
from tests.support.names import unique_name
from tests.support.rest_client import call_url
from tests.support.rest_scenarios import SCENARIOS, Scenario

pytestmark = pytest.mark.java


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_expected_answers_are_those_of_apaches_worker(
    scenario: Scenario, java_worker: SharedJavaWorker
) -> None:
    """What the tests of the REST layer expect is what a real Java worker answers."""
    answer = call_url(
        java_worker.url, scenario.method, scenario.target, scenario.body, scenario.headers
    )
    assert scenario.differences(answer) == []


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_an_agent_answers_as_expected(scenario: Scenario, agent_worker: SharedAgentWorker) -> None:
    """A complete agent answers the same list."""
    answer = call_url(
        agent_worker.url, scenario.method, scenario.target, scenario.body, scenario.headers
    )
    assert scenario.differences(answer) == []


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_each_story_is_the_same_on_both(
    story: Story, java_worker: SharedJavaWorker, agent_worker: SharedAgentWorker, tmp_path: Path
) -> None:
    """Every step of it is answered alike, but for addresses and the like."""
    on_java, on_agent = (
        Life(worker.url, unique_name("life"), str(tmp_path))
        for worker in (java_worker, agent_worker)
    )
    with ThreadPoolExecutor(2) as tellers:
        list(tellers.map(story, (on_java, on_agent)))
    assert differences(on_java.told, on_agent.told) == []


def differences(on_java: list[Told], on_agent: list[Told]) -> list[tuple[str, str]]:
    """Return the steps that were answered differently."""
    return [
        (str(java), str(agent))
        for java, agent in zip(on_java, on_agent, strict=True)
        if java != agent
    ]
