"""Answers of Apache's worker, compared with the application's over a fake herder."""

import pytest

from pyconnect_agent.core.internal_topics.config_snapshot import SessionKey
from tests.support.agents.rest_client import call_app
from tests.support.cases import cases
from tests.support.fakes.fake_herder import FakeHerder
from tests.support.fakes.rest_services import application
from tests.support.rest_scenarios import SCENARIOS, Scenario


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_answers_are_those_of_apaches_worker(scenario: Scenario) -> None:
    """Requests that need no cluster have Apache's status, text and headers."""
    herder = FakeHerder()
    herder.session_key = SessionKey(key=bytes(32), algorithm="HmacSHA256", created_ms=0)
    answer = call_app(
        application(herder), scenario.method, scenario.target, scenario.body, scenario.headers
    )
    assert scenario.differences(answer) == []


@cases(
    "target, content_type, message",
    ("/connectors/a%2Fb", "text/plain", "The path of the request must not contain %2F"),
    ("/connectors", "nonsense", "Content-Type is not a media type: nonsense"),
)
def test_a_request_that_is_refused_before_routing_gets_the_usual_body(
    target: str, content_type: str, message: str
) -> None:
    """Apache's worker answers such a request with an HTML page, and ours with the usual body."""
    answer = call_app(
        application(FakeHerder()), "GET", target, None, {"Content-Type": content_type}
    )
    assert answer.status == 400
    assert answer.json() == {"error_code": 400, "message": message}
