"""Offsets that a sink may commit."""

from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.offsets.sink import validate
from pyconnect_api import TopicPartition

PARTITIONS = st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 2))
OFFSETS = st.dictionaries(PARTITIONS, st.integers(0, 20))


@given(OFFSETS, OFFSETS, OFFSETS, st.sets(PARTITIONS))
def test_only_offered_offsets_are_committed(
    base: dict[TopicPartition, int],
    offered: dict[TopicPartition, int],
    provided: dict[TopicPartition, int],
    assignment: set[TopicPartition],
) -> None:
    """Every result is the base or a returned offset up to the offered one."""
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
