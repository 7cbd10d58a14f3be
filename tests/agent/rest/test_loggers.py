"""`/admin/loggers` over a fake herder."""

from __future__ import annotations

import logging

import pytest

from tests.support.fake_herder import FakeHerder
from tests.support.rest_client import Answer, call_app
from tests.support.rest_services import application


def put(herder: FakeHerder, target: str, level: str) -> Answer:
    return call_app(
        application(herder),
        "PUT",
        f"/admin/loggers/{target}",
        f'{{"level":"{level}"}}',
        {"Content-Type": "application/json"},
    )


def test_a_change_answers_the_changed_loggers_and_shows_in_the_list() -> None:
    """PUT lists what changed, GET shows level and time; null means never changed."""
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


def test_cluster_scope_is_handed_on_and_answers_nothing() -> None:
    """Scope ignores case; the cluster's change is not applied here but by who reads it."""
    herder = FakeHerder()
    answer = put(herder, "a?scope=CLUSTER", "trace")
    assert (answer.status, answer.body) == (204, b"")
    assert herder.cluster_levels == [("a", "TRACE")]
    assert list(herder.loggers()) == ["root"]


def test_of_several_scopes_the_first_counts() -> None:
    """As JAX-RS takes query parameters."""
    herder = FakeHerder()
    assert put(herder, "a?scope=cluster&scope=worker", "warn").status == 204
    assert put(herder, "a?scope=worker&scope=cluster", "warn").status == 200


def test_an_unknown_scope_means_this_worker(caplog: pytest.LogCaptureFixture) -> None:
    """It is answered like `worker`, with a warning in the log."""
    herder = FakeHerder()
    with caplog.at_level(logging.WARNING):
        assert put(herder, "a?scope=galaxy", "ERROR").text == '["a"]'
    assert [record.requested_scope for record in caplog.records] == ["galaxy"]  # type: ignore[attr-defined]


def test_a_refused_level_creates_no_logger() -> None:
    """A failed PUT leaves the list as it was."""
    herder = FakeHerder()
    assert put(herder, "a", "nope").status == 404
    assert list(herder.loggers()) == ["root"]
