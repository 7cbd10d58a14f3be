"""Replays as their journal and the committed offsets describe them."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from pyconnect_cli.dlq.carry_out import avro_form, mender
from pyconnect_cli.dlq.dead_letters import ReplayJournal, all_replays
from pyconnect_cli.dlq.plan import (
    Letters,
    Replay,
    ReplayBatch,
    ReplayEnded,
    ReplayEntry,
    ReplayPlanned,
    ReplayUndone,
    SentSpan,
    Span,
    read_replays,
    sent_places,
    sent_spans,
    unfinished,
)
from pyconnect_cli.errors import UsageError
from pyconnect_cli.kafka.model import TopicRecord
from pyconnect_reconcile.values.schemas import RegisteredSchema
from tests.support.cases import cases

PLANNED = ReplayPlanned(
    replay="r",
    at_ms=1,
    cluster_id="k",
    topic="dead",
    connector=None,
    to_topic=None,
    targets=("orders",),
    mend=None,
    shapes=1,
    spans=(
        Span(group="a", partition=1, first=3, last=9, count=4),
        Span(group="b", partition=0, first=5, last=5, count=1),
        Span(group="b", partition=1, first=2, last=11, count=6),
    ),
)


def batch(before: tuple[int, int], after: tuple[int, int], first: int, count: int) -> ReplayBatch:
    last = first + count - 1
    sent = SentSpan(group="b", topic="orders", partition=0, first=first, last=last, count=count)
    return ReplayBatch(replay="r", before=before, after=after, sent=(sent,))


ONE, TWO = batch((5, 2), (6, 2), 100, 1), batch((6, 2), (6, 8), 101, 5)
AGAIN = batch((6, 2), (6, 12), 110, 10)


def replay_of(*entries: ReplayEntry) -> Replay:
    return read_replays([PLANNED, *entries])["r"]


def test_a_plan_joins_offsets_and_places() -> None:
    """A plan lists offsets by partition, and places of one group and partition are joined."""
    assert (PLANNED.partitions, PLANNED.starts, PLANNED.ends) == ((0, 1), (5, 2), (6, 12))
    assert (PLANNED.total, PLANNED.group) == (11, "pyconnect-replay-r")
    (place,) = sent_places([ONE, AGAIN])
    assert (place.first, place.last, place.count) == (100, 119, 11)


@cases(
    "entries, positions, sent",
    ([], (5, 2), ()),
    ([ONE], (5, 2), ()),  # killed before the commit
    ([ONE], (6, 2), (ONE,)),
    ([ONE, TWO], (6, 2), (ONE,)),
    ([ONE, TWO, AGAIN], (6, 12), (ONE, AGAIN)),  # the second one was killed, and was repeated
    ([ONE, TWO], (6, 7), None),  # another process has changed the offsets
    ([ONE, TWO], (), None),
)
def test_committed_offsets_decide_what_was_sent(
    entries: Sequence[ReplayEntry], positions: Sequence[int], sent: tuple[ReplayBatch, ...] | None
) -> None:
    """A batch in the journal counts as sent only if the committed offsets are behind it."""
    assert replay_of(*entries).sent_until(positions) == sent


def test_states_follow_the_entries() -> None:
    """A replay that was undone begins again, and only its new batches count."""
    assert replay_of().state == "unfinished"
    assert replay_of(ONE, TWO).certain == (ONE,)
    ended = ReplayEnded(replay="r", missing=0)
    assert replay_of(ONE, TWO, ended).state == "finished"
    assert replay_of(ONE, TWO, ended).certain == (ONE, TWO)
    assert replay_of(ONE, ReplayEnded(replay="r", missing=2)).state == "incomplete"
    undone = replay_of(ONE, TWO, ended, ReplayUndone(replay="r"))
    assert (undone.state, undone.batches) == ("undone", (ONE, TWO))
    assert sent_spans([undone]) == []
    again = replay_of(ONE, TWO, ended, ReplayUndone(replay="r"), ONE)
    assert (again.state, again.batches) == ("unfinished", (ONE,))
    assert unfinished([undone, again]) is again
    assert unfinished([undone]) is None


def test_letters_of_spans_are_found_by_group_partition_and_offset() -> None:
    """A letter is found by group, partition and offset; spans overlap if both may hold a letter."""
    letters = Letters(PLANNED.spans)
    assert letters.include("a", 1, 9)
    assert not letters.include("a", 1, 10)
    assert not letters.include("a", 0, 5)
    parts = [(11, 12), (3, 4), (7, 9)]
    cut = Letters([Span(group="a", partition=0, first=a, last=b, count=1) for a, b in parts])
    assert [n for n in range(15) if cut.include("a", 0, n)] == [3, 4, 7, 8, 9, 11, 12]
    assert letters.overlapping([Span(group="a", partition=1, first=9, last=20, count=2)])
    assert not letters.overlapping([Span(group="a", partition=1, first=10, last=20, count=2)])
    assert not letters.overlapping([Span(group="c", partition=1, first=0, last=20, count=2)])


def test_entries_are_read_as_they_were_written(tmp_path: Path) -> None:
    """A journal is read as it was written, and an entry of an unknown type is an error."""
    journal = ReplayJournal(tmp_path, "k", "dead")
    entries = [PLANNED, ONE, TWO, ReplayEnded(replay="r", missing=1), ReplayUndone(replay="r")]
    with journal.lock():
        for entry in entries:
            journal.append(entry)
    assert journal.replays() == read_replays(entries)
    assert all_replays(tmp_path) == [replay_of(*entries[1:])]
    with journal.path.open("a") as file:
        file.write('{"entry": "ReplayMoved", "replay": "r"}\n')
    with pytest.raises(UsageError, match="cannot read"):
        journal.replays()


def value_of(text: bytes | None) -> TopicRecord:
    return TopicRecord(topic="dead", partition=1, offset=7, timestamp_ms=0, key=None, value=text)


@cases(
    "value, mended",
    (b'{"a": 1.50}', b'{"a": 1.50}'),
    (b'{"a":"2"}', b'{"a":2}'),
    (b' {"a" : "3", "b": "\xc3\xa9\\u0001"}', b'{"a":3,"b":"\xc3\xa9\\u0001"}'),
    (None, None),
)
def test_only_changed_values_are_written_again(value: bytes | None, mended: bytes | None) -> None:
    """A value that the program does not change keeps its bytes."""
    mend = mender('if (.a | type) == "string" then .a |= tonumber else . end')
    assert mend(value_of(value)) == mended


@cases(
    "program, value, message",
    (".", b"{bad", "is not JSON"),
    (".", b"\xff", "is not UTF-8"),
    (".", b'"\\ud800"', "is not UTF-8"),
    (".", b'{"a": 12345678901234567890}', "has more digits"),
    (".", b"0.12345678901234567890", "has more digits"),
    (".", b"1e400", "has more digits"),
    (".", b'{"a": 1, "a": 2}', "occurs twice"),
    (".", b"", "is not JSON"),
    (".[]", b"[1, 2]", "has 2 results"),
    ("empty", b"1", "has 0 results"),
    (".a", b"1", "Cannot index number"),
)
def test_a_value_that_would_change_is_refused(program: str, value: bytes, message: str) -> None:
    """A value that jq would change or not read is refused, and the error names the letter."""
    with pytest.raises(UsageError, match=message) as caught:
        mender(program)(value_of(value))
    assert "dead-1@7" in caught.value.message


def test_a_text_is_mended_as_a_string_by_a_right_program() -> None:
    """A text is mended as a string, and the program is checked before the first letter."""
    assert mender('gsub("[^0-9é ]"; "")', text=True)(value_of('1"2 é'.encode())) == "12 é".encode()
    with pytest.raises(UsageError, match="dead-1@7: the result is not a string"):
        mender("tonumber", text=True)(value_of(b"12"))
    with pytest.raises(UsageError, match=r"dead-1@7: .* is not UTF-8"):
        mender(".", text=True)(value_of(b"\xff"))
    with pytest.raises(UsageError, match="begins like those of a schema registry") as caught:
        mender(".")(value_of(b"\0\0\0\0\1{}"))
    assert "--registry URL" in str(caught.value.hint)
    with pytest.raises(UsageError, match="--mend"):
        mender("{")


AVRO = {
    "type": "record", "name": "O", "fields": [
        {"name": "id", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": ["null", "string"]},
        {"name": "raw", "type": "bytes"},
        {"name": "next", "type": ["null", "Other"], "default": None},
    ],
}  # fmt: skip
OTHER = '{"type": "fixed", "name": "Other", "size": 2}'


def test_avro_keeps_its_schema() -> None:
    """Mended Avro keeps its schema, and a value that does not fit the schema is refused."""
    form = avro_form(
        b"\0\0\0\0\1", RegisteredSchema(kind="AVRO", text=json.dumps(AVRO), references=(OTHER,))
    )
    value = b"\0\0\0\0\1" + b"\x0e" + b"\x02\x0412" + b"\x04\xff\x00" + b"\x02ab"
    found = json.loads(form.read(value))
    assert found == {"id": 7, "price": {"string": "12"}, "raw": "\u00ff\0", "next": {"Other": "ab"}}
    expected = b"\0\0\0\0\1" + b"\x0e" + b"\x00" + b"\x04\xff\x00" + b"\x02ab"
    assert form.write(json.dumps({**found, "price": None})) == expected
    for change in (
        {"price": "12"}, {"price": {"long": 12}}, {"id": 1.5}, {"id": 2**70}, {"prise": None},
        {"raw": "\u20ac"}, {"next": {"Other": "abc"}},
    ):  # fmt: skip
        with pytest.raises(UsageError, match="schema"):
            form.write(json.dumps({**found, **change}))
    del found["next"]
    with pytest.raises(UsageError, match="does not hold"):
        form.write(json.dumps(found))
    for wrong in (value + b"\0", value[:-1]):
        with pytest.raises(UsageError, match="the value is not of its schema"):
            form.read(wrong)
