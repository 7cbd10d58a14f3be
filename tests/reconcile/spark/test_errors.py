"""What a run says about Spark's errors."""

from __future__ import annotations

from pyconnect_reconcile.spark.errors import summary

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
