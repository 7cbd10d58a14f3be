"""Requests between workers over a fake herder."""

import pytest

from pyconnect_agent.core.herder import requests
from pyconnect_agent.core.herder.session_keys import signature_headers
from pyconnect_agent.core.internal_topics.config_snapshot import SessionKey
from tests.support.agents.rest_client import call_app
from tests.support.cases import cases
from tests.support.fakes.fake_herder import FakeHerder
from tests.support.fakes.rest_services import application

KEY = SessionKey(key=bytes(range(32)), algorithm="HmacSHA256", created_ms=0)


@pytest.fixture
def herder() -> FakeHerder:
    herder = FakeHerder()
    herder.session_key = KEY
    herder.configs["c"] = {"connector.class": "FileStreamSource"}
    return herder


def test_the_body_that_was_signed_reaches_the_herder(herder: FakeHerder) -> None:
    """White space that JSON ignores breaks the signature; the answer is empty."""
    headers = signature_headers(b"[]", session_key=KEY, algorithm="HmacSHA256")
    answer = call_app(application(herder), "POST", "/connectors/c/tasks", b"[ ]", headers)
    assert answer.status == 403
    assert herder.submitted == []
    body = b'[ {"a":1}, {"b":null} ]'
    headers = signature_headers(body, session_key=KEY, algorithm="HmacSHA256")
    answer = call_app(application(herder), "POST", "/connectors/c/tasks", body, headers)
    assert (answer.status, answer.body) == (204, b"")
    expected = [requests.SubmitTaskConfigs(connector="c", configs=({"a": "1"}, {"b": None}))]
    assert herder.submitted == expected


def test_signatures_are_tested_before_existence(herder: FakeHerder) -> None:
    """The MAC of a fencing request is that of the empty body; unsigned requests learn nothing."""
    headers = signature_headers(b"", session_key=KEY, algorithm="HmacSHA256")
    answer = call_app(application(herder), "PUT", "/connectors/c/fence", None, headers)
    assert answer.status == 204
    assert herder.submitted == [requests.FenceZombies(connector="c")]
    for connector in ("c", "absent"):
        assert call_app(application(herder), "PUT", f"/connectors/{connector}/fence").status == 400


def test_without_a_session_key_the_worker_is_not_ready(herder: FakeHerder) -> None:
    """A worker that has read no key yet asks for patience."""
    herder.session_key = None
    headers = signature_headers(b"[]", session_key=KEY, algorithm="HmacSHA256")
    answer = call_app(application(herder), "POST", "/connectors/c/tasks", b"[]", headers)
    assert (answer.status, answer.message) == (
        503,
        (
            "This worker is still starting up and has not been able to read a session key from the "
            "config topic yet"
        ),
    )


@cases("body", b"null", b"[null]", b'[{"a":"b"},null]')
def test_null_task_sets_are_refused(herder: FakeHerder, body: bytes) -> None:
    """A signed null is still no task set, and changes nothing."""
    headers = signature_headers(body, session_key=KEY, algorithm="HmacSHA256")
    answer = call_app(application(herder), "POST", "/connectors/c/tasks", body, headers)
    assert answer.status == 500
    assert herder.submitted == []


def test_groups_without_sessions_need_no_signature(herder: FakeHerder) -> None:
    """Under the older protocols the herder lets everything pass."""
    herder.signed_requests = False
    assert call_app(application(herder), "POST", "/connectors/c/tasks", "[]").status == 204
