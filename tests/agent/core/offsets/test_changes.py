"""Requests for new offsets, in Kafka Connect's lenient reading of JSON."""

import json
import math
from typing import Any

import pytest

from pyconnect_agent.core.errors import BadRequestError
from pyconnect_agent.core.offsets.changes import (
    ChangeStage,
    read_pairs,
    sink_offsets_asked,
    source_entries_asked,
    success_text,
    timed_out_text,
)
from pyconnect_agent.core.offsets.connector_offsets import StoredPairs
from pyconnect_api import DataException, TopicPartition
from tests.support.cases import cases


def sink_pair(partition: Any, offset: Any, topic: Any = "t") -> Any:
    asked = None if offset is None else {"kafka_offset": offset}
    return {"kafka_topic": topic, "kafka_partition": partition}, asked


@cases("number", 3, "3", "+3", "003")
def test_numbers_of_a_sink_may_be_texts(number: object) -> None:
    """As Java parses them."""
    assert sink_offsets_asked([sink_pair(number, number)]) == {TopicPartition("t", 3): 3}


def test_the_last_of_a_partitions_entries_counts() -> None:
    """However it is spelled; members of new partitions are in the order of Java's maps."""
    more = ({"kafka_topic": "t", "kafka_partition": 0, "x": 1}, {"kafka_offset": 5, "y": 2})
    asked = sink_offsets_asked([sink_pair(0, 1), sink_pair("0", 2), sink_pair(1, None), more])
    assert asked == {TopicPartition("t", 0): 5, TopicPartition("t", 1): None}
    pairs = [({"a": 1, "b": 2}, {"o": 1}), ({"b": 2, "a": 1}, {"o": 2}), ({"a": True}, None)]
    entries = source_entries_asked("c", pairs)
    assert list(StoredPairs(entries.items())) == [({"a": 1, "b": 2}, {"o": 2}), ({"a": True}, None)]
    entries = source_entries_asked("c", [({"place": 1, "zone": 2}, {"o": 1})])
    assert list(entries) == [b'["c",{"zone":2,"place":1}]']


def test_a_topic_of_any_type_becomes_its_text() -> None:
    """Negative positions are not refused here."""
    asked = sink_offsets_asked([sink_pair(-1, -5, topic=1.5), sink_pair(0, 1, topic={"a": [None]})])
    assert asked == {TopicPartition("1.5", -1): -5, TopicPartition("{a=[null]}", 0): 1}


@cases(
    "pair, text",
    ((None, None), "The partition for a sink connector offset cannot be null or missing"),
    (
        ({"kafka_topic": "t"}, None),
        (
            "The partition for a sink connector offset must contain the keys 'kafka_topic' and"
            " 'kafka_partition'"
        ),
    ),
    (sink_pair(0, 1, None), "Kafka topic names must be valid strings and may not be null"),
    (sink_pair(None, 1), "Kafka partitions must be valid numbers and may not be null"),
    (
        sink_pair(2**31, 1),
        (
            "Failed to parse the following Kafka partition value in the provided offsets:"
            " '2147483648'. Partition values for sink connectors need to be integers."
        ),
    ),
    (
        sink_pair(0, 2**63),
        (
            "Failed to parse the following Kafka offset value in the provided offsets:"
            " '9223372036854775808'. Offset values for sink connectors need to be integers."
        ),
    ),
    (
        sink_pair(0, 1e3),
        (
            "Failed to parse the following Kafka offset value in the provided offsets:"
            " '1000.0'. Offset values for sink connectors need to be integers."
        ),
    ),
    (
        ({"kafka_topic": "t", "kafka_partition": 0}, {}),
        ("The offset for a sink connector should either be null or contain the key 'kafka_offset'"),
    ),
)
def test_a_sinks_entry_that_cannot_be_meant_is_a_bad_request(pair: Any, text: str) -> None:
    """In Kafka Connect's words."""
    with pytest.raises(BadRequestError) as refused:
        sink_offsets_asked([pair])
    assert str(refused.value) == text


@cases("value, found", ([1], "ARRAY"), ({"a": 1}, "MAP"), (2**63, "class java.math.BigInteger"))
def test_a_sources_values_are_primitive(value: object, found: str) -> None:
    """In partitions and offsets alike."""
    for pair in (({"f": value}, None), ({"p": 1}, {"f": value})):
        with pytest.raises(DataException, match=f"but field f contains {found}$"):
            source_entries_asked("c", [pair])


def test_a_source_gets_the_offsets_that_it_would_read_later() -> None:
    """Infinity is written as a text; nothing else changes, and null partitions are passed on."""
    pairs = [({"p": -math.inf, "q": 1}, {"o": 1.5, "n": None, "b": False}), (None, {"o": 2})]
    asked = StoredPairs(source_entries_asked("c", pairs).items())
    assert list(asked) == [({"p": "-Infinity", "q": 1}, pairs[0][1]), pairs[1]]


def test_the_text_of_a_request_is_read_as_pairs() -> None:
    """An absent member is None; the name of the list may be spelled as JSON allows."""
    text = json.dumps({"offsets": [{"partition": {"a": 1}}, {"offset": {"b": 2}}]})
    for spelled in (text, text.replace("offsets", "\\u006fffsets")):
        assert list(read_pairs(spelled.encode())) == [({"a": 1}, None), (None, {"b": 2})]


def test_texts_name_remaining_steps_and_the_present_one() -> None:
    """A connector that cannot tell is assumed to have offsets elsewhere."""
    expected = "The offsets for this connector have been reset successfully"
    assert success_text(is_reset=True, complete=True) == expected
    assert success_text(is_reset=False, complete=False) == (
        "The Connect framework-managed offsets for this connector have been altered successfully."
        " However, if this connector manages offsets externally, they will need to be manually"
        " altered in the system that the connector uses."
    )
    texts = {timed_out_text("c", k, stage) for k in ("source", "sink") for stage in ChangeStage}
    assert len(texts) == 6
    assert all(text.endswith("c") for text in texts)
