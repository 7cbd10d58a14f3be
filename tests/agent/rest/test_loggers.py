"""`/admin/loggers` with a fake herder."""

import logging

import pytest

from pyconnect_agent.rest.response_headers import CrossOriginPolicy, WebPages
from tests.support.agents.rest_client import Answer, call_app
from tests.support.fakes.fake_herder import FakeHerder
from tests.support.fakes.rest_services import application


def put(herder: FakeHerder, target: str, level: str) -> Answer:
    return call_app(
        application(herder),
        "PUT",
        f"/admin/loggers/{target}",
        f'{{"level":"{level}"}}',
        {"Content-Type": "application/json"},
    )


def test_a_change_answers_the_changed_loggers_and_shows_in_the_list() -> None:
    """PUT lists the changed loggers; GET shows level and time, null without a change."""
    herder = FakeHerder()
    assert put(herder, "a.b", "debug").text == '["a.b"]'
    assert put(herder, "a.b", "DEBUG").text == "[]"
    listed = call_app(application(herder), "GET", "/admin/loggers")
    assert listed.text == (
        '{"a.b":{"level":"DEBUG","last_modified":1700000000000},'
        '"root":{"level":"INFO","last_modified":null}}'
    )
    one = call_app(application(herder), "GET", "/admin/loggers/ROOT")
    assert one.text == '{"level":"INFO","last_modified":null}'


def test_scopes_of_a_change(caplog: pytest.LogCaptureFixture) -> None:
    """Readers apply a change of the cluster; an unknown scope means this worker, with a warning."""
    herder = FakeHerder()
    answer = put(herder, "a?scope=CLUSTER", "trace")
    assert (answer.status, answer.body) == (204, b"")
    assert herder.cluster_levels == [("a", "TRACE")]
    assert list(herder.loggers()) == ["root"]
    herder = FakeHerder()
    assert put(herder, "a?scope=cluster&scope=worker", "warn").status == 204
    assert put(herder, "a?scope=worker&scope=cluster", "warn").status == 200
    herder = FakeHerder()
    with caplog.at_level(logging.WARNING):
        assert put(herder, "a?scope=galaxy", "ERROR").text == '["a"]'
    assert [record.requested_scope for record in caplog.records] == ["galaxy"]  # type: ignore[attr-defined]


def test_a_refused_level_creates_no_logger() -> None:
    """A failed PUT leaves the list unchanged."""
    herder = FakeHerder()
    assert put(herder, "a", "nope").status == 404
    assert list(herder.loggers()) == ["root"]


PAGES = {
    "its own page": ("worker:8083", "http://worker:8083", 200),
    "its own page by address": ("10.0.0.7:8083", "http://10.0.0.7:8083", 200),
    "a page of this machine": ("localhost:8083", "http://LOCALHOST:8083", 200),
    "a foreign page": ("worker:8083", "https://evil.example", 403),
    "a page of another port": ("worker:8083", "http://worker:9000", 403),
    "a foreign page whose name leads here": ("evil.example:8083", "http://evil.example:8083", 403),
    "a page without an origin": ("worker:8083", "null", 403),
    "no text of an origin": ("worker:8083", "http://[", 403),
    "an empty origin": ("worker:8083", "", 403),
    "a permitted page": ("worker:8083", "https://ui.example", 200),
}


@pytest.mark.parametrize("page", PAGES)
def test_a_foreign_web_page_changes_no_level(page: str) -> None:
    """`access.control.allow.origin` permits pages, and other clients send no origin."""
    host, origin, status = PAGES[page]
    herder = FakeHerder()
    policy = CrossOriginPolicy.parse("https://ui.example", "")
    app = application(herder, web_pages=WebPages(names=frozenset({"worker"}), policy=policy))
    headers = {"Content-Type": "application/json", "Host": host, "Origin": origin}
    answer = call_app(app, "PUT", "/admin/loggers/a", '{"level":"DEBUG"}', headers)
    assert (answer.status, "a" in herder.loggers()) == (status, status == 200)
    assert call_app(app, "GET", "/admin/loggers", headers=headers).status == 200
    # Apache's clients reach the worker under any name.
    headers = {"Content-Type": "application/json", "Host": "alias.example:8083"}
    assert call_app(app, "PUT", "/admin/loggers/b", '{"level":"DEBUG"}', headers).status == 200
