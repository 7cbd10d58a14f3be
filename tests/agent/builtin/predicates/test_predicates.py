"""Kafka's predicates and the records for which they are true."""

import pytest

from pyconnect_api import INT32_SCHEMA, ConfigException, Header
from tests.agent.builtin.transforms.transformations import predicate, source_record
from tests.support.cases import cases


def test_predicates_look_at_header_value_or_topic() -> None:
    """One header suffices, a tombstone has no value, and the pattern matches the whole topic."""
    made = predicate("HasHeaderKey", name="h")
    headers = [Header("a", None, 1), Header("h", None, None)]
    assert made.test(source_record(1, headers=headers)) is True
    assert made.test(source_record(1, headers=headers[:1])) is False
    assert made.test(source_record(1)) is False
    made = predicate("RecordIsTombstone")
    assert made.test(source_record(None)) is True
    assert made.test(source_record(None, INT32_SCHEMA)) is True
    assert made.test(source_record("")) is False
    made = predicate("TopicNameMatches", pattern=r"orders-\p{Digit}+")
    assert made.test(source_record(1, topic="orders-12")) is True
    assert made.test(source_record(1, topic="my-orders-12")) is False
    assert made.test(source_record(1, topic=None)) is False


@cases(
    "name, options, message",
    ("HasHeaderKey", {}, 'Missing required configuration "name"'),
    ("HasHeaderKey", {"name": ""}, "String must be non-empty"),
    ("TopicNameMatches", {"pattern": ""}, "String must be non-empty"),
    ("TopicNameMatches", {"pattern": "("}, "Invalid regex: Unclosed group"),
)
def test_wrong_options_are_refused(name: str, options: dict[str, str], message: str) -> None:
    """`configure` refuses wrong options with Kafka's texts."""
    with pytest.raises(ConfigException, match=message):
        predicate(name, **options)
