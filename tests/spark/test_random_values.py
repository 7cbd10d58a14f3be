"""Random JSON values with known changes, judged as by a reference."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyconnect_reconcile.findings import Verdict
from tests.support.audits.recorded_audits import LEFT, RIGHT, Given, RecordedAudit, offsets, topic
from tests.support.fakes.canonical_reference import canonical, difference
from tests.support.seeds import LONG

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

SEEDS: Sequence[Sequence[int]] = [[seed] for seed in range(500)] if LONG else [range(8)]
"""Seeds by audit: each audit takes Spark seconds."""
ROWS = 60
NUMBERS = (
    "0", "-0", "1", "1.0", "100e-2", "10", "1e1", "7.75", "7", "10.129", "10.13", "0.1", "1E-1",
    "9007199254740993", "9007199254740992", "99999999999999999999", "1e400", "2e400", "1e5000",
    "1" * 40, "-1.50", "-1.5", "0.000", "5e-324", "NaN", "Infinity", "-Infinity",
)  # fmt: skip
TEXTS = (
    '""', '"abc"', '"1"', '"true"', '"null"', '"{\\"a\\":1}"', '"[1]"', '"\\u00e9"', '"é"',
    '"\\ud800"', '"\\ud83d\\ude00"', '"1e2, 3"', '"\\u0001t"', '"\\\\"', '"2024-01-01"',
)  # fmt: skip
OTHERS = ("true", "false", "null")
BROKEN = ("no json", "{", '{"a":1} x', "01", "[1,]", '{"a":1,"a":2}', "tru", "\ufffd")
Row = tuple[bytes, bytes | None, int]
"""Key, value and partition."""
Change = Callable[[random.Random, list[Row]], None]


def value(randomness: random.Random, depth: int = 0) -> str:
    kind = randomness.random()
    if depth < 3 and kind < 0.35:
        inside = [value(randomness, depth + 1) for _ in range(randomness.randrange(4))]
        if kind < 0.15:
            return f"[{', '.join(inside)}]"
        names = randomness.sample(["a", "b", "c.d", "E"], len(inside))
        return "{" + ",".join(f'"{n}": {v}' for n, v in zip(names, inside, strict=True)) + "}"
    return randomness.choice((NUMBERS, TEXTS, OTHERS)[randomness.randrange(3)])


def drop(randomness: random.Random, rows: list[Row]) -> None:
    del rows[randomness.randrange(len(rows))]


def repeat(randomness: random.Random, rows: list[Row]) -> None:
    rows.append(randomness.choice(rows))


def reorder(randomness: random.Random, rows: list[Row]) -> None:
    randomness.shuffle(rows)


def replace(randomness: random.Random, rows: list[Row]) -> None:
    """Replace a value by null, another one, its double encoding, or one that does not parse."""
    at = randomness.randrange(len(rows))
    key, old, partition = rows[at]
    encoded = b'"%b"' % (old or b"").replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    new = randomness.choice(
        (None, b"null", encoded, value(randomness).encode(), randomness.choice(BROKEN).encode())
    )
    rows[at] = (key, new, partition)


def swap(randomness: random.Random, rows: list[Row]) -> None:
    one, other = randomness.sample(range(len(rows)), 2)
    (key, first, here), (another, second, there) = rows[one], rows[other]
    rows[one], rows[other] = (key, second, here), (another, first, there)


def delay(randomness: random.Random, rows: list[Row]) -> None:
    """Move a record behind the others, which is no difference of rows."""
    late = rows.pop(randomness.randrange(len(rows)))
    rows.append(late)


def move(randomness: random.Random, rows: list[Row]) -> None:
    """Move a record to the other partition, which is no difference either."""
    at = randomness.randrange(len(rows))
    key, value, partition = rows[at]
    rows[at] = (key, value, 1 - partition)


CHANGES: tuple[Change, ...] = (drop, repeat, reorder, replace, swap, delay, move)


@pytest.mark.long
@pytest.mark.parametrize("seeds", SEEDS)
def test_topics_with_known_changes_are_judged_as_by_the_reference(
    spark: SparkSession, tmp_path: Path, seeds: Sequence[int]
) -> None:
    """An audit has the reference's verdict, counts and places, however equal values are spelt."""
    left: list[Row] = []
    right: list[Row] = []
    for seed in seeds:
        randomness = random.Random(seed)
        there: list[Row] = [
            (b"k%d-%d" % (seed, number), value(randomness).encode(), number % 2)
            for number in range(ROWS)
        ]
        left += there
        for change in randomness.choices(CHANGES, k=randomness.randrange(6)):
            change(randomness, there)
        right += there
    topics = {
        name: [Given(each, key, partition) for key, each, partition in rows]
        for name, rows in ((LEFT, left), (RIGHT, right))
    }
    answer = RecordedAudit(spark, tmp_path).run(
        "topic-topic", topics, left=topic(LEFT), right=topic(RIGHT)
    )
    expected = difference(*([row[:2] for row in rows] for rows in (left, right)))
    found = {kind: answer.outcome.totals.get(kind, 0) for kind in expected}
    assert found == expected, answer.outcome.findings
    assert answer.verdict is (Verdict.DIFFER if any(expected.values()) else Verdict.AGREE)
    rows = {(key, canonical(each)) for key, each, _ in right}
    gone = {at for at, (key, each, _) in enumerate(left) if (key, canonical(each)) not in rows}
    assert offsets(answer, "missing") == gone
