"""Acknowledged prefixes of source partitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.offsets.submitted import (
    CommittableOffsets,
    SubmittedRecord,
    SubmittedRecords,
    canonical_partition,
)
from tests.support.cases import cases


def committed(result: CommittableOffsets) -> list[tuple[object, object]]:
    return list(result.offsets.values())


@pytest.fixture
def submitted() -> SubmittedRecords:
    return SubmittedRecords()


def test_an_offset_waits_for_all_earlier_ones_of_its_partition(submitted: SubmittedRecords) -> None:
    """A later acknowledgement alone makes no offset committable."""
    first, second, third = (submitted.submit({"p": "a"}, {"o": n}) for n in range(3))
    second.ack()
    assert committed(submitted.committable_offsets()) == []
    first.ack()
    result = submitted.committable_offsets()
    assert committed(result) == [({"p": "a"}, {"o": 1})]
    assert (result.committable_count, result.uncommittable_count) == (2, 1)
    third.ack()
    third.ack()
    assert committed(submitted.committable_offsets()) == [({"p": "a"}, {"o": 2})]
    assert submitted.committable_offsets().is_empty()


def test_partitions_do_not_wait_for_each_other(submitted: SubmittedRecords) -> None:
    """An unacknowledged record only delays offsets of its own partition."""
    submitted.submit({"p": "slow"}, {"o": 1})
    submitted.submit({"p": "slow"}, {"o": 2})
    submitted.submit({"p": "quick"}, {"o": 7}).ack()
    result = submitted.committable_offsets()
    assert committed(result) == [({"p": "quick"}, {"o": 7})]
    assert (result.committable_count, result.uncommittable_count) == (1, 2)


def test_a_dropped_record_is_forgotten(submitted: SubmittedRecords) -> None:
    """The offset of a record that the producer refused is not committed and delays no other."""
    first, second, third = (submitted.submit({"p": 1}, {"o": n}) for n in range(3))
    assert second.drop()
    assert not second.drop()
    assert third.drop()
    first.ack()
    assert committed(submitted.committable_offsets()) == [({"p": 1}, {"o": 0})]
    assert not first.drop()


def test_null_partitions_and_offsets_are_valid(submitted: SubmittedRecords) -> None:
    """A source may have neither partition nor offset; None is committed as it is."""
    submitted.submit(None, None).ack()
    assert committed(submitted.committable_offsets()) == [(None, None)]


def test_a_committed_partition_starts_with_a_new_queue(submitted: SubmittedRecords) -> None:
    """After a commit later records of the same dict are counted in a new queue."""
    partition = {"p": "a"}
    for number in range(3):
        submitted.submit(partition, {"o": number}).ack()
        assert committed(submitted.committable_offsets()) == [({"p": "a"}, {"o": number})]


def test_equal_partitions_share_a_queue_in_any_order(submitted: SubmittedRecords) -> None:
    """Partitions are compared as Java's maps, without regard to order."""
    blocked = submitted.submit({"a": 1, "b": "x"}, {"o": 1})
    submitted.submit({"b": "x", "a": 1}, {"o": 2}).ack()
    assert committed(submitted.committable_offsets()) == []
    blocked.ack()
    assert committed(submitted.committable_offsets()) == [({"a": 1, "b": "x"}, {"o": 2})]


@cases("one, other", (1, True), (1, 1.0), (0, False), ("1", 1))
def test_partitions_whose_values_differ_in_type_are_different(
    submitted: SubmittedRecords, one: object, other: object
) -> None:
    """Values that are equal in Python but of different types are different partitions."""
    submitted.submit({"p": one}, {"o": 1})
    submitted.submit({"p": other}, {"o": 2}).ack()
    assert committed(submitted.committable_offsets()) == [({"p": other}, {"o": 2})]


def test_a_connector_may_reuse_its_partition_dict(submitted: SubmittedRecords) -> None:
    """The content of the dict at the time of submission counts."""
    partition: dict[str, object] = {"p": "a"}
    submitted.submit(partition, {"o": 1}).ack()
    partition["p"] = "b"
    submitted.submit(partition, {"o": 2}).ack()
    partition["p"] = "c"
    expected = [({"p": "a"}, {"o": 1}), ({"p": "b"}, {"o": 2})]
    assert committed(submitted.committable_offsets()) == expected


