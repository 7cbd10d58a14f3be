"""Parquet files that Spark does not read as they are: their footers give a schema that it reads.

Times of day become texts. A column that is wider in some files than in others is read as wide.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    StructType,
)

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.files import local_files
from pyconnect_reconcile.tokens import HELD, TIME
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
_MICROS_OF = {"ms": 1000, "us": 1}
_MOST_DIGITS = 38


def readable_schema(paths: Sequence[str], wanted: Collection[str]) -> StructType:
    """Return the schema with which Spark reads files: `wanted` columns, without them all.

    ReconcileError names the columns that it does not read.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as exc:
        raise ReconcileError(
            "Spark does not read all columns of these Parquet files",
            hint="install the extra lake, which names them: pip install '.[lake]'",
        ) from exc
    schemas = [parquet.read_schema(file) for file in local_files(paths)]
    try:
        every = _unified(schemas)
    except (pa.ArrowTypeError, pa.ArrowInvalid) as exc:
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


def _unified(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return one schema for files; whole numbers may have become wider from file to file."""
    import pyarrow as pa

    try:
        return pa.unify_schemas(schemas)
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        narrow = {pa.int8(), pa.int16(), pa.int32()}
        wide = (
            [each.with_type(pa.int64()) if each.type in narrow else each for each in schema]
            for schema in schemas
        )
        return pa.unify_schemas([pa.schema(fields) for fields in wide])


def with_clock_texts(frame: DataFrame, units: Mapping[str, str]) -> DataFrame:
    """Return rows whose times of day, numbers of these units (`ms`, `us`), are texts."""
    for name, unit in units.items():
        micros = sql.timestamp_micros(sql.col(quoted(name)).cast("bigint") * _MICROS_OF[unit])
        text = sql.date_format(micros, "HH:mm:ss.SSSSSS")
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
