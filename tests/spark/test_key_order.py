"""The order of each key in two topics: late records are found, and no others."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from pyconnect_reconcile.compares import key_order
from pyconnect_reconcile.findings import Verdict
from tests.support.audits.audits import Answer, Audit
from tests.support.audits.seeding import Record, Seed, seed_topic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

Told = tuple[str | None, str]
"""Key and value, in the order of a topic."""


def records(told: Sequence[Told], *, partition: int = 0) -> list[Record]:
    return [
        Record(value.encode(), key=None if key is None else key.encode(), partition=partition)
        for key, value in told
    ]


def compare(audit: Audit, origin: Seed, mirror: Seed, **members: object) -> Answer:
    return audit.run(
        "topic-topic",
        left={"kind": "topic", "topics": [origin.topic]},
        right={"kind": "topic", "topics": [mirror.topic]},
        ordered=True,
        **members,
    )


def topics(
    audit: Audit, left: Sequence[Told], right: Sequence[Told], *, partitions: int = 1
) -> tuple[Seed, Seed]:
    seeds = [seed_topic(audit.bootstrap, partitions=partitions) for _ in range(2)]
    for seed, told in zip(seeds, (left, right), strict=True):
        seed.write(records(told))
    return seeds[0], seeds[1]


def late(answer: Answer) -> list[tuple[int | None, ...]]:
    """Return the offsets of both copies of each late record."""
    return [tuple(copy.offset for copy in found.copies) for found in answer.of("disorder")]


def test_a_record_that_comes_after_its_successor_is_late(audit: Audit) -> None:
    """A record is late after a later one of its key; equal records are paired copy by copy."""
    told: list[Told] = [(f"k{n % 7}", f"v{n}") for n in range(300)]
    moved = [*told[:50], *told[51:60], told[50], *told[60:]]
    same: list[Told] = [("t", "on"), ("t", "off")] * 3
    switched: list[Told] = [("s", "on"), ("s", "off")] * 3
    changed: list[Told] = [("s", each) for each in ("on", "off", "off", "on", "on", "off")]
    # An aborted record between them makes the offsets of both sides differ.
    origin, mirror = topics(audit, [*told, *same, *switched], moved[:20], partitions=2)
    mirror.write(records([("k1", "aborted")]), outcome="abort")
    places = mirror.write(records([*moved[20:], *same]))
    overtaken = mirror.write(records(changed, partition=1))[3]
    for seed in (origin, mirror):
        seed.write(records([("spread", "1"), ("spread", "2")]))
        seed.write(records([("spread", "3")], partition=1))
    answer = compare(audit, origin, mirror)
    # Record 50 of key 1 comes after 57; the second "on" comes after the second "off".
    second_on = len(told) + len(same) + 2
    assert late(answer) == [(50, places[39][1]), (second_on, overtaken[1])]
    found = answer.of("disorder")
    assert [[copy.key for copy in each.copies] for each in found] == [["k1", "k1"], ["s", "s"]]
    assert [(each.topic, each.partition) for each in found] == [
        (mirror.topic, 0),
        (mirror.topic, 1),
    ]
    [note] = answer.of("unordered-keys")
    assert note.count == 1
    assert len(answer.outcome.findings) == 3
    assert answer.outcome.totals["disorder"] == 2
    assert answer.verdict is Verdict.DIFFER


def test_other_keys_may_overtake(audit: Audit) -> None:
    """Keys may alternate in another way, but records without a key leave the answer open."""
    told: list[Told] = [(key, f"{key}{n}") for n in range(40) for key in "abc"]
    sorted_ = sorted(told, key=lambda each: (each[0] or "", int(each[1][1:])))
    answer = compare(audit, *topics(audit, told, sorted_))
    assert answer.outcome.findings == ()
    keyless: list[Told] = [(None, "x"), (None, "y")]
    answer = compare(audit, *topics(audit, [*told, *keyless], [*keyless[::-1], *sorted_]))
    [finding] = answer.outcome.findings
    assert (finding.kind, finding.count, answer.verdict) == ("keyless", 2, Verdict.UNKNOWN)


def test_equal_records_in_several_partitions_have_no_order(audit: Audit) -> None:
    """Equal records in several partitions are not paired, so the run does not agree."""
    seeds = [seed_topic(audit.bootstrap, partitions=2) for _ in range(2)]
    for seed in seeds:
        for partition in (0, 1):
            seed.write(records([("k", "same"), (f"own{partition}", "x")], partition=partition))
    answer = compare(audit, *seeds)
    [finding] = answer.outcome.findings
    assert (finding.kind, finding.count) == ("unordered-keys", 1)
    assert answer.verdict is Verdict.UNKNOWN


def test_missing_and_repeated_records_are_not_late(audit: Audit) -> None:
    """A later copy is repeated, and a lost first copy is missing: neither is late."""
    told: list[Told] = [("k", f"v{n}") for n in range(20)]
    delivered = [*told[:5], *told[6:12], *told[2:5], *told[12:]]
    equal: list[Told] = [("e", "a"), ("e", "b"), ("e", "a"), ("e", "c")]
    origin, mirror = topics(audit, [*told, *equal], delivered, partitions=2)
    mirror.write(records(equal[1:], partition=1))
    answer = compare(audit, origin, mirror)
    assert answer.kinds() == {"missing", "repeated"}
    expected_totals = {"missing": 2, "extra": 0, "repeated": 3, "disorder": 0}
    assert answer.outcome.totals == expected_totals


@pytest.mark.long(only=True)
def test_an_oracle_agrees_over_chunks(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random moves are judged as by a plain loop, in windows of four offsets."""
    monkeypatch.setattr(key_order, "CHUNK_BITS", 2)
    randomness = random.Random(7)
    told: list[Told] = [(randomness.choice("ab"), randomness.choice("xyz")) for _ in range(60)] + [
        ("c", str(n)) for n in range(40)
    ]
    turns = [seed for seed in range(20) for _ in range(8)]
    randomness.shuffle(turns)
    told += [(f"seed-{seed}", str(number)) for number, seed in enumerate(turns)]
    moved = list(told)
    for _ in range(40):
        moved.insert(randomness.randrange(len(moved)), moved.pop(randomness.randrange(len(moved))))
    answer = compare(audit, *topics(audit, told, moved))
    assert sorted(late(answer), key=lambda pair: pair[1] or 0) == expected(told, moved)
    assert answer.kinds() == {"disorder"}


def expected(told: Sequence[Told], moved: Sequence[Told]) -> list[tuple[int, int]]:
    """Return the late records, from the k-th copies as pairs in the order of the right side."""
    turns: Counter[Told] = Counter()
    where: dict[tuple[Told, int], int] = {}
    for offset, each in enumerate(told):
        where[each, turns[each]] = offset
        turns[each] += 1
    turns.clear()
    highest: dict[str | None, int] = {}
    found = []
    for offset, each in enumerate(moved):
        left = where[each, turns[each]]
        turns[each] += 1
        if left < highest.get(each[0], -1):
            found.append((left, offset))
        highest[each[0]] = max(left, highest.get(each[0], -1))
    return found
