"""Very many offsets without very many objects."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.offsets.connector_offsets import StoredPairs, forgotten_pairs
from pyconnect_agent.core.offsets.source import offset_value, partition_key

LONGS = st.integers(-(2**63), 2**63 - 1)
VALUES = st.none() | st.booleans() | LONGS | st.text(max_size=3)
MAPS = st.none() | st.dictionaries(st.text(max_size=3), VALUES, max_size=3)


@given(st.lists(st.tuples(MAPS, MAPS), max_size=5))
def test_stored_pairs_are_a_sequence_of_pairs(pairs: list[tuple[object, object]]) -> None:
    """A connector may go through them, index and slice them, and ask how many there are."""
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
    """Other orders and blanks are the same partition; other types are not."""
    keys = [b'["c",{"a":1,"b":2}]', b'["c",{"b":2,"a":1}]', b'["c", {"a":1, "b":2}]', b'["c",null]']
    assert list(forgotten_pairs(keys)) == [({"a": 1, "b": 2}, None), (None, None)]
    other = [b'["c",{"a":1}]', b'["c",{"a":true}]', b'["c",{"a":"1"}]']
    assert len(forgotten_pairs(other)) == 3
