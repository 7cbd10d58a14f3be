"""Files as rows: Spark reads a side's paths without a change of their values.

Spark refuses the schemas of some Parquet files. Their footers then give a schema that it reads:
times of day become texts, and a column that is wider in some files than in others is read as wide.
CSV is read byte by byte. Of timestamps with nanoseconds, in Parquet's INT96 and in ORC, Spark reads
the microseconds without a warning: files with such timestamps are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
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

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.data_sides import (
    AVRO,
    CORRUPT,
    DIRECTORY,
    HELD,
    ICEBERG,
    LINE_FORMATS,
    MARK,
    TIME,
    FileSide,
)
from pyconnect_reconcile.errors import NotAuditable, ReconcileError, spark_errors
from pyconnect_reconcile.files import (
    FixedFiles,
    in_plain_directories,
    int96_columns,
    is_local,
    local_files,
    partition_columns,
)
from pyconnect_reconcile.spec import TopicSide
from pyconnect_reconcile.values.normal import quoted
from pyconnect_reconcile.values.schemas import READER_SCHEMA, clock_units, reader_schema

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
_DAY_MICROS = 86_400_000_000
_OPTIONS = {"recursiveFileLookup": "true", "mergeSchema": "true"}


def readable_schema(paths: Sequence[str], wanted: Collection[str]) -> StructType:
    """Return the schema with which Spark reads files: the `wanted` columns, or all if empty.

    The width of whole numbers may grow from file to file. ReconcileError names the columns that
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
    """Return rows whose times of day are texts; the columns are numbers in `units`, `ms` or `us`.

    A number beyond a day becomes a text that is not a time.
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

    `located` converts a path to Spark's form. Timestamps that are read as bytes or texts are whole.
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
    """Return the local files that have one of the columns as INT96, except Spark's own files."""
    try:
        import pyarrow as pa  # noqa: F401
    except ImportError:
        unread = [*paths]
    else:
        unread = [path for path in paths if not is_local(path)]
    try:
        with _switched_off(spark, "spark.sql.parquet.int96AsTimestamp"):
            if unread:
                spark.read.options(**_OPTIONS).parquet(*map(located, unread)).schema  # noqa: B018
    except spark_errors() as exc:
        if "INT96" in str(exc):
            raise NotAuditable(
                f"{unread[0]} has timestamps of nanoseconds (INT96), of which Spark reads"
                " microseconds",
                hint="copy the files to this machine, or name the other columns: --column NAME;"
                f" {LAKE_HINT}",
            ) from exc
    files = map(str, local_files([path for path in paths if path not in unread]))
    return [file for file in files if int96_columns(file) & {*names}]


@contextmanager
def _switched_off(spark: SparkSession, name: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, "false")
    try:
        yield
    finally:
        spark.conf.set(name, str(before))


def _whole(kind: DataType, form: str) -> DataType:
    """Return a type with bytes or texts, which keep nanoseconds, in place of timestamps."""
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


PATTERN_MARKS, ESCAPED = re.compile(r"([\\*?\[\]{}])"), r"\\\1"
COLUMNAR = frozenset({"csv", "parquet", "orc", AVRO})
JSON_FORMS = frozenset({"json", "connect-json", "json-schema"})
EMPTY = f"{MARK}empty"
_BYTES = "ISO-8859-1"
"""In this encoding each byte is one character."""
TIME_FIELDS = "Spark does not support time fields"
# Values of CSV may have newlines and doubled quotes; files may have different columns.
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "csv": {
        "header": "true",
        "multiLine": "true",
        "escape": '"',
        "enforceSchema": "false",
        # Otherwise Spark reads an empty text, which is in quotes, as null.
        "emptyValue": EMPTY,
    },
    "parquet": {"mergeSchema": "true"},
    "orc": {"mergeSchema": "true"},
}


def _located(path: str) -> str:
    """Return a path in Spark's form: local ones not encoded, and without patterns if they exist."""
    if not is_local(path):
        return path
    absolute = str(Path(path).absolute())
    return f"file://{PATTERN_MARKS.sub(ESCAPED, absolute) if Path(path).exists() else absolute}"


def _parquet(
    bench: Bench, reader: DataFrameReader, located: list[str], paths: tuple[str, ...]
) -> DataFrame:
    """Read Parquet; times of day, which Spark does not support, become texts."""
    try:
        frame = reader.load(located)
        # A Spark Connect server opens the files only now.
        frame.schema  # noqa: B018
    except spark_errors() as exc:
        if not any(refusal in str(exc) for refusal in REFUSALS):
            raise
        wanted = {rule.name.partition(".")[0] for rule in bench.spec.columns}
        schema = readable_schema(paths, wanted)
        frame = reader.schema(schema).load(located)
        units = {each.name: each.metadata["unit"] for each in schema if HELD in each.metadata}
        frame = with_clock_texts(frame, units)
    return frame


