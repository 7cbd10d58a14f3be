"""The rows of a source's table beyond its committed offset, as columns of Spark."""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from pyconnect_reconcile.data_sides import HELD, NUMERIC, TOKENS, TablePosition
from pyconnect_reconcile.errors import NotAuditable
from pyconnect_reconcile.findings import count_of


def with_tail_of(rows: DataFrame, position: TablePosition) -> DataFrame:
    """Return the rows that the source can find, with the column `tail`: not read by then.

    Rows without a position are never read. NotAuditable for values that have no order here.
    """
    time = number = None
    if position.timestamps:
        time = sql.coalesce(*(sql.col(f"`{name}`") for name in position.timestamps))
    # A value that the column's type does not have would be left out as null.
    odd = sql.lit(False)
    names = [*position.timestamps, *filter(None, [position.incrementing])]
    if TOKENS in rows.columns:
        odd = reduce(or_, (sql.col(TOKENS)[name].isNotNull() for name in names), odd)
    if (name := position.incrementing) is not None:
        column = sql.col(f"`{name}`")
        # Numbers of any length are texts.
        is_long = rows.schema[name].metadata.get(HELD) == NUMERIC
        number = column.cast("decimal(38,10)") if is_long else column
        odd = odd | (number.isNull() & column.isNotNull())
    if count := rows.where(odd).count():
        raise NotAuditable(
            f"{count_of(count, 'row has')} a value in {' or '.join(names)} that has no place among"
            " the positions of the source, such as infinity or a text of another form",
            hint="correct these values, or compare the rows with --table and --column",
        )
    found = sql.lit(True)
    for column in (time, number):
        if column is not None:
            found = found & column.isNotNull()
    beyond = sql.lit(False)
    if number is not None:
        beyond = _after(rows, number, position.number)
    if time is not None:
        later = _after(rows, time, position.timestamp)
        same = sql.lit(position.timestamp).cast(_type(rows, time)) == time
        beyond = later | (same & beyond) if position.timestamp is not None else later
    return rows.where(found).withColumn("tail", beyond)


def _after(rows: DataFrame, column: Column, value: str | None) -> Column:
    if value is None:
        return sql.lit(True)
    return column > sql.lit(value).cast(_type(rows, column))


def _type(rows: DataFrame, column: Column) -> str:
    return str(rows.select(column.alias("column")).schema["column"].dataType.simpleString())
