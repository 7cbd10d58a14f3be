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
    time, number = _time(position), _number(rows, position)
    _require_order(rows, position, number)
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


def _require_order(rows: DataFrame, position: TablePosition, number: Column | None) -> None:
    """Refuse rows whose value the column's type does not have: they would be left out as nulls."""
    names = [*position.timestamps, *filter(None, [position.incrementing])]
    odd = sql.lit(False)
    if TOKENS in rows.columns:
        odd = reduce(or_, (sql.col(TOKENS)[name].isNotNull() for name in names), odd)
    if number is not None:
        odd = odd | (number.isNull() & sql.col(f"`{position.incrementing}`").isNotNull())
    if count := rows.where(odd).count():
        raise NotAuditable(
            f"{count_of(count, 'row has')} a value in {' or '.join(names)} that has no place among"
            " the positions of the source, such as infinity or a text of another form",
            hint="correct these values, or compare the rows with --table and --column",
        )


def _time(position: TablePosition) -> Column | None:
    columns = [sql.col(f"`{name}`") for name in position.timestamps]
    return sql.coalesce(*columns) if columns else None


def _number(rows: DataFrame, position: TablePosition) -> Column | None:
    name = position.incrementing
    if name is None:
        return None
    column = sql.col(f"`{name}`")
    # Numbers of any length are texts.
    is_long = rows.schema[name].metadata.get(HELD) == NUMERIC
    return column.cast("decimal(38,10)") if is_long else column


def _after(rows: DataFrame, column: Column, value: str | None) -> Column:
    if value is None:
        return sql.lit(True)
    return column > sql.lit(value).cast(_type(rows, column))


def _type(rows: DataFrame, column: Column) -> str:
    return str(rows.select(column.alias("column")).schema["column"].dataType.simpleString())
