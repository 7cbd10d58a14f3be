"""Files that Spark does not read as they are: times of day, wider columns, nanoseconds.

The footers of Parquet files give a schema that Spark reads. Times of day become texts. A column
that is wider in some files than in others is read as wide. Of timestamps with nanoseconds, in
Parquet's INT96 and in ORC, Spark reads the microseconds without a word: files that have such ones
are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyconnect_reconcile.data_sides import HELD, TIME
from pyconnect_reconcile.errors import NotAuditable, ReconcileError
from pyconnect_reconcile.files import is_local, local_files
from pyconnect_reconcile.spark.errors import spark_errors
from pyconnect_reconcile.values.normal import quoted

if TYPE_CHECKING:
    import pyarrow as pa

REFUSALS = (
    "PARQUET_TYPE_ILLEGAL",
    "Illegal Parquet type",
    "UNSUPPORTED_TIME_TYPE",
    "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
    "CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE",
    "CANNOT_MERGE_SCHEMAS",
)
LAKE_HINT = "install the extra lake, which names them: pip install '.[lake]'"
_MICROS_OF = {"ms": 1000, "us": 1}
_MOST_DIGITS = 38
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_DAY_MICROS = 86_400_000_000
_OPTIONS = {"recursiveFileLookup": "true", "mergeSchema": "true"}


def readable_schema(paths: Sequence[str], wanted: Collection[str]) -> StructType:
    """Return the schema with which Spark reads files: `wanted` columns, without them all.

    Whole numbers may have become wider from file to file. ReconcileError names the columns that
    Spark does not read.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as exc:
        raise ReconcileError(
            "Spark does not read all columns of these Parquet files", hint=LAKE_HINT
        ) from exc
    schemas = [parquet.read_schema(file) for file in local_files(paths)]
    different = (pa.ArrowTypeError, pa.ArrowInvalid)
    try:
        try:
            every = pa.unify_schemas(schemas)
        except different:
            narrow = {pa.int8(), pa.int16(), pa.int32()}
            wide = (
                [each.with_type(pa.int64()) if each.type in narrow else each for each in schema]
                for schema in schemas
            )
            every = pa.unify_schemas([pa.schema(fields) for fields in wide])
    except different as exc:
        raise ReconcileError(
            f"the Parquet files have columns of different types: {exc}",
            hint="compare the files of one type by their paths: --files",
        ) from exc
    fields = [field for field in every if not wanted or field.name in wanted]
    refused = [f"{field.name} ({field.type})" for field in fields if _is_refused(field.type)]
    if refused:
        raise ReconcileError(
            f"Spark does not read these columns of Parquet: {', '.join(refused)}",
            hint="name the columns that are compared: --column NAME",
        )
    return StructType([_field(each) for each in fields])


def with_clock_texts(frame: DataFrame, units: Mapping[str, str]) -> DataFrame:
    """Return rows whose times of day, numbers of these units (`ms`, `us`), are texts.

    A number beyond a day becomes a text that is no time.
    """
    for name, unit in units.items():
        number = sql.col(quoted(name)).cast("bigint")
        most = _DAY_MICROS // _MICROS_OF[unit] - 1
        micros = sql.timestamp_micros(number * _MICROS_OF[unit])
        text = sql.when(number.between(0, most), sql.date_format(micros, "HH:mm:ss.SSSSSS"))
        text = text.otherwise(sql.concat(number.cast("string"), sql.lit(f" {unit}")))
        frame = frame.withColumn(name, text.alias(name, metadata={HELD: TIME}))
    return frame


def _is_refused(kind: pa.DataType) -> bool:
    from pyarrow import types

    if types.is_nested(kind):
        inside = [kind.field(number).type for number in range(kind.num_fields)]
        return any(types.is_time(each) or _is_refused(each) for each in inside)
    if types.is_time(kind) or types.is_timestamp(kind):
        return str(kind.unit) == "ns"
    return bool(
        types.is_float16(kind) or (types.is_decimal(kind) and kind.precision > _MOST_DIGITS)
    )


def _field(field: pa.Field) -> StructField:
    from pyarrow import types
    from pyspark.sql.pandas.types import from_arrow_type

    kind = field.type
    if types.is_time(kind):
        number = IntegerType() if types.is_time32(kind) else LongType()
        return StructField(field.name, number, metadata={HELD: TIME, "unit": kind.unit})
    if types.is_dictionary(kind):
        kind = kind.value_type
    wider: dict[str, Any] = {
        "uint8": ShortType(),
        "uint16": IntegerType(),
        "uint32": LongType(),
        "uint64": DecimalType(20, 0),
    }
    found = wider.get(str(kind)) or from_arrow_type(kind, prefer_timestamp_ntz=True)
    return StructField(field.name, found)


def refuse_nanoseconds(
    spark: SparkSession,
    form: str,
    paths: Sequence[str],
    timed: Sequence[StructField],
    located: Callable[[str], str],
) -> None:
    """Raise NotAuditable where columns of timestamps in Parquet or ORC have more than microseconds.

    `located` writes a path as Spark takes it. Read as bytes or texts the timestamps are whole.
    """
    if form == "parquet":
        paths = _with_int96(spark, paths, [field.name for field in timed], located)
    if not paths:
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
    """Return the local files that have one of the columns as INT96; Spark's own are left out."""
    try:
        import pyarrow as pa  # noqa: F401
    except ImportError:
        unread = [*paths]
    else:
        unread = [path for path in paths if not is_local(path)]
    if unread and _has_foreign_int96(spark, [*map(located, unread)]):
        raise NotAuditable(
            f"{unread[0]} has timestamps of nanoseconds (INT96), of which Spark reads microseconds",
            hint="copy the files to this machine, or name the other columns: --column NAME;"
            f" {LAKE_HINT}",
        )
    files = map(str, local_files([path for path in paths if path not in unread]))
    return [file for file in files if int96_columns(file) & {*names}]


def _has_foreign_int96(spark: SparkSession, located: Sequence[str]) -> bool:
    with _switched_off(spark, "spark.sql.parquet.int96AsTimestamp"):
        try:
            spark.read.options(**_OPTIONS).parquet(*located).schema  # noqa: B018
        except spark_errors() as exc:
            return "INT96" in str(exc)
    return False


def int96_columns(file: str) -> set[str]:
    """Return the columns of a Parquet file that have INT96, none of a file that Spark wrote.

    Spark's timestamps have microseconds. Another writer may have kept the schema of a file of
    Spark, where Spark looks for no INT96.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        footer = parquet.read_metadata(file)
    except (OSError, pa.ArrowInvalid) as exc:
        raise ReconcileError(f"{file} is not a Parquet file: {exc}") from exc
    if footer.created_by.startswith("parquet-mr") and _SPARK_SCHEMA in (footer.metadata or {}):
        return set()
    columns = [footer.schema.column(number) for number in range(len(footer.schema))]
    old = [each.path for each in columns if each.physical_type == "INT96"]
    return {name for path in old for name in (path, path.partition(".")[0])}


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
            return MapType(_whole(kind.keyType, form), _whole(kind.valueType, form))
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
            keys, values = sql.map_keys(value), sql.map_values(value)
            found = sql.exists(keys, lambda each: _has_more(each, kind.keyType, form))
            found |= sql.exists(values, lambda each: _has_more(each, kind.valueType, form))
    return sql.coalesce(found, sql.lit(False))
