"""Parquet files with columns that Spark does not read: times of day become texts.

Spark refuses such files as a whole. Their footers say which columns these are.
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
    every = pa.unify_schemas([parquet.read_schema(file) for file in local_files(paths)])
    fields = [field for field in every if not wanted or field.name in wanted]
    refused = [f"{field.name} ({field.type})" for field in fields if _is_refused(field.type)]
    if refused:
        raise ReconcileError(
            f"Spark does not read these columns of Parquet: {', '.join(refused)}",
            hint="name the columns that are compared: --column NAME",
        )
    return StructType([_field(each) for each in fields])


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
