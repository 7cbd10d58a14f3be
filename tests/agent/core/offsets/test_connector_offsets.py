"""Offsets of connectors as clients see them."""

from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.offsets.connector_offsets import (
    CommittedOffset,
    ConnectorOffset,
    sink_offsets,
    source_offsets,
)


def entry(partition: object) -> bytes:
    return json_text.dumps(["c", partition])


def test_a_sinks_offsets_are_numbers_under_kafkas_names() -> None:
    """Partition and offset are told as numbers, whatever a request may use."""
    (found,) = sink_offsets([CommittedOffset("t", 3, 1000)])
    assert found.to_json() == {
        "partition": {"kafka_topic": "t", "kafka_partition": 3},
        "offset": {"kafka_offset": 1000},
    }


def test_a_sources_offsets_are_its_own_objects() -> None:
    """The JSON that the connector stored, with the types that it would read."""
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
    """Java may order members differently; null is no offset, damaged values hide no other."""
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
