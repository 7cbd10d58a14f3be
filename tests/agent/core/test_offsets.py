"""Offsets of connectors: bytes, topics, and the view and the requests of clients."""

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.core.errors import BadRequestError
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.offsets.connector_offsets import (
    ChangeStage,
    CommittedOffset,
    ConnectorOffset,
    StoredPairs,
    forgotten_pairs,
    in_hash_order,
    read_pairs,
    sink_offsets,
    sink_offsets_asked,
    source_entries_asked,
    source_offsets,
    success_text,
    timed_out_text,
)
from pyconnect_agent.core.offsets.sink import validate
from pyconnect_agent.core.offsets.source import (
    OffsetWriter,
    OwnTopic,
    offset_value,
    own_topic,
    parse_offset,
    partition_key,
)
from pyconnect_api import DataException, TopicPartition
from tests.support.agents.worker_properties import distributed
from tests.support.cases import cases


def test_offsets_have_apaches_bytes_and_types() -> None:
    """Offsets are JSON without blanks, in the plugin's order, of strings to primitive values."""
    assert partition_key("c", {"b": 1, "a": "x"}) == b'["c",{"b":1,"a":"x"}]'
    assert partition_key("c", None) == b'["c",null]'
    expected = b'{"position":12,"ok":true,"x":null}'
    assert offset_value({"position": 12, "ok": True, "x": None}) == expected
    assert offset_value(None) is None
    with pytest.raises(DataException, match="Offsets may only use String keys"):
        offset_value({1: "x"})  # type: ignore[dict-item]
    with pytest.raises(DataException, match="primitive types as values, but field f contains list"):
        partition_key("c", {"f": []})
    with pytest.raises(DataException, match="Offsets must be specified as a Map"):
        offset_value([1])  # type: ignore[arg-type]


def test_offsets_survive_bytes_and_equal_partitions_have_one() -> None:
    """Offsets of equal partitions replace each other, also during a failed flush."""
    writer = OffsetWriter("c")
    writer.put([({"b": 1, "a": "x"}, {"p": 1}), ({"b": 1.0, "a": "x"}, {"p": 7})])
    assert len(writer.begin_flush()) == 2
    writer.put([({"a": "x", "b": 1}, {"p": 2})])
    writer.cancel_flush()
    expected = {b'["c",{"a":"x","b":1}]': b'{"p":2}', b'["c",{"b":1.0,"a":"x"}]': b'{"p":7}'}
    assert writer.begin_flush() == expected
    assert parse_offset(b'{"position":12}') == {"position": 12}
    assert parse_offset(None) is None
    for broken in (b"{", b"[1]", b"12"):
        with pytest.raises(DataException):
            parse_offset(broken)


def test_a_flush_that_fails_keeps_newer_offsets() -> None:
    """The offsets of a failed flush are written again, except for partitions with newer ones."""
    writer = OffsetWriter("c")
    a: dict[str, object] = {"f": "a"}
    b: dict[str, object] = {"f": "b"}
    writer.put([(a, {"p": 1}), (b, {"p": 1})])
    assert len(writer.begin_flush()) == 2
    writer.put([(b, {"p": 2})])
    writer.cancel_flush()
    assert writer.begin_flush() == {b'["c",{"f":"a"}]': b'{"p":1}', b'["c",{"f":"b"}]': b'{"p":2}'}
    writer.end_flush()
    assert writer.begin_flush() == {}
    writer = OffsetWriter("c")
    writer.put([({"f": "a"}, {"p": object()})])
    with pytest.raises(DataException):
        writer.begin_flush()
    writer.put([({"f": "a"}, {"p": 1})])
    writer.cancel_flush()
    assert writer.begin_flush() == {b'["c",{"f":"a"}]': b'{"p":1}'}


ELSEWHERE = {"producer.override.bootstrap.servers": "other:9092"}


@cases("support", "disabled", "preparing")
def test_without_exactly_once_a_topic_has_to_be_named(support: str) -> None:
    """Without exactly-once, a producer on other brokers gives a connector no topic of its own."""
    config = distributed(exactly_once_source_support=support)
    assert own_topic(config, ELSEWHERE) is None
    own = OwnTopic(name="mine", is_workers_name=False)
    assert own_topic(config, {"offsets.storage.topic": "mine"}) == own


def test_the_workers_topic_is_on_its_brokers_or_in_its_file() -> None:
    """The worker's topic on the worker's brokers, in any order, is not a connector's own."""
    config = distributed(bootstrap_servers="a:1,b:2", exactly_once_source_support="enabled")
    named = {"offsets.storage.topic": config.offset_storage_topic}
    turned = {"producer.override.bootstrap.servers": "b:2, a:1"}
    assert own_topic(config, {}) is None
    assert own_topic(config, named) is None
    assert own_topic(config, {**named, **turned}) is None
    config = WorkerConfig.parse({"key.converter": "K", "value.converter": "V"})
    assert own_topic(config, {"offsets.storage.topic": "mine"}) is None


