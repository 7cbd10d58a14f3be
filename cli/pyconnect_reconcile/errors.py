"""The errors of a run; those of Spark and Kafka's Java client become one message without a trace.

ReconcileError        a run cannot begin or continue; exit code 11
├── InvalidQuestion   the spec cannot be read, or asks for something impossible; exit code 2
├── RecordsRemoved    records of the range were removed before they were read; becomes a finding
└── NotAuditable      the job cannot answer for such data; becomes a finding
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager


class ReconcileError(Exception):
    """A run that cannot begin or go on; `message` is the reason, `hint` the way out."""

    exit_code = 11

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidQuestion(ReconcileError):
    """A spec that asks for something impossible."""

    exit_code = 2


class RecordsRemoved(ReconcileError):
    """Records of the range that were removed before Spark had read them."""


class NotAuditable(ReconcileError):
    """Data about which the job cannot answer; the run leaves a report with the reason."""


# The texts of `failOnDataLoss` in Spark's versions.
_REMOVED = re.compile(
    "OffsetOutOfRange|DATA_LOSS|data may have been lost|fetched earliest offset", re.IGNORECASE
)
_SILENT = ("An error occurred", "at ", "... ", "Suppressed: ", "Caused by: ")
# Failures by a pattern in their text, with the message for people and a hint.
_KNOWN: tuple[tuple[str, str, str | None], ...] = (
    ("UnknownTopicOrPartition", "a topic was deleted while it was read", None),
    (
        "AuthorizationException",
        "Kafka denies the access: the principal lacks Read on the topic or on the groups of Spark",
        "grant Read on the topic, and on the groups with the prefix spark-kafka",
    ),
    (
        "ArithmeticException: long overflow",
        "a record has a timestamp beyond the year 294,247, which Spark's Kafka source cannot read",
        "leave the record out by its offset: `since` or `until`",
    ),
    (
        "SaslAuthentication|SslAuthentication|SSLHandshake",
        "Spark could not authenticate with Kafka",
        "see --kafka-properties",
    ),
    (
        "PBES2 SecretKeyFactory not available",
        "this Java cannot read the encrypted PEM key of the Kafka client properties",
        "give the key in a PKCS#12 store, or run Spark on Java 19 or newer",
    ),
    (
        "Failed to find data source: kafka|DATA_SOURCE_NOT_FOUND",
        "Spark has no Kafka source",
        (
            "give --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION of your Spark, or"
            " with --remote its jars with --jars"
        ),
    ),
    (
        # The last two come from clients after all retries: before Spark 4.1, and since.
        (
            "Received incorrect server side session identifier|SESSION_CHANGED"
            "|RETRIES_EXCEEDED|StatusCode[.]UNAVAILABLE"
        ),
        "the connection to the Spark Connect server was lost during the run",
        "run the command again when the server is back",
    ),
    (
        "INVALID_PARAMETER_VALUE.(PATTERN|REGEX_GROUP_INDEX)|PatternSyntaxException",
        "a pattern (regex:) is not valid for Java, or has no group",
        r"write a Java regular expression whose first group is the value: regex:id=(\d+)",
    ),
    (
        "CSV header does not conform to the schema",
        "the CSV files have different columns, or the same ones in another order",
        "compare the files of each header by themselves: --files",
    ),
    (
        "No suitable driver",
        "Spark finds no driver for the database's URL",
        "name its class in the table's `options`, as `driver`, and its jar with --jars",
    ),
    (
        "OutOfMemoryError|Java heap space",
        "Spark ran out of memory",
        "give Spark more memory: --conf spark.driver.memory=8g",
    ),
    (
        "PATH_NOT_FOUND|FileNotFoundException|FILE_NOT_EXIST",
        "a file is missing, or was replaced while it was read",
        (
            "compare files that are not being written, or copy them first; with --master on several"
            " machines, files and --report are on storage that these machines share"
        ),
    ),
)


@contextmanager
def spark_errors_translated() -> Iterator[None]:
    """Raise ReconcileError in place of Spark's errors within the block."""
    try:
        yield
    except spark_errors() as exc:
        raise translated(str(exc)) from exc


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the classes of Spark's errors; before Spark 4 some are those of Py4J."""
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JError
    except ImportError:
        # The client of Spark Connect alone has no JVM of its own.
        return (PySparkException,)
    return (PySparkException, Py4JError)


def translated(text: str) -> ReconcileError:
    """Return the error for a message of Spark."""
    if _REMOVED.search(text):
        return RecordsRemoved(
            "records of the range were removed before they were read, by retention or with their"
            f" topic: {summary(text)}",
            hint="run it again",
        )
    for pattern, message, hint in _KNOWN:
        if re.search(pattern, text, re.IGNORECASE):
            return ReconcileError(f"{message}: {summary(text)}", hint=hint)
    return ReconcileError(f"Spark failed: {summary(text)}", hint="spark.log may have details")


def summary(text: str) -> str:
    """Return the useful lines of a message: the first, and the last cause."""
    # Py4J writes a colon before Java's error.
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(_SILENT)]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    first = said[0] if said else "no message"
    return (f"{first} ({causes[-1]})" if causes and causes[-1] != first else first)[:600]
