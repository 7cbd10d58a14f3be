"""Source offsets: bytes, checks, flushes."""

import pytest

from pyconnect_agent.core.offsets.source import (
    OffsetWriter,
    offset_value,
    parse_offset,
    partition_key,
)
from pyconnect_api import DataException


def test_offsets_have_apaches_bytes_and_types() -> None:
    """JSON without blanks, members in the plugin's order; only maps of strings to primitives."""
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
    """In any order of members, in a flush and over a failed one; only objects are offsets."""
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
    """Cancelled, the rest is written again; without bytes there is nothing to cancel."""
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
