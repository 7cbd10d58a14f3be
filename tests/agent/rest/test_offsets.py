"""`/connectors/{connector}/offsets` over a fake herder."""

from pyconnect_agent.core.errors import InternalError
from pyconnect_agent.core.offsets.connector_offsets import ConnectorOffset
from tests.support.agents.rest_client import call_app
from tests.support.fakes.fake_herder import FakeHerder
from tests.support.fakes.rest_services import application

MANY = tuple(
    ConnectorOffset(partition={"filename": f"/data/{number}"}, offset={"position": number})
    for number in range(10_000)
)
CONFIG = {"connector.class": "FileStreamSource", "topic": "t"}


def test_offsets_are_listed_as_pairs_of_objects() -> None:
    """Partition and offset stand beside each other."""
    herder = FakeHerder()
    herder.configs["c"] = CONFIG
    answer = call_app(application(herder), "GET", "/connectors/c/offsets")
    assert answer.status == 200
    assert answer.text == '{"offsets":[{"partition":{"filename":"a"},"offset":{"position":30}}]}'


def test_very_many_offsets_are_one_document() -> None:
    """GET sends it in parts; HEAD knows its length."""
    herder = FakeHerder()
    herder.configs["c"] = CONFIG
    herder.offsets = MANY
    answer = call_app(application(herder), "GET", "/connectors/c/offsets")
    assert answer.json() == {"offsets": [offset.to_json() for offset in MANY]}
    assert "content-length" not in answer.headers
    assert answer.headers["content-type"] == "application/json"
    herder = FakeHerder()
    herder.configs["c"] = CONFIG
    herder.offsets = MANY
    sent = call_app(application(herder), "GET", "/connectors/c/offsets")
    answer = call_app(application(herder), "HEAD", "/connectors/c/offsets")
    assert answer.text == ""
    assert answer.headers["content-length"] == str(len(sent.text))


def test_unknown_and_unreadable_offsets_are_errors() -> None:
    """Offsets of a deleted connector may still be stored; the text of a failure is the herder's."""
    answer = call_app(application(FakeHerder()), "GET", "/connectors/c/offsets")
    assert (answer.status, answer.message) == (404, "Connector c not found")
    herder = FakeHerder()
    herder.configs["c"] = CONFIG
    text = "Failed to retrieve offsets for source connector c"
    herder.failures[ConnectorOffset] = InternalError(text)
    answer = call_app(application(herder), "GET", "/connectors/c/offsets")
    assert (answer.status, answer.message) == (500, text)