def require_microseconds(bench: Bench, side: FileSide, fields: Iterable[StructField]) -> None:
    """Raise NotAuditable for compared timestamps that Spark would cut to microseconds."""
    files = bench.files.get(side.place, FixedFiles())
    timed = [field for field in fields if "timestamp" in field.dataType.simpleString()]
    if timed and side.format in {"parquet", "orc"}:
        paths = (*files.listed, *files.beyond) or side.paths
        refuse_nanoseconds(bench.spark, side.format, paths, timed, _located)
    if timed and files.nanoseconds is not None:
        raise NotAuditable(
            f"{files.nanoseconds}, a file of {side.paths[0]}, may have nanoseconds in"
            f" {', '.join(field.name for field in timed)}, of which Iceberg reads microseconds",
            hint="name the other columns: --column NAME",
        )


def load(bench: Bench, side: FileSide, paths: tuple[str, ...], line_end: str) -> DataFrame:
    """Return the rows of a side's paths.

    With a `line_end` a carriage return before it belongs to the line: the record has it.
    """
    if side.format in LINE_FORMATS:
        paths = bench.files.get(side.place, FixedFiles()).as_read(paths)
    located = [_located(path) for path in paths]
    # JSON lines are compared as texts in their canonical form: no schema is inferred.
    form = "text" if side.format == "json" else side.format
    options = {**OPTIONS.get(form, {}), **side.options}
    if form == "text" or (form in COLUMNAR and in_plain_directories(paths)):
        # Otherwise Spark reads only files of the directory itself and of partitions.
        options["recursiveFileLookup"] = "true"
    if line_end:
        options["lineSep"] = line_end
    if form == AVRO:
        options[READER_SCHEMA] = reader_schema(paths, options.get(READER_SCHEMA))
    named = partition_columns(paths) if form in COLUMNAR else set()
    if named:
        whole = bench.spark.read.format(form).options(**{**options, "recursiveFileLookup": "true"})
        if named & {*whole.load(located).schema.names}:
            # Otherwise the names of directories replace the files' own column.
            options["recursiveFileLookup"] = "true"
    reader = bench.spark.read.format(form).options(**options)
    if form == ICEBERG:
        try:
            frame = reader.load(bench.files[side.place].table)
            frame.schema  # noqa: B018
        except spark_errors() as exc:
            if TIME_FIELDS not in str(exc):
                raise
            raise ReconcileError(
                f"{side.paths[0]} has columns of times of day, and Iceberg's library reads no such"
                " table in Spark",
                hint="audit the data files by their paths: --files with --format parquet",
            ) from exc
        return frame
    if form == "csv":
        return _csv(reader, located, options, named)
    if form == AVRO:
        frame = with_clock_texts(reader.load(located), clock_units(options[READER_SCHEMA]))
    elif form == "parquet":
        frame = _parquet(bench, reader, located, paths)
    else:
        frame = reader.load(located)
    named &= {*frame.schema.names}
    sides = [each for each in (bench.spec.left, bench.spec.right) if isinstance(each, TopicSide)]
    members = any(each.row is None and each.value in {*JSON_FORMS, AVRO} for each in sides)
    is_whole = any(HELD in field.metadata for field in frame.schema)
    if not named or "recursiveFileLookup" in options or not members or is_whole:
        return frame
    # Names of directories are texts, but Spark would make numbers of digits.
    fields = [StructField(f.name, StringType()) if f.name in named else f for f in frame.schema]
    frame = reader.schema(StructType(fields)).load(located)
    held = {HELD: DIRECTORY}
    return frame.withColumns({n: sql.col(quoted(n)).alias(n, metadata=held) for n in named})


def _csv(
    reader: DataFrameReader,
    located: list[str],
    options: Mapping[str, str],
    directories: Collection[str],
) -> DataFrame:
    """Read CSV as texts; `directories` are columns in the names of directories."""
    # Spark would replace all bytes that are not UTF-8 by the same character.
    is_raw = not {"encoding", "charset"} & {*map(str.lower, options)}
    if is_raw:
        of_bytes = {name: value.encode().decode(_BYTES) for name, value in options.items()}
        reader = reader.options(**of_bytes, encoding=_BYTES)

    def text(name: str) -> Column:
        found = sql.col(quoted(name))
        is_text = name in directories or not is_raw
        return found if is_text else sql.encode(found, _BYTES).cast("string")

    stored = reader.load(located).schema.names
    names = stored
    if is_raw:
        names = [
            name if name in directories else name.encode(_BYTES).decode(errors="replace")
            for name in stored
        ]
        # Spark does not strip quotes that follow a byte order mark.
        names[:1] = [n[1:].strip('"') if n.startswith("\ufeff") else n for n in names[:1]]
    # Without this column Spark drops values behind a row's last column.
    whole = StructType([StructField(name, StringType()) for name in (*stored, CORRUPT)])
    rows = reader.schema(whole).option("columnNameOfCorruptRecord", CORRUPT).load(located)
    corrupt = text(CORRUPT)
    if len(names) == 1:
        # LakeSink writes a comma for a null in the only column: an empty line would not be a row.
        corrupt = sql.when(corrupt != ",", corrupt)
    kept = (
        sql.when(found != EMPTY, found).when(found == EMPTY, "").alias(name)
        for name, found in zip(names, map(text, stored), strict=True)
    )
    return rows.select(*kept, corrupt.alias(CORRUPT))