def test_other_brokers_may_have_another_topic_of_the_workers_name() -> None:
    """Exactly-once offsets are on the brokers of the records, which may be another cluster."""
    config = distributed(exactly_once_source_support="enabled")
    expected = OwnTopic(name=config.offset_storage_topic, is_workers_name=True)
    assert own_topic(config, ELSEWHERE) == expected
    config = distributed(
        exactly_once_source_support="enabled", producer_bootstrap_servers="other:9092"
    )
    assert own_topic(config, {}) == expected


def sink_pair(partition: Any, offset: Any, topic: Any = "t") -> Any:
    asked = None if offset is None else {"kafka_offset": offset}
    return {"kafka_topic": topic, "kafka_partition": partition}, asked


@cases("number", 3, "3", "+3", "003")
def test_numbers_of_a_sink_may_be_texts(number: object) -> None:
    """Numbers may be texts that Java's parser accepts."""
    assert sink_offsets_asked([sink_pair(number, number)]) == {TopicPartition("t", 3): 3}


def test_the_last_of_a_partitions_entries_counts() -> None:
    """Of several entries for one partition, in any notation, the last one counts."""
    more = ({"kafka_topic": "t", "kafka_partition": 0, "x": 1}, {"kafka_offset": 5, "y": 2})
    asked = sink_offsets_asked([sink_pair(0, 1), sink_pair("0", 2), sink_pair(1, None), more])
    assert asked == {TopicPartition("t", 0): 5, TopicPartition("t", 1): None}
    pairs = [({"a": 1, "b": 2}, {"o": 1}), ({"b": 2, "a": 1}, {"o": 2}), ({"a": True}, None)]
    entries = source_entries_asked("c", pairs)
    assert list(StoredPairs(entries.items())) == [({"a": 1, "b": 2}, {"o": 2}), ({"a": True}, None)]
    entries = source_entries_asked("c", [({"place": 1, "zone": 2}, {"o": 1})])
    assert list(entries) == [b'["c",{"zone":2,"place":1}]']


def test_a_topic_of_any_type_becomes_its_text() -> None:
    """Any JSON value becomes a topic's name by Java's text of it; negative offsets are allowed."""
    asked = sink_offsets_asked([sink_pair(-1, -5, topic=1.5), sink_pair(0, 1, topic={"a": [None]})])
    assert asked == {TopicPartition("1.5", -1): -5, TopicPartition("{a=[null]}", 0): 1}


NOT_INTEGER = (
    "Failed to parse the following Kafka {0} value in the provided offsets: '{2}'. {1} values for"
    " sink connectors need to be integers."
).format


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
    (sink_pair(2**31, 1), NOT_INTEGER("partition", "Partition", 2**31)),
    (sink_pair(0, 2**63), NOT_INTEGER("offset", "Offset", 2**63)),
    (sink_pair(0, 1e3), NOT_INTEGER("offset", "Offset", "1000.0")),
    (
        ({"kafka_topic": "t", "kafka_partition": 0}, {}),
        "The offset for a sink connector should either be null or contain the key 'kafka_offset'",
    ),
)
def test_a_sinks_entry_that_cannot_be_meant_is_a_bad_request(pair: Any, text: str) -> None:
    """The error has Kafka Connect's text."""
    with pytest.raises(BadRequestError) as refused:
        sink_offsets_asked([pair])
    assert str(refused.value) == text


@cases("value, found", ([1], "ARRAY"), ({"a": 1}, "MAP"), (2**63, "class java.math.BigInteger"))
def test_a_sources_values_are_primitive(value: object, found: str) -> None:
    """Lists, maps and larger integers are refused, in partitions and in offsets."""
    for pair in (({"f": value}, None), ({"p": 1}, {"f": value})):
        with pytest.raises(DataException, match=f"but field f contains {found}$"):
            source_entries_asked("c", [pair])


def test_a_source_gets_the_offsets_that_it_would_read_later() -> None:
    """A source reads altered offsets unchanged, except for infinity, which is a text."""
    pairs = [({"p": -math.inf, "q": 1}, {"o": 1.5, "n": None, "b": False}), (None, {"o": 2})]
    asked = StoredPairs(source_entries_asked("c", pairs).items())
    assert list(asked) == [({"p": "-Infinity", "q": 1}, pairs[0][1]), pairs[1]]


def test_the_text_of_a_request_is_read_as_pairs() -> None:
    """An absent member is None, and the name of the list may have escapes."""
    text = json.dumps({"offsets": [{"partition": {"a": 1}}, {"offset": {"b": 2}}]})
    for spelled in (text, text.replace("offsets", "\\u006fffsets")):
        assert list(read_pairs(spelled.encode())) == [({"a": 1}, None), (None, {"b": 2})]


def test_texts_name_remaining_steps_and_the_present_one() -> None:
    """An incomplete change has further steps in another system; a timeout names its stage."""
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


def entry(partition: object) -> bytes:
    return json_text.dumps(["c", partition])


