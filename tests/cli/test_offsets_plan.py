"""Plans of offset changes, without a worker: sent requests, refusals, and read-back."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_cli.errors import UsageError
from pyconnect_cli.kafka.model import OffsetRange, TopicPartition, sink_topics
from pyconnect_cli.offsets.plan.change import (
    Action,
    OffsetsPlan,
    OffsetsView,
    plan_alter,
    plan_reset,
    plan_restore,
    plan_undo,
    read_back_differs,
)
from pyconnect_cli.offsets.plan.entries import (
    SeekTarget,
    SeekTo,
    outside_topics,
    parse_assignment,
    read_entries,
    seek_entries,
)
from pyconnect_cli.parsing.values import parse_json
from pyconnect_cli.rest.offset_entries import OffsetEntry, by_key, offsets_body, partition_key
from tests.support.cases import cases


def view(positions: Mapping[str, int], state: str = "STOPPED") -> OffsetsView:
    return OffsetsView(
        name="orders",
        type="source",
        class_name="org.example.FileSource",
        state=state,
        config={},
        offsets=entries(positions),
    )


def entries(positions: Mapping[str, int | None]) -> tuple[OffsetEntry, ...]:
    return tuple(
        OffsetEntry(
            partition={"filename": name},
            offset=None if position is None else {"position": position},
        )
        for name, position in positions.items()
    )


def applied(plan: OffsetsPlan) -> dict[str, OffsetEntry]:
    """Return the offsets that a worker stores after the plan's request."""
    stored = {} if plan.everything else by_key(plan.view.offsets)
    for entry in () if plan.everything else plan.wanted:
        stored.pop(entry.key, None)
        if entry.offset is not None:
            stored[entry.key] = entry
    return stored


POSITIONS = st.dictionaries(st.sampled_from("abcde"), st.integers(0, 3))


@given(now=POSITIONS, before=POSITIONS)
def test_a_restore_ends_in_the_snapshot(now: dict[str, int], before: dict[str, int]) -> None:
    """A restore ends in the snapshot, and sends no request if there is no difference."""
    plan = plan_restore(view(now), entries(before))
    assert applied(plan) == by_key(entries(before))
    assert plan.needed == (now != before)
    assert read_back_differs(plan, entries(before)) is None


@given(before=POSITIONS, left=POSITIONS, now=POSITIONS)
def test_an_undo_names_partitions_with_later_changes(
    before: dict[str, int], left: dict[str, int], now: dict[str, int]
) -> None:
    """An undo names exactly the partitions that changed after the change that it takes back."""
    plan = plan_undo(view(now), entries(before), entries(left))
    assert plan.since is not None
    touched = {
        name
        for name in {*before, *left, *now}
        if now.get(name) != before.get(name) and now.get(name) != left.get(name)
    }
    assert {change.partition["filename"] for change in plan.since} == touched
    assert applied(plan) == by_key(entries(before))
    assert by_key(plan.left) == by_key(entries(before))


def test_an_undo_knows_changes_that_a_backup_can_show() -> None:
    """An undo of a backup without the later offsets does not know whether they were changed."""
    plan = plan_undo(view({"a": 1}), entries({"a": 2}), None)
    assert plan.since is None
    assert plan.to_json()["since"] is None
    found = OffsetEntry(partition={"filename": "a"}, offset={"position": 5.0})
    now = replace(view({}), offsets=(found,))
    assert plan_undo(now, entries({"a": 1}), entries({"a": 5})).since == ()


@given(now=POSITIONS, wanted=st.dictionaries(st.sampled_from("abcde"), st.none() | st.integers(0)))
def test_alter_touches_named_partitions(now: dict[str, int], wanted: dict[str, int | None]) -> None:
    """`alter` changes the given partitions and no other."""
    plan = plan_alter(view(now), entries(wanted), force=True)
    after = {**now, **wanted}
    kept = {name: position for name, position in after.items() if position is not None}
    assert applied(plan) == by_key(entries(kept))


def test_a_plan_needs_the_stop_for_changes_only() -> None:
    """A plan with changes goes through STOPPED; a plan without changes needs no stop."""
    plan = plan_reset(view({"a": 1}, state="RUNNING"))
    assert plan.states == ("RUNNING", "STOPPED")
    assert replace(plan, resume=True).states == ("RUNNING", "STOPPED", "RUNNING")
    assert not plan_alter(view({"a": 1}, state="RUNNING"), entries({"a": 1})).needed


def test_a_reset_of_everything_is_sent_even_when_nothing_is_stored() -> None:
    """A reset of everything is always sent, because a connector may keep offsets elsewhere."""
    plan = plan_reset(view({}))
    assert plan.everything
    assert plan.needed
    assert plan.changes == ()


def test_a_partition_that_is_not_read_back_is_named() -> None:
    """The first partition whose stored offset differs from the sent one is named; 2.0 equals 2."""
    plan = plan_alter(view({"a": 1, "b": 1}), entries({"a": 2, "b": None}))
    assert read_back_differs(plan, entries({"a": 2})) is None
    assert read_back_differs(plan, entries({"a": 1})) == '{"filename":"a"}'
    assert read_back_differs(plan, entries({})) == '{"filename":"a"}'
    assert read_back_differs(plan, entries({"a": 2, "b": 1})) == '{"filename":"b"}'
    floating = OffsetEntry(partition={"filename": "a"}, offset={"position": 2.0})
    assert read_back_differs(plan, (floating,)) is None


