"""Spark's answers against plain Python, on many random histories at once."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from pyconnect_reconcile import numbered
from pyconnect_reconcile.compares import stages
from pyconnect_reconcile.findings import Interval, holes_within, runs_of
from pyconnect_reconcile.values.canonical import HASHES, hashes

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

FEW = settings(
    max_examples=2,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    # An example takes Spark seconds, so failures are not shrunk.
    phases=(Phase.explicit, Phase.generate),
)
Row = tuple[str, str, int, int, int]
"""group, topic, partition, offset, sequence"""

# Small numbers collide; distant ones cross buckets and chunks.
SEQUENCES = st.one_of(
    st.integers(-70, 200), st.integers(262_100, 262_200), st.integers(-600_000, 600_000)
)
STEADY = st.tuples(st.integers(-100, 100), st.integers(1, 150), st.sets(st.integers(0, 150))).map(
    lambda made: [(0, made[0] + n) for n in range(made[1]) if n not in made[2]]
)
WILD = st.lists(st.tuples(st.integers(0, 2), SEQUENCES), min_size=1, max_size=40)
HISTORIES = st.lists(st.one_of(STEADY, WILD), min_size=20, max_size=40)


def rows_of(histories: Iterable[list[tuple[int, int]]]) -> list[Row]:
    """Return histories with a group and topic each, and an offset gap after each third record."""
    rows: list[Row] = []
    for number, history in enumerate(histories):
        ends: dict[int, int] = defaultdict(int)
        for index, (partition, sequence) in enumerate(history):
            rows.append((f"g{number}", f"t{number}", partition, ends[partition], sequence))
            ends[partition] += 2 if index % 3 == 2 else 1
    return rows


def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    schema = "`group` string, topic string, partition int, offset bigint, sequence bigint"
    return spark.createDataFrame(rows, schema)


FOLDS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "folded": numbered.masks,
    "sorted": lambda numbers: numbered.sorted_masks(numbers, several_chunks=False),
    "sorted in chunks": lambda numbers: numbered.sorted_masks(numbers, several_chunks=True),
}


@pytest.mark.parametrize("fold", FOLDS)
@FEW
@given(histories=HISTORIES)
def test_gaps_copies_and_order_are_those_of_the_oracle(
    spark: SparkSession, fold: str, histories: list[list[tuple[int, int]]]
) -> None:
    """Gaps, repeated numbers and disordered records of each group are those of the oracle."""
    rows = rows_of(histories)
    numbers = frame(spark, rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbered, "SORTED_BITS", 3)
        folded = FOLDS[fold](numbers).persist()
    buckets = numbered.over_partitions(folded).persist()
    found: dict[str, set[Interval]] = defaultdict(set)
    for row in numbered.gaps_between(buckets).collect():
        found[row.group].add(Interval(row.first, row.last))
    for row in numbered.holed(buckets).collect():
        found[row.group] |= set(holes_within(row.bucket, row.mask))
    totals = {row.group: row for row in numbered.groups(buckets, None, from_one=False).collect()}
    repeated = {(row.group, row.bucket) for row in numbered.repeated(buckets).collect()}
    suspects = numbered.unproven(folded)
    late = {tuple(row) for row in numbered.disordered(numbers, suspects).collect()}
    if fold == "sorted":
        # Only groups with doubtful masks may have disordered records.
        doubtful = {row.group for row in folded.where("doubtful").collect()}
        assert doubtful >= {group for group, *_ in late}
    folded.unpersist()
    buckets.unpersist()

    by_group: dict[str, list[int]] = defaultdict(list)
    for group, *_, sequence in rows:
        by_group[group].append(sequence)
    for group, sequences in by_group.items():
        expected = missing(set(sequences))
        assert found.get(group, set()) == expected, group
        assert totals[group].missing == sum(each.length for each in expected)
        assert totals[group].distinct == len(set(sequences))
        twice = {n for n, count in Counter(sequences).items() if count > 1}
        assert {b for g, b in repeated if g == group} == {n >> 6 for n in twice}
    assert late == disordered(rows)


def missing(present: set[int]) -> set[Interval]:
    ordered = sorted(present)
    pairs = itertools.pairwise(ordered)
    return {Interval(low + 1, high - 1) for low, high in pairs if high > low + 1}


def disordered(rows: list[Row]) -> set[Row]:
    """Return the first copies that come after a higher number of their partition."""
    highest: dict[tuple[str, int], int] = {}
    seen: set[tuple[str, int, int]] = set()
    late: set[Row] = set()
    for row in rows:
        group, _, partition, _, sequence = row
        if (group, partition, sequence) not in seen and sequence < highest.get(
            (group, partition), sequence
        ):
            late.add(row)
        seen.add((group, partition, sequence))
        highest[group, partition] = max(highest.get((group, partition), sequence), sequence)
    return late


VALUES = st.one_of(st.none(), st.just(b""), st.integers(0, 30).map(lambda n: b"v%d" % n))


@FEW
@given(
    committed=st.lists(VALUES, max_size=60),
    beyond=st.lists(VALUES, max_size=5),
    there=st.lists(VALUES, max_size=60),
    common=st.lists(st.binary(max_size=3), max_size=40),
    strange=st.tuples(st.lists(VALUES, max_size=5), st.lists(VALUES, max_size=5)),
)
def test_the_difference_of_multisets_is_that_of_the_oracle(
    spark: SparkSession,
    committed: list[bytes | None],
    beyond: list[bytes | None],
    there: list[bytes | None],
    common: list[bytes],
    strange: tuple[list[bytes | None], list[bytes | None]],
) -> None:
    """The difference is the oracle's: null is not empty, rows beyond the offset are optional."""
    left = [(value, False) for value in [*committed, *common]]
    left += [(value, True) for value in beyond]
    right = [(value, False) for value in [*there, *common]]
    origin, copy = (
        _hashed(spark, side).unionByName(
            _hashed(spark, [(value, False) for value in wrong], unparsable=True)
        )
        for side, wrong in zip((left, right), strange, strict=True)
    )
    sums = stages.checksums(origin, copy, stages.FEWEST_BUCKETS)
    assert (sums.unparsable_left, sums.unparsable_right) == tuple(map(len, strange))
    left += [(value, False) for value in strange[0]]
    right += [(value, False) for value in strange[1]]
    assert sums.left == len(left) - len(beyond)
    assert sums.tail_left == len(beyond)
    assert sums.right == len(right)
    rows = stages.differing_rows(origin, copy, sums).collect() if sums.bad else []
    found = {(row.first, row.second): (row.committed, row.uncommitted, row.there) for row in rows}
    assert found == _oracle(spark, left, right)


