"""The part of a topic that a run reads, and the numbers and records outside of it."""

import json
from collections.abc import Sequence

import pytest

from pyconnect_reconcile.findings import Severity, Verdict
from tests.support.audits.audits import Audit
from tests.support.audits.seeding import Record, Seed, delete_before, seed_topic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

PLAIN = {"sequence": "json:n"}


def numbers(numbers: Sequence[int], *, partition: int = 0) -> list[Record]:
    return [
        Record(json.dumps({"n": n}).encode(), key=b"k%d" % n, partition=partition) for n in numbers
    ]


def expired(audit: Audit, first: Sequence[int], second: Sequence[int], before: int) -> Seed:
    """Return a topic of two partitions, the first of which has lost its beginning."""
    seed = seed_topic(audit.bootstrap, partitions=2)
    seed.write([*numbers(first), *numbers(second, partition=1)])
    delete_before(seed, 0, before)
    return seed


def test_a_removed_beginning_is_unknown_wherever_the_other_numbers_are(audit: Audit) -> None:
    """Numbers before the first record that is left are unknown, unless the request begins later."""
    alone = expired(audit, range(1, 1001), [], 499)
    spread = expired(audit, [n for n in range(1, 1001) if n != 700], [0], 499)
    answer = audit.run("sequence", topics=[alone.topic], **PLAIN)
    assert (answer.verdict, answer.kinds()) == (Verdict.UNKNOWN, {"expired"})
    [finding] = answer.of("expired")
    assert (finding.partition, finding.first, finding.last) == (0, 0, 498)
    assert "below 500" in finding.message
    answer = audit.run("sequence", topics=[spread.topic], **PLAIN)
    assert answer.verdict is Verdict.DIFFER
    assert answer.intervals("missing") == {(None, 700, 700)}
    assert answer.intervals("perhaps-missing") == {(None, 1, 499)}
    totals = answer.outcome.totals
    assert (totals["missing"], totals["perhaps-missing"]) == (1, 499)
    asked = audit.run("sequence", topics=[alone.topic], since={alone.topic: {0: 499}}, **PLAIN)
    assert (asked.verdict, asked.outcome.findings) == (Verdict.AGREE, ())
    side = {"kind": "topic", "topics": [alone.topic]}
    compared = audit.run("topic-topic", left=side, right=side)
    assert (compared.verdict, compared.kinds()) == (Verdict.UNKNOWN, {"expired"})
    repeated = audit.run("duplicates", topics=[alone.topic])
    assert (repeated.verdict, repeated.of("expired")[0].severity) == (Verdict.AGREE, Severity.NOTE)


def test_numbers_beyond_an_end_that_was_asked_for_are_not_lost(audit: Audit) -> None:
    """Numbers in the part of a partition that the request leaves out are unknown, not lost."""
    seed = seed_topic(audit.bootstrap, partitions=2)
    seed.write([*numbers(range(0, 400, 2)), *numbers(range(1, 400, 2), partition=1)])
    for until, perhaps in (({0: 100, 1: 200}, 100), ({1: 200}, 199)):
        answer = audit.run("sequence", topics=[seed.topic], until={seed.topic: until}, **PLAIN)
        assert (answer.verdict, answer.kinds()) == (Verdict.UNKNOWN, {"perhaps-missing"})
        assert answer.outcome.totals["perhaps-missing"] == perhaps
    holed = seed_topic(audit.bootstrap, partitions=2)
    even = [n for n in range(0, 400, 2) if n != 50]
    holed.write([*numbers(even), *numbers(range(1, 400, 2), partition=1)])
    since = {holed.topic: {0: 10}}
    answer = audit.run("sequence", topics=[holed.topic], since=since, findings=2, **PLAIN)
    assert answer.verdict is Verdict.DIFFER
    assert answer.intervals("missing") == {(None, 50, 50)}


def test_a_source_that_counts_from_one_has_lost_its_first_records(audit: Audit) -> None:
    """Numbers before the first one of a task's start are lost: the agent's headers begin at 1."""

    def stamped(epoch: int, number: int) -> Record:
        texts = {"partition": "p", "offset": f'{{"at":{number}}}', "seq": number, "epoch": epoch}
        headers = [(f"pyconnect.source.{name}", str(text).encode()) for name, text in texts.items()]
        return Record(b"x", headers=headers)

    seed = seed_topic(audit.bootstrap)
    seed.write([stamped(1, n) for n in (1, 2, 3)])
    seed.write([stamped(2, n) for n in (4, 5)])
    answer = audit.run("sequence", topics=[seed.topic], sequence="provenance")
    assert answer.verdict is Verdict.DIFFER
    assert answer.intervals("missing") == {("p/2", 1, 3)}