def test_a_partition_is_the_same_in_any_order_of_its_members() -> None:
    """The order of members does not matter for a partition; their types do."""
    assert partition_key({"a": 1, "b": "x"}) == partition_key({"b": "x", "a": 1})
    assert partition_key({"a": 1}) != partition_key({"a": "1"})


@cases("after", {"o": 2}, None)
def test_a_change_keeps_the_stored_order_of_members(after: dict[str, object] | None) -> None:
    """A change keeps the stored order of members, because a Java worker compares bytes."""
    stored = OffsetEntry(partition={"zone": "z", "place": "p"}, offset={"o": 1})
    wanted = OffsetEntry(partition={"place": "p", "zone": "z"}, offset=after)
    plan = plan_alter(replace(view({}), offsets=(stored,)), (wanted,))
    (sent,) = plan.wanted
    assert list(sent.partition or ()) == ["zone", "place"]


JSON_VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
MAPS = st.dictionaries(st.text(), JSON_VALUES, min_size=1)


@given(st.lists(st.tuples(MAPS, st.none() | MAPS), min_size=1, unique_by=lambda t: str(t[0])))
def test_the_body_that_is_sent_is_read_as_the_same_entries(
    pairs: list[tuple[dict[str, object], dict[str, object] | None]],
) -> None:
    """A request's body is read as the same entries, for any flat maps of a source."""
    made = tuple(OffsetEntry(partition=p, offset=o) for p, o in pairs)
    if len(by_key(made)) == len(made):
        assert read_entries(offsets_body(made)["offsets"], "source", "here") == made


@cases("text", "orders:0", "orders:0=", "orders=5", "{}={}", '{"a":1}', '{"a":1}=[]', "orders:x=5")
def test_an_invalid_assignment_is_a_usage_error(text: str) -> None:
    """An assignment that is neither TOPIC:NUMBER=OFFSET nor JSON is a usage error."""
    with pytest.raises(UsageError):
        parse_assignment(text, "sink")


@cases(
    "text, reason",
    ('{"a": NaN}', "NaN"),
    ('{"a": 1e999}', "1e999"),
    ('{"a": ' + "9" * 5_000 + "}", "here: cannot be read"),
    ("[" * 200_000, "here: cannot be read"),
    ids=["NaN", "too large", "too many digits", "too deep"],
)
def test_json_that_python_cannot_hold_is_refused(text: str, reason: str) -> None:
    """JSON with too large numbers or too deep nesting is a usage error without a traceback."""
    with pytest.raises(UsageError, match=reason):
        parse_json(text, "here")
    with pytest.raises(UsageError, match="not a whole number"):
        parse_assignment("orders:" + "1" * 5_000 + "=5", "sink")


RANGES = {
    TopicPartition("t", 0): OffsetRange(earliest=10, latest=20),
    TopicPartition("t", 1): OffsetRange(earliest=0, latest=5),
}


def at(topic: str, partition: int, offset: int) -> OffsetEntry:
    return OffsetEntry(
        partition={"kafka_topic": topic, "kafka_partition": partition},
        offset={"kafka_offset": offset},
    )


@cases(
    "target, expected",
    (SeekTarget(to=SeekTo.EARLIEST), [10, 0]),
    (SeekTarget(to=SeekTo.LATEST), [20, 5]),
    (SeekTarget(to=SeekTo.SHIFT, number=3), [18]),
    (SeekTarget(to=SeekTo.SHIFT, number=-100), [10]),
    (SeekTarget(to=SeekTo.SHIFT, number=100), [20]),
    (SeekTarget(to=SeekTo.TIME, number=1), [12, 5]),
)
def test_a_seek_stays_inside_the_topic(target: SeekTarget, expected: list[int]) -> None:
    """A seek stays inside the topic; a shift moves only partitions that have an offset."""
    at_time = {TopicPartition("t", 0): 12, TopicPartition("t", 1): None}
    found = seek_entries(target, [at("t", 0, 15)], RANGES, at_time)
    assert [entry.offset for entry in found] == [{"kafka_offset": n} for n in expected]


def test_offsets_outside_their_topics_are_reported() -> None:
    """Offsets past the end, before the first record or of unknown partitions are reported."""
    wanted = [at("t", 0, 20), at("t", 1, 6), at("u", 0, 0)]
    expected = ["t:1: 6 is past the end, 5", "Kafka has no partition u:0"]
    assert outside_topics(wanted, RANGES) == expected
    assert outside_topics([at("t", 0, 9)], RANGES) == ["t:0: 9 is before the first record, 10"]


def test_a_sinks_topics_are_those_configured_and_those_with_offsets() -> None:
    """A sink's topics are those of `topics`, without blanks, and those with offsets."""
    assert sink_topics({"topics": "a, b,"}, [at("c", 0, 1)]) == {"a", "b", "c"}
    assert sink_topics({"topics.regex": "x.*"}, []) == set()


def test_an_undo_is_never_doubted() -> None:
    """A restore does not compare offsets with the stored ones, because they were stored before."""
    strange = (OffsetEntry(partition={"other": 1}, offset={"place": -1}),)
    assert plan_restore(view({"a": 1}), strange).action is Action.UNDO