def _hashed(
    spark: SparkSession, rows: list[tuple[bytes | None, bool]], *, unparsable: bool = False
) -> DataFrame:
    made = spark.createDataFrame(rows, "value binary, tail boolean")
    columns = dict(zip(HASHES, hashes([sql.col("value")]), strict=True))
    shaped = {
        **columns,
        "unparsable": sql.lit(unparsable),
        "copies": sql.lit(1),
        "lane": sql.lit(0),
        "offset": sql.lit(0),
        "keyless": sql.lit(False),
        "tied": sql.lit(False),
    }
    return made.withColumns(shaped)


def _oracle(
    spark: SparkSession,
    left: list[tuple[bytes | None, bool]],
    right: list[tuple[bytes | None, bool]],
) -> dict[tuple[int, int], tuple[int, int, int]]:
    before = Counter(value for value, tail in left if not tail)
    later = Counter(value for value, tail in left if tail)
    after = Counter(value for value, _ in right)
    values = [
        value
        for value in {*before, *later, *after}
        if not before[value] <= after[value] <= before[value] + later[value]
    ]
    named = _hashed(spark, [(value, False) for value in values]).collect()
    return {
        (row.first, row.second): (before[key], later[key], after[key])
        for row in named
        for key in [None if row.value is None else bytes(row.value)]
    }


@given(st.sets(st.integers(-200, 200)))
def test_the_oracle_of_gaps_agrees_with_runs(numbers: set[int]) -> None:
    """The oracle's missing numbers are those between runs."""
    runs = runs_of(sorted(numbers))
    between = {Interval(one.last + 1, other.first - 1) for one, other in itertools.pairwise(runs)}
    assert missing(numbers) == between
