"""Many records as columns are the sequence of records that they stand for."""

from collections.abc import Sequence

import pytest

from pyconnect_api import INT32_SCHEMA, STRING_SCHEMA, SinkRecord, SinkRecords, SourceRecord
from pyconnect_api import SourceRecords as Records

PARTITION = {"file": "f"}


def several() -> Records:
    return Records(
        PARTITION,
        [{"n": n} for n in range(3)],
        "t",
        STRING_SCHEMA,
        ["a", "b", "c"],
        key_schema=INT32_SCHEMA,
        keys=[1, 2, 3],
        timestamp=7,
    )


def one(number: int) -> SourceRecord:
    value = "abc"[number]
    return SourceRecord(
        PARTITION, {"n": number}, "t", None, INT32_SCHEMA, number + 1, STRING_SCHEMA, value, 7
    )


def test_records_and_their_parts_have_the_values_of_the_columns() -> None:
    """From either end; what was not looked at is not made, identity is kept."""
    expected = [one(0), one(1), one(2)]
    assert list(several()) == expected
    assert [several()[0], several()[-1]] == [expected[0], expected[2]]
    assert list(reversed(several())) == expected[::-1]
    assert (len(several()), bool(several()), bool(several()[:0])) == (3, True, False)
    assert repr(several()[:1]) == f"SourceRecords([{expected[0]!r}])"
    records = several()
    looked_at = records[1]
    part = records[1:]
    assert isinstance(part, Records)
    assert part[0] is looked_at
    assert list(several()[1:][1:]) == [one(2)]


def test_keys_may_be_absent_and_all_else_must_be_as_much() -> None:
    """A record that is missing would be lost without a word."""
    (record,) = Records(None, [None], "t", None, ["v"])
    assert record == SourceRecord(None, None, "t", value="v")
    for offsets, keys in (([None], None), ([None] * 2, [1])):
        with pytest.raises(ValueError, match="as many"):
            Records(None, offsets, "t", None, ["v", "w"], keys=keys)


def test_offsets_may_be_made_when_they_are_looked_at() -> None:
    """Any sequence will do."""

    class Squares(Sequence[dict[str, int]]):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> dict[str, int]:  # type: ignore[override]
            if index >= 4:
                raise IndexError
            return {"n": index * index}

    records = Records(PARTITION, Squares(), "t", None, list("abcd"))
    assert records[3].source_offset == {"n": 9}


def test_records_of_a_sink_are_made_once_and_when_needed() -> None:
    """Their values can be had before."""
    made: list[int] = []

    def make() -> list[SinkRecord]:
        made.append(1)
        return [SinkRecord("t", 0, None, None, None, text, 1) for text in "ab"]

    records = SinkRecords(["a", "b"], make)
    assert (len(records), bool(records), records.values, made) == (2, True, ["a", "b"], [])
    assert [record.value for record in records] == ["a", "b"]
    assert records[1] is records[-1] is next(reversed(records))
    assert made == [1]
