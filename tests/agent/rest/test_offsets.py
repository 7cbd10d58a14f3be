"""`/connectors/{connector}/offsets` over a fake herder."""

from __future__ import annotations

from pyconnect_agent.core.connector_offsets import ConnectorOffset
from pyconnect_agent.core.errors import InternalError
from tests.support.fake_herder import FakeHerder
from tests.support.rest_client import call_app
from tests.support.rest_services import application

CONFIG = {"connector.class": "FileStreamSource", "topic": "t"}


def test_offsets_are_listed_as_pairs_of_objects() -> None:
    """Partition and offset stand beside each other."""
    herder = FakeHerder()
    herder.configs["c"] = CONFIG
    answer = call_app(application(herder), "GET", "/connectors/c/offsets")
    assert answer.status == 200
    assert answer.text == '{"offsets":[{"partition":{"filename":"a"},"offset":{"position":30}}]}'


def test_an_unknown_connector_has_no_offsets() -> None:
    """Although offsets of a deleted connector may still be stored."""
    answer = call_app(application(FakeHerder()), "GET", "/connectors/c/offsets")
    assert (answer.status, answer.message) == (404, "Connector c not found")


def test_offsets_that_cannot_be_read_are_an_internal_error() -> None:
    """The text is the herder's."""
    herder = FakeHerder()
    herder.configs["c"] = CONFIG
    text = "Failed to retrieve offsets for source connector c"
    herder.failures[ConnectorOffset] = InternalError(text)
    answer = call_app(application(herder), "GET", "/connectors/c/offsets")
    assert (answer.status, answer.message) == (500, text)
