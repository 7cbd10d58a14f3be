r"""Records as the lines that a file sink writes of them, as columns of Spark.

FileStreamSink writes a value as text and ends it with a newline. So a null value is the line
`null`, and a value with line ends in it is several lines, as Spark and Java read text:
`\n`, `\r\n` and `\r` end a line.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from pyconnect_reconcile.file_side import FileSide
from pyconnect_reconcile.spec import Spec, TopicSide

# Of this charset each byte is one character: no byte is changed on the way.
BYTES = "ISO-8859-1"
LINE_ENDS = r"\r\n|\r|\n"


def writes_lines(spec: Spec) -> bool:
    """Return whether records of topics are compared with the lines that a sink wrote of them."""
    return (
        spec.job == "topic-sink"
        and isinstance(spec.left, TopicSide)
        and spec.left.value in {"bytes", "text"}
        and isinstance(spec.right, FileSide)
        and spec.right.format == "text"
        and not spec.columns
    )


def with_lines(records: DataFrame) -> DataFrame:
    """Return one row for each line of each record; `value` is the line."""
    value = sql.coalesce("value", sql.lit(b"null"))
    # The newline of the sink ends the last line; a split returns an empty text behind it.
    text = sql.concat(sql.decode(value, BYTES), sql.lit("\n"))
    parts = sql.split(text, LINE_ENDS)
    lines = sql.transform(
        sql.slice(parts, 1, sql.size(parts) - 1), lambda line: sql.encode(line, BYTES)
    )
    several = value.cast("string").contains("\n") | value.cast("string").contains("\r")
    return records.withColumn(
        "value", sql.explode(sql.when(several, lines).otherwise(sql.array(value)))
    )
