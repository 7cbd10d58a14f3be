"""Files as rows: what Spark reads of a side's paths, without a change of what is in them."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from pyspark.sql import Column, DataFrame, DataFrameReader
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.data_sides import (
    AVRO,
    CORRUPT,
    DIRECTORY,
    HELD,
    ICEBERG,
    LINE_FORMATS,
    MARK,
    FileSide,
)
from pyconnect_reconcile.errors import NotAuditable, ReconcileError
from pyconnect_reconcile.files import FixedFiles, in_plain_directories, is_local, partition_columns
from pyconnect_reconcile.spark.errors import spark_errors
from pyconnect_reconcile.spec import TopicSide
from pyconnect_reconcile.stores.file_types import (
    REFUSALS,
    readable_schema,
    refuse_nanoseconds,
    with_clock_texts,
)
from pyconnect_reconcile.values.avro_schemas import READER_SCHEMA, clock_units, reader_schema
from pyconnect_reconcile.values.normal import quoted

PATTERN_MARKS, ESCAPED = re.compile(r"([\\*?\[\]{}])"), r"\\\1"
COLUMNAR = frozenset({"csv", "parquet", "orc", AVRO})
JSON_FORMS = frozenset({"json", "connect-json", "json-schema"})
EMPTY = f"{MARK}empty"
_BYTES = "ISO-8859-1"
"""An encoding of which each byte is one character."""
TIME_FIELDS = "Spark does not support time fields"
# Values of CSV may have newlines and doubled quotes; files may have columns that others have not.
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "csv": {
        "header": "true",
        "multiLine": "true",
        "escape": '"',
        "enforceSchema": "false",
        # Spark reads an empty text, which is in quotes, as null otherwise.
        "emptyValue": EMPTY,
    },
    "parquet": {"mergeSchema": "true"},
    "orc": {"mergeSchema": "true"},
}


def _located(path: str) -> str:
    """Return a path as Spark takes it: a local one not encoded, without patterns if it exists."""
    if not is_local(path):
        return path
    absolute = str(Path(path).absolute())
    return f"file://{PATTERN_MARKS.sub(ESCAPED, absolute) if Path(path).exists() else absolute}"


def _parquet(
    bench: Bench, reader: DataFrameReader, located: list[str], paths: tuple[str, ...]
) -> DataFrame:
    """Read Parquet; times of day, which Spark does not know, become texts."""
    try:
        frame = reader.load(located)
        # A Spark Connect server looks at the files now.
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
    """Raise NotAuditable where compared columns have timestamps that Spark would cut."""
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
    """Return the rows of paths of a side.

    A `line_end` keeps what is before it in a line: a carriage return at the end is one of a record.
    """
    if side.format in LINE_FORMATS:
        paths = bench.files.get(side.place, FixedFiles()).as_read(paths)
    located = [_located(path) for path in paths]
    # JSON lines are compared as texts in their canonical form: no schema is inferred.
    form = "text" if side.format == "json" else side.format
    options = {**OPTIONS.get(form, {}), **side.options}
    if form == "text" or (form in COLUMNAR and in_plain_directories(paths)):
        # Spark would read files of the directory itself and of partitions only.
        options["recursiveFileLookup"] = "true"
    if line_end:
        options["lineSep"] = line_end
    if form == AVRO:
        options[READER_SCHEMA] = reader_schema(paths, options.get(READER_SCHEMA))
    named = partition_columns(paths) if form in COLUMNAR else set()
    if named:
        whole = bench.spark.read.format(form).options(**{**options, "recursiveFileLookup": "true"})
        if named & {*whole.load(located).schema.names}:
            # Spark would read the names of directories in place of the column of their files.
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
    # Names of directories are texts: Spark makes numbers of digits.
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
    # In place of bytes that are no UTF-8 Spark would read one character, whatever they are.
    is_raw = not {"encoding", "charset"} & {*map(str.lower, options)}
    if is_raw:
        of_bytes = {name: value.encode().decode(_BYTES) for name, value in options.items()}
        reader = reader.options(**of_bytes, encoding=_BYTES)

    def text(name: str) -> Column:
        found = sql.col(quoted(name))
        is_text = name in directories or not is_raw
        return found if is_text else sql.encode(found, _BYTES).cast("string")

    stored = reader.load(located).schema.names
    names = [
        name if name in directories or not is_raw else _name_of(name.encode(_BYTES))
        for name in stored
    ]
    # Spark would leave out what a row has behind its last column.
    whole = StructType([StructField(name, StringType()) for name in (*stored, CORRUPT)])
    rows = reader.schema(whole).option("columnNameOfCorruptRecord", CORRUPT).load(located)
    corrupt = text(CORRUPT)
    if len(names) == 1:
        # LakeSink's row of a null in the only column: an empty line would be no row.
        corrupt = sql.when(corrupt != ",", corrupt)
    kept = (
        sql.when(found != EMPTY, found).when(found == EMPTY, "").alias(name)
        for name, found in zip(names, map(text, stored), strict=True)
    )
    return rows.select(*kept, corrupt.alias(CORRUPT))


def _name_of(raw: bytes) -> str:
    """Return the name of a column; the first one may have a byte order mark before its quotes."""
    text = raw.removeprefix(BOM_UTF8).decode(errors="replace")
    return text.strip('"') if raw.startswith(BOM_UTF8) else text
