"""Causes of dead letters, and the groups that they make."""

import pytest

from pyconnect_cli.dlq.plan import (
    Letters,
    LetterSorter,
    Span,
    as_sent,
    cause_of,
    context_of,
    group_id,
    message_shape,
    require_groups,
)
from pyconnect_cli.errors import NotFound, UsageError
from pyconnect_cli.kafka.model import TopicRecord
from tests.support.cases import cases

PREFIX = "__connect.errors."


def letter(offset: int = 0, partition: int = 0, **context: str | None) -> TopicRecord:
    """Return a dead letter of the topic `orders`; `context`: other headers, None to omit one."""
    known: dict[str, str | None] = {
        "topic": "orders",
        "partition": "2",
        "offset": "41",
        "connector.name": "sink",
        "stage": "VALUE_CONVERTER",
        "exception.class.name": "org.x.DataException",
        "exception.message": "bad byte 7",
        **{name.replace("_", "."): value for name, value in context.items()},
    }
    headers = [(PREFIX + key, value.encode()) for key, value in known.items() if value is not None]
    return TopicRecord(
        topic="dead",
        partition=partition,
        offset=offset,
        timestamp_ms=1_000 + offset,
        key=b"k",
        value=b"v",
        headers=(("own", None), *headers),
    )


@cases(
    "message, shape",
    ("invalid literal with base 10: 'twelve'", "invalid literal with base N: '…'"),
    ("Expecting value: line 1 column 12 (char 0)", "Expecting value: line N column N (char N)"),
    ("row -7 at 12:00:01.5 of [B@1f2e3d", "row N at N of [BN"),
    ("id 6f1c2a90-1111-4222-8333-444455556666 twice", "id N twice"),
    ("can't read it's \"a \n b\" as `x`", "can't read it's \"…\" as `…`"),
    ("value 'it's broken' at 3", "value '…' at N"),
    ("Invalid type for INT32: order17834 is int64", "Invalid type for INT32: orderN is int64"),
    ("two\nlines   here", "two lines here"),
    ("", ""),
)  # fmt: skip
def test_numbers_and_quoted_parts_are_no_part_of_a_message(message: str, shape: str) -> None:
    """The shape of a message keeps its words and replaces numbers and quoted parts."""
    assert message_shape(message) == shape


def test_shapes_are_bounded_and_without_bytes() -> None:
    """Shapes have a maximum length, and all messages about wrong bytes have the same shape."""
    assert len(message_shape("word " * 1_000_000)) == 300
    shapes = set()
    for data in (b"\xff", b"\xc3(", b"\xe2\x82", b"\xe2\x82("):
        with pytest.raises(UnicodeDecodeError) as refused:
            data.decode()
        shapes.add(message_shape(str(refused.value)))
    assert shapes == {"'…' codec invalid bytes"}
    said = {f"Invalid UTF-8 {which} byte 0x22 at [line 1]" for which in ("start", "middle")}
    assert {message_shape(each) for each in said} == {"invalid bytes at [line N]"}


@cases(
    "other",
    {"stage": "KEY_CONVERTER"},
    {"exception_class_name": "org.x.OtherException"},
    {"exception_message": "bad word"},
    {"class_name": "org.x.Cast$Value"},
    {"topic": "payments"},
    {"exception_stacktrace": "org.x.DataException: bad\nCaused by: java.io.EOFException: 7"},
)
def test_each_part_of_a_cause_makes_a_group(other: dict[str, str]) -> None:
    """Another stage, class, shape, root or topic makes another group; another number does not."""
    first = group_id(cause_of(context_of(letter())))
    assert group_id(cause_of(context_of(letter(5, exception_message="bad byte 8")))) == first
    assert group_id(cause_of(context_of(letter(**other)))) != first


def test_the_root_is_the_innermost_cause() -> None:
    """The root is the innermost cause of a trace; absent or odd headers give empty texts."""
    trace = "a.B: x\n\tat y\nCaused by: a.C: x\n\tat y\nCaused by: a.D$E: Caused by: none\n\tat y"
    assert cause_of(context_of(letter(exception_stacktrace=trace))).root == "a.D$E"
    bare = TopicRecord(
        topic="dead", partition=0, offset=0, timestamp_ms=-1, key=None, value=None,
        headers=((PREFIX + "stage", None), (PREFIX + "class.name", b"\xff")),
    )  # fmt: skip
    cause = cause_of(context_of(bare))
    assert (cause.stage, cause.processor, cause.topic) == ("", "\ufffd", "")


def test_a_sorter_counts_chooses_and_limits() -> None:
    """A sorter counts all letters of the connector, and takes chosen ones without a replay."""
    one, two = (group_id(cause_of(context_of(letter(stage=stage)))) for stage in ("A", "B"))
    done = Letters([Span(group=one, partition=0, first=2, last=3, count=1)])
    sorter = LetterSorter(connector="sink", replayed=done, chosen={one}, limit=3)
    records = [
        letter(0, stage="A"),
        letter(1, stage="B"),
        letter(2, stage="A"),
        letter(3, stage="A", connector_name="other"),
        letter(4, stage="A"),
        letter(5, stage="A"),
        letter(6, stage="A"),
    ]
    assert [sorter.take(record) for record in records] == [1, 0, 0, 0, 1, 1, 0]
    assert sorter.foreign == 1
    assert [(g.id, g.count, g.left) for g in sorter.by_count()] == [(one, 5, 4), (two, 1, 1)]
    spans = [(s.first, s.last, s.count) for s in sorter.spans.built()]
    assert spans == [(0, 0, 1), (4, 5, 2)]


def test_a_group_without_letters_or_without_a_target_is_refused() -> None:
    """A group without letters is exit 3, and letters without a target topic are exit 2."""
    sorter = LetterSorter()
    sorter.take(letter(topic=None))
    (group,) = sorter.by_count()
    with pytest.raises(NotFound):
        require_groups(sorter.groups, ["other"], None)
    with pytest.raises(UsageError, match="no header with their original topic"):
        require_groups(sorter.groups, [group.id], None)
    require_groups(sorter.groups, [group.id], "again")


def test_a_sent_record_is_the_original_one() -> None:
    """A replay sends the original record without error headers, if possible to its partition."""
    sent = as_sent(letter(7), context_of(letter(7)), None, {"orders": 3}, b"new")
    assert (sent.topic, sent.partition, sent.timestamp_ms) == ("orders", 2, 1_007)
    assert (sent.key, sent.value, sent.headers) == (b"k", b"new", (("own", None),))
    assert as_sent(letter(), context_of(letter()), "again", {"again": 2}, b"v").partition == -1
    for odd in ("-1", "x", "٣", "9" * 30):
        record = letter()
        headers = tuple(
            (name, odd.encode() if name == PREFIX + "partition" else data)
            for name, data in record.headers
        )
        changed = TopicRecord(
            topic="dead", partition=0, offset=0, timestamp_ms=0, key=None, value=None,
            headers=headers,
        )  # fmt: skip
        assert as_sent(changed, context_of(changed), None, {"orders": 3}, None).partition == -1
