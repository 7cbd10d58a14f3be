"""What a run says about Spark's errors."""

from __future__ import annotations

from pyconnect_reconcile.errors import summary, translated

REFUSED = """An error occurred while calling o99.load.
: org.postgresql.util.PSQLException: FATAL: database "shop" does not exist
\tat org.postgresql.core.v3.ConnectionFactoryImpl.doAuthentication(ConnectionFactoryImpl.java:693)
\tSuppressed: org.apache.spark.util.Utils$OriginalTryStackTraceException: Full stacktrace
\t\tat org.apache.spark.util.Utils$.doTryWithCallerStacktrace(Utils.scala:1378)
"""


def test_an_error_of_java_is_said_by_its_first_line() -> None:
    """What Java suppressed, which comes behind the stack trace, says nothing."""
    said = 'org.postgresql.util.PSQLException: FATAL: database "shop" does not exist'
    assert summary(REFUSED) == said
    cause = "Caused by: java.net.ConnectException: Connection refused\n\t... 20 more\n"
    assert summary(REFUSED + cause) == f"{said} (java.net.ConnectException: Connection refused)"


def test_a_timestamp_that_spark_cannot_read_is_named() -> None:
    """Kafka takes any number of milliseconds, Spark's source 64 bits of microseconds."""
    error = translated("Lost task 0.0: java.lang.ArithmeticException: long overflow")
    assert "a record has a timestamp beyond the year" in error.message
    assert error.hint == "leave the record out by its offset: `since` or `until`"