@pytest.mark.long(only=True)
def test_records_without_a_number_leave_the_sequence_undecided(audit: Audit) -> None:
    """A record without a number makes a sequence unknown, because it may be the missing one."""
    values = (None, b"", b'[{"n":4}]', b'{"n":4.5}', b'{"n":"99999999999999999999"}', b"no json")
    for value in values:
        seed = seed_topic(audit.bootstrap)
        seed.write([*numbers([1, 2, 3]), Record(value)])
        answer = audit.run("sequence", topics=[seed.topic], **PLAIN)
        assert (answer.verdict, answer.kinds()) == (Verdict.UNKNOWN, {"unparsable"}), value


def test_every_repeated_record_is_named_beside_a_hot_one(audit: Audit) -> None:
    """Each repeated record has its key and first places, even beside one with 30,000 copies."""
    seed = seed_topic(audit.bootstrap)
    seed.write([Record(b"hot", key=b"hot")] * 20_000)
    twice = [Record(b"v%d" % n, key=b"k%d" % n) for n in range(100)]
    seed.write([*twice, *twice])
    seed.write([Record(b"hot", key=b"hot")] * 10_000)
    answer = audit.run("duplicates", topics=[seed.topic])
    found = {each.key: each for each in answer.of("duplicate")}
    assert found.keys() == {"hot", *(f"k{n}" for n in range(100))}
    assert [copy.offset for copy in found["hot"].copies] == list(range(10))
    assert found["hot"].count == 30_000
    for n in range(100):
        copies = found[f"k{n}"].copies
        assert [copy.offset for copy in copies] == [20_000 + n, 20_100 + n]
        assert {copy.key for copy in copies} == {f"k{n}"}
    hidden = audit.run("duplicates", topics=[seed.topic], identity="key", hide_keys=True)
    assert {each.key[:7] for each in hidden.of("duplicate") if each.key} == {"sha256:"}
    assert len(hidden.of("duplicate")) == 101


def test_sources_that_are_keys_are_hidden_with_them(audit: Audit) -> None:
    """With hide_keys the sources are hashed if their ids are keys."""
    seed = seed_topic(audit.bootstrap)
    seed.write([Record(b'{"n":%d}' % n, key=b"alice") for n in (1, 3)])
    answer = audit.run("sequence", topics=[seed.topic], group="key", hide_keys=True, **PLAIN)
    [finding] = answer.of("missing")
    assert finding.group is not None
    assert finding.group.startswith("sha256:")
    assert finding.group in finding.message
    assert "alice" not in repr(answer.outcome)


@pytest.mark.long(only=True)
def test_sources_between_each_other_are_checked_as_those_behind_each_other(audit: Audit) -> None:
    """Faults of sources are found even if the records of many sources alternate."""
    seed = seed_topic(audit.bootstrap, partitions=2)

    def record(key: int, number: int) -> Record:
        value = b'{"s":"%d","n":%d}' % (key, number)
        return Record(value, key=b"%d" % key, partition=key % 2)

    told = [(key, n) for n in range(1, 41) for key in range(50) if (key, n) != (7, 20)]
    late = told.pop(told.index((8, 10)))
    told.insert(told.index((8, 12)) + 1, late)
    told.insert(told.index((9, 30)), (9, 5))
    seed.write([record(*each) for each in told])
    answer = audit.run("sequence", topics=[seed.topic], sequence="json:n", group="json:s")
    assert answer.intervals("missing") == {("7", 20, 20)}
    assert answer.intervals("repeated") == {("9", 5, 5)}
    assert answer.intervals("disorder") == {("8", 10, 10)}
    assert [copy.key for each in answer.of("disorder") for copy in each.copies] == ["8"]
    assert answer.outcome.counts["groups"] == 50


@pytest.mark.long(only=True)
def test_every_missing_row_is_named_beside_a_hot_one(audit: Audit) -> None:
    """Each missing row has its key and first places, even beside one with 30,000 copies."""
    left, right = seed_topic(audit.bootstrap), seed_topic(audit.bootstrap)
    twice = [Record(b"v%d" % n, key=b"k%d" % n) for n in range(100)]
    left.write([*[Record(b"hot", key=b"hot")] * 30_000, *twice, *twice])
    right.write([Record(b"else", key=b"else")])
    sides = {
        name: {"kind": "topic", "topics": [seed.topic]}
        for name, seed in (("left", left), ("right", right))
    }
    found = audit.run("topic-topic", **sides).of("missing")
    assert sorted(each.count for each in found) == [2] * 100 + [30_000]
    for each in found:
        assert len(each.copies) == min(each.count, 10)
        assert all(copy.key for copy in each.copies)


def test_removed_offsets_hide_no_more_numbers_than_they_are(audit: Audit) -> None:
    """Expired offsets explain at most as many missing numbers as there are, and others are lost."""
    seed = expired(audit, [500, 501], [n for n in range(1, 1001) if not 500 <= n < 600], 2)
    answer = audit.run("sequence", topics=[seed.topic], **PLAIN)
    totals = answer.outcome.totals
    assert answer.verdict is Verdict.DIFFER
    # The markers of transactions take offsets, too.
    hidden = totals["perhaps-missing"]
    assert (2 <= hidden <= 4, totals["missing"]) == (True, 100 - hidden)
    assert sum(each.count for each in answer.of("missing")) == 100 - hidden
