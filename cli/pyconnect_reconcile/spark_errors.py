"""Turns what Spark and Kafka's Java client raise into one message; never a stack trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyconnect_reconcile.errors import ReconcileError

_KNOWN = (
    (
        re.compile(r"OffsetOutOfRange|data loss|fetched earliest offset|KAFKA_DATA_LOSS", re.I),
        "records of the range were removed while it was read (retention, or the topic was"
        " deleted)",
        "run it again, or raise the topic's retention; --since narrows the range",
    ),
    (
        re.compile(r"UnknownTopicOrPartition", re.I),
        "a topic was deleted while it was read",
        None,
    ),
    (
        re.compile(r"AuthorizationException|GroupAuthorization", re.I),
        "Kafka refuses it: the principal lacks Read on the topic or on the groups `spark-kafka-*`",
        "grant Read on the topic and on the group prefix spark-kafka",
    ),
    (
        re.compile(r"SaslAuthentication|SslAuthentication|SSLHandshake", re.I),
        "Spark could not authenticate with Kafka",
        "see --kafka-properties: Spark needs Java's names, as kafka-console-consumer does",
    ),
    (
        re.compile(r"Failed to find data source: kafka|ClassNotFound.*kafka", re.I),
        "Spark has no Kafka source",
        "give --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION of your Spark",
    ),
    (
        re.compile(r"OutOfMemoryError|Java heap space", re.I),
        "Spark ran out of memory",
        "give it more: --conf spark.driver.memory=8g",
    ),
    (
        re.compile(r"PATH_NOT_FOUND|FileNotFoundException|SparkFileNotFound|does not exist", re.I),
        "a file is not there, or was replaced while it was read",
        "compare files that nobody writes, or copy them first",
    ),
)  # fmt: skip


@contextmanager
def spark_errors_translated() -> Iterator[None]:
    """Raise ReconcileError in place of Spark's errors within the block."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as exc:
        raise translated(str(exc)) from exc


def translated(text: str) -> ReconcileError:
    """Return the error for what Spark said."""
    for pattern, message, hint in _KNOWN:
        if pattern.search(text):
            return ReconcileError(f"{message}: {_summary(text)}", hint=hint)
    return ReconcileError(f"Spark failed: {_summary(text)}", hint="spark.log has the whole of it")


def _summary(text: str) -> str:
    """The lines that say something: the first, and the last cause."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return "no message"
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    first = lines[0] if not lines[0].startswith("An error occurred") or len(lines) < 2 else lines[1]
    return (f"{first} ({causes[-1]})" if causes else first)[:600]