def test_nested_partitions_are_compared_by_content() -> None:
    """A nested partition is refused only when it is written."""
    expected = canonical_partition({"p": [1, {"q": None}]})
    assert canonical_partition({"p": [1, {"q": None}]}) == expected
    assert canonical_partition({"p": [1, {"q": 1}]}) != canonical_partition({"p": [1, {"q": True}]})
    expected = canonical_partition({"p": bytearray(b"x")})
    assert canonical_partition({"p": bytearray(b"x")}) == expected


def test_later_results_override_and_counts_add(submitted: SubmittedRecords) -> None:
    """Results of several rounds combine to one commit."""
    submitted.submit({"p": "a"}, {"o": 1}).ack()
    submitted.submit({"p": "b"}, {"o": 1}).ack()
    first = submitted.committable_offsets()
    submitted.submit({"p": "a"}, {"o": 2}).ack()
    submitted.submit({"p": "c"}, {"o": 1})
    combined = first.updated_with(submitted.committable_offsets())
    assert committed(combined) == [({"p": "a"}, {"o": 2}), ({"p": "b"}, {"o": 1})]
    assert (combined.committable_count, combined.uncommittable_count) == (3, 1)
    assert CommittableOffsets().updated_with(first) == first


def test_a_run_counts_when_each_of_its_records_is_acknowledged(submitted: SubmittedRecords) -> None:
    """A run is committable once all its records, and all earlier ones, are acknowledged."""
    single = submitted.submit({"p": 1}, {"o": 0})
    run = submitted.submit_run({"p": 1}, {"o": 3}, 3)
    submitted.submit_run({"p": 2}, {"o": 9}, 1).acknowledge(None)
    run.acknowledge(None)
    run.acknowledge(None)
    single.ack()
    result = submitted.committable_offsets()
    assert committed(result) == [({"p": 1}, {"o": 0}), ({"p": 2}, {"o": 9})]
    assert (result.committable_count, result.uncommittable_count) == (2, 3)
    run.acknowledge(None)
    assert submitted.committable_offsets().committable_count == 3


def test_a_cut_run_counts_its_accepted_records(submitted: SubmittedRecords) -> None:
    """A run counts the records before a refused one, which may be none."""
    run = submitted.submit_run({"p": 1}, {"o": 3}, 3)
    run.acknowledge(None)
    run.cut({"o": 1}, 1)
    refused = submitted.submit_run({"p": 1}, {"o": 3}, 2)
    refused.cut(None, 0)
    result = submitted.committable_offsets()
    assert committed(result) == [({"p": 1}, {"o": 1})]
    assert (result.committable_count, result.uncommittable_count) == (1, 0)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.sampled_from(["a", "b", None]), st.integers(0, 1)),
        st.tuples(st.just("ack"), st.integers(0, 60), st.just(0)),
        st.tuples(st.just("drop"), st.integers(0, 60), st.just(0)),
        st.tuples(st.just("commit"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


@given(steps)
def test_the_longest_prefix_is_committed(history: list[tuple[str, object, int]]) -> None:
    """The committed offsets equal those of a simple model, for any order of acknowledgements."""
    submitted = SubmittedRecords()
    handles: list[SubmittedRecord] = []
    model: list[dict[str, object]] = []
    shared = {"a": {"p": "a"}, "b": {"p": "b"}}
    latest: dict[object, object] = {}

    def check() -> None:
        for partition, offset in submitted.committable_offsets().offsets.values():
            latest[None if partition is None else partition["p"]] = offset
        for name in ("a", "b", None):
            prefix: object = "nothing"
            for entry in model:
                if entry["name"] != name or entry["state"] == "dropped":
                    continue
                if entry["state"] != "acked":
                    break
                entry["taken"] = True
                prefix = entry["offset"]
            assert latest.get(name, "nothing") == prefix

    for kind, argument, fresh in history:
        match kind:
            case "submit":
                offset = {"o": len(model)}
                partition = None if argument is None else shared[str(argument)]
                if fresh and partition is not None:
                    partition = dict(partition)
                handles.append(submitted.submit(partition, offset))
                model.append({"name": argument, "offset": offset, "state": "sent", "taken": False})
            case "commit":
                check()
            case _ if isinstance(argument, int) and model:
                chosen = argument % len(model)
                entry = model[chosen]
                if kind == "ack" and entry["state"] == "sent":
                    handles[chosen].ack()
                    entry["state"] = "acked"
                elif kind == "drop" and entry["state"] == "sent":
                    handles[chosen].drop()
                    entry["state"] = "dropped"
    check()
    pending = sum(1 for entry in model if entry["state"] != "dropped" and not entry["taken"])
    assert submitted.committable_offsets().uncommittable_count == pending
