"""The expectations of the REST tests are facts about Apache's worker, and hold for ours.

The list asked here of a real Java worker is the one the application is tested with over a fake
herder; requests that need connectors are compared answer by answer.
"""

from __future__ import annotations

import pytest

from tests.support.kafka import SharedJavaWorker
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
