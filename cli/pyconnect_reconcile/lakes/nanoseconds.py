"""Timestamps of files with nanoseconds, of which Spark reads the microseconds without a word.

They are in Parquet's INT96 and in ORC. Read as bytes or texts they are whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import or_

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyconnect_reconcile.errors import NotAuditable, ReconcileError
from pyconnect_reconcile.files import is_local, local_files
from pyconnect_reconcile.spark.errors import spark_errors
from pyconnect_reconcile.values.normal import quoted

_OPTIONS = {"recursiveFileLookup": "true", "mergeSchema": "true"}


def refuse_nanoseconds(
    spark: SparkSession,
    form: str,
    paths: Sequence[str],
    fields: Sequence[StructField],
    located: Callable[[str], str],
) -> None:
    """Raise NotAuditable where compared columns of Parquet or ORC have more than microseconds.

    `located` writes a path as Spark takes it.
    """
    timed = [field for field in fields if "timestamp" in field.dataType.simpleString()]
    if timed and form == "parquet":
        paths = _with_int96(spark, paths, [field.name for field in timed], located)
    if not timed or not paths:
        return
    schema = StructType([StructField(each.name, _whole(each.dataType, form)) for each in timed])
    reader = spark.read.format(form).options(**_OPTIONS).schema(schema)
    with _switched_off(spark, "spark.sql.parquet.enableVectorizedReader"):
        frame = reader.load([*map(located, paths)])
        has = (
            sql.max(_has_more(sql.col(quoted(each.name)), each.dataType, form)) for each in timed
        )
        [found] = frame.agg(*has).collect()
    if names := [field.name for field, more in zip(timed, found, strict=True) if more]:
        raise NotAuditable(
            f"timestamps of {', '.join(names)} have nanoseconds, of which Spark reads microseconds",
            hint="name the other columns: --column NAME",
        )


def _with_int96(
    spark: SparkSession, paths: Sequence[str], names: Sequence[str], located: Callable[[str], str]
) -> list[str]:
    """Return the files that have one of the columns as INT96; Spark's own have microseconds."""
    with _switched_off(spark, "spark.sql.parquet.int96AsTimestamp"):
        try:
            spark.read.options(**_OPTIONS).parquet(*map(located, paths)).schema  # noqa: B018
        except spark_errors() as exc:
            if "INT96" not in str(exc):
                return []
        else:
            return []
    if remote := [path for path in paths if not is_local(path)]:
        raise NotAuditable(
            f"{remote[0]} has timestamps of nanoseconds (INT96), of which Spark reads microseconds",
            hint="copy the files to this machine, or name the other columns: --column NAME",
        )
    try:
        from pyarrow import parquet
    except ImportError as exc:
        raise ReconcileError(
            "which columns of these Parquet files are INT96 cannot be read",
            hint="install the extra lake, which names them: pip install '.[lake]'",
        ) from exc
    found = []
    for file in map(str, local_files(paths)):
        schema = parquet.ParquetFile(file).schema
        columns = [schema.column(number) for number in range(len(schema))]
        old = {each.path for each in columns if each.physical_type == "INT96"}
        if any({path, path.partition(".")[0]} & {*names} for path in old):
            found.append(file)
    return found


@contextmanager
def _switched_off(spark: SparkSession, name: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, "false")
    try:
        yield
    finally:
        spark.conf.set(name, str(before))


def _whole(kind: DataType, form: str) -> DataType:
    """Return a type with what keeps nanoseconds in place of timestamps."""
    match kind:
        case TimestampType():
            return BinaryType() if form == "parquet" else StringType()
        case StructType():
            return StructType(
                [StructField(each.name, _whole(each.dataType, form)) for each in kind]
            )
        case ArrayType():
            return ArrayType(_whole(kind.elementType, form))
        case MapType():
            return MapType(kind.keyType, _whole(kind.valueType, form))
    return kind


def _has_more(value: Column, kind: DataType, form: str) -> Column:
    """Return whether a timestamp in a value of a type, read as `_whole`, has nanoseconds."""
    found = sql.lit(False)
    match kind:
        case TimestampType() if form == "orc":
            found = value.rlike(r"[.][0-9]{7}")
        case TimestampType():
            # The first eight bytes are the nanoseconds of the day, the lowest byte first.
            digits = (sql.hex(sql.substring(value, byte, 1)) for byte in range(8, 0, -1))
            found = sql.conv(sql.concat(*digits), 16, 10).cast("bigint") % 1000 != 0
        case StructType():
            inside = (_has_more(value[each.name], each.dataType, form) for each in kind)
            found = reduce(or_, inside, found)
        case ArrayType():
            found = sql.exists(value, lambda each: _has_more(each, kind.elementType, form))
        case MapType():
            each_value = sql.map_values(value)
            found = sql.exists(each_value, lambda each: _has_more(each, kind.valueType, form))
    return sql.coalesce(found, sql.lit(False))