def test_a_sinks_offsets_are_numbers_under_kafkas_names() -> None:
    """Partition and offset are numbers in an answer, even if a request may have texts."""
    (found,) = sink_offsets([CommittedOffset("t", 3, 1000)])
    assert found.to_json() == {
        "partition": {"kafka_topic": "t", "kafka_partition": 3},
        "offset": {"kafka_offset": 1000},
    }


def test_a_sources_offsets_are_its_own_objects() -> None:
    """An answer has the JSON that the connector stored."""
    offsets, unreadable = source_offsets(
        {entry({"file": "a"}): b'{"position":30,"part":1.5,"done":true}'}
    )
    assert offsets == (
        ConnectorOffset(
            partition={"file": "a"}, offset={"position": 30, "part": 1.5, "done": True}
        ),
    )
    assert unreadable == ()


def test_a_partition_has_its_newest_readable_offset() -> None:
    """Keys of equal partitions are one entry, and damaged values hide no other entry."""
    offsets, _ = source_offsets(
        {b'["c",{"a":1,"b":2}]': b'{"p":1}', b'["c",{"b":2,"a":1}]': b'{"p":2}'}
    )
    assert offsets == (ConnectorOffset(partition={"b": 2, "a": 1}, offset={"p": 2}),)
    assert source_offsets({entry({"file": "a"}): b"null"}) == ((), ())
    damaged, no_object = entry({"file": "a"}), entry({"file": "b"})
    offsets, unreadable = source_offsets(
        {damaged: b"{", no_object: b"3", entry({"file": "c"}): b'{"p":1}'}
    )
    assert [it.partition for it in offsets] == [{"file": "c"}]
    assert unreadable == (damaged, no_object)


LONGS = st.integers(-(2**63), 2**63 - 1)
VALUES = st.none() | st.booleans() | LONGS | st.text(max_size=3)
MAPS = st.none() | st.dictionaries(st.text(max_size=3), VALUES, max_size=3)


@given(st.lists(st.tuples(MAPS, MAPS), max_size=5))
def test_stored_pairs_are_a_sequence_of_pairs(pairs: list[tuple[object, object]]) -> None:
    """A connector may iterate, index, slice and count stored pairs."""
    stored = StoredPairs(
        (partition_key("c", partition), offset_value(offset))  # type: ignore[arg-type]
        for partition, offset in pairs
    )
    assert isinstance(stored, Sequence)
    assert len(stored) == len(pairs)
    assert list(stored) == pairs
    assert list(stored[1:]) == pairs[1:]
    assert [stored[-1 - index] for index in range(len(pairs))] == pairs[::-1]
    assert all(pair in stored for pair in pairs)


def test_a_partition_with_two_keys_is_forgotten_once() -> None:
    """Keys with other orders or blanks are one partition; other types are other partitions."""
    keys = [b'["c",{"a":1,"b":2}]', b'["c",{"b":2,"a":1}]', b'["c", {"a":1, "b":2}]', b'["c",null]']
    assert list(forgotten_pairs(keys)) == [({"a": 1, "b": 2}, None), (None, None)]
    other = [b'["c",{"a":1}]', b'["c",{"a":true}]', b'["c",{"a":"1"}]']
    assert len(forgotten_pairs(other)) == 3


PARTITIONS = st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 2))
OFFSETS = st.dictionaries(PARTITIONS, st.integers(0, 20))


@given(OFFSETS, OFFSETS, OFFSETS, st.sets(PARTITIONS))
def test_only_offered_offsets_are_committed(
    base: dict[TopicPartition, int],
    offered: dict[TopicPartition, int],
    provided: dict[TopicPartition, int],
    assignment: set[TopicPartition],
) -> None:
    """Each committed offset is the base, or a returned offset up to the offered one."""
    base = {p: o for p, o in base.items() if p in offered}
    result = validate(base=base, offered=offered, provided=provided, assignment=assignment)
    assert result.offsets.keys() == base.keys()
    for partition, offset in result.offsets.items():
        wanted = provided.get(partition)
        taken = wanted is not None and wanted <= offered[partition]
        assert offset == (wanted if taken else base[partition])
    refused = {partition for partition, _, _ in result.refused}
    for partition in provided.keys() - base.keys():
        assert (partition in refused) is (partition not in assignment)


@cases(
    "names, expected",
    (["place", "zone"], ["zone", "place"]),
    (["database", "server"], ["server", "database"]),
    (["b", "a"], ["a", "b"]),
    (["BB", "C", "Aa"], ["BB", "Aa", "C"]),
    (["é", "日本", "\N{GRINNING FACE}", "x"], ["\N{GRINNING FACE}", "x", "é", "日本"]),
    (
        [f"n{number}" for number in range(13)],
        [*(f"n{number}" for number in range(11)), "n12", "n11"],
    ),
    ([], []),
)
def test_entries_are_in_the_order_of_a_hash_map(names: list[str], expected: list[str]) -> None:
    """Names are in order of hash and table size, and within a bucket in order of insertion."""
    assert list(in_hash_order(dict.fromkeys(names))) == expected
