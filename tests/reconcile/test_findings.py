"""Messages of a run: findings, their intervals, and errors of Spark."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pyconnect_reconcile.errors import summary, translated
from pyconnect_reconcile.findings import holes_within, numbers_of, runs_of


def signed(mask: int) -> int:
    """Return a mask as a signed long of Spark."""
    return mask - 2**64 if mask >= 2**63 else mask


@given(st.integers(-3, 3), st.sets(st.integers(0, 63), min_size=1))
def test_a_mask_holds_the_numbers_it_was_made_of(bucket: int, bits: set[int]) -> None:
    """A mask holds the numbers of its bucket, also in bit 63, the sign, and in negative buckets."""
    mask = signed(sum(1 << bit for bit in bits))
    expected = sorted(bucket * 64 + bit for bit in bits)
    assert list(numbers_of(bucket, mask)) == expected
    holes = holes_within(bucket, mask)
    missing = {n for hole in holes for n in range(hole.first, hole.last + 1)}
    assert missing == set(range(expected[0], expected[-1] + 1)) - set(expected)


@given(st.sets(st.integers(-50, 50)))
def test_runs_are_the_numbers_and_maximal(numbers: set[int]) -> None:
    """Runs cover exactly the numbers, and no two runs touch."""
    runs = runs_of(sorted(numbers))
    assert [n for run in runs for n in range(run.first, run.last + 1)] == sorted(numbers)
    assert all(a.last + 1 < b.first for a, b in pairwise(runs))


REFUSED = """An error occurred while calling o99.load.
: org.postgresql.util.PSQLException: FATAL: database "shop" does not exist
\tat org.postgresql.core.v3.ConnectionFactoryImpl.doAuthentication(ConnectionFactoryImpl.java:693)
\tSuppressed: org.apache.spark.util.Utils$OriginalTryStackTraceException: Full stacktrace
\t\tat org.apache.spark.util.Utils$.doTryWithCallerStacktrace(Utils.scala:1378)
"""


def test_an_error_of_java_is_said_by_its_first_line() -> None:
    """A message has the first line and last cause of Java's error, without suppressed traces."""
    said = 'org.postgresql.util.PSQLException: FATAL: database "shop" does not exist'
    assert summary(REFUSED) == said
    cause = "Caused by: java.net.ConnectException: Connection refused\n\t... 20 more\n"
    assert summary(REFUSED + cause) == f"{said} (java.net.ConnectException: Connection refused)"


def test_a_timestamp_that_spark_cannot_read_is_named() -> None:
    """A timestamp that Kafka accepts is an error beyond Spark's 64 bits of microseconds."""
    error = translated("Lost task 0.0: java.lang.ArithmeticException: long overflow")
    assert "a record has a timestamp beyond the year" in error.message
    assert error.hint == "leave the record out by its offset: `since` or `until`"
