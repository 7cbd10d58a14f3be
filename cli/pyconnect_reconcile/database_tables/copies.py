"""Copies of tables: what one statement returned, so that the rows are those of one moment.

A table cannot be read twice with the same answer while a sink writes it. SQLite is read by
Python's own driver, other databases by Spark over JDBC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyconnect_reconcile.database_tables import sqlite
from pyconnect_reconcile.document import Bounds
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.files import FixedFiles
from pyconnect_reconcile.properties import table_properties
from pyconnect_reconcile.spark.errors import spark_errors_translated
from pyconnect_reconcile.table_side import OFFSET_COLUMNS, SQLITE, TableSide, committed_bounds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FETCH_ROWS = "10000"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedTable:
    """A table's rows in files, and the offsets that were committed before they were read."""

    frame: DataFrame
    files: FixedFiles
    committed: Bounds = field(default_factory=dict)


def copied(session: Callable[[], SparkSession], side: TableSide, directory: Path) -> CopiedTable:
    """Copy a table below `directory`; ReconcileError when the database refuses it."""
    rows = directory / "rows"
    files = FixedFiles(copies={rows: side.table})
    if side.url.startswith(SQLITE):
        copy = sqlite.copied(side, rows)
        with spark_errors_translated():
            frame = copy.read(session(), rows)
        return CopiedTable(frame=frame, files=files, committed=copy.committed)
    with spark_errors_translated():
        # In this order: rows may be newer than the offsets, never older.
        committed = _committed(session(), side) if side.offsets else {}
        # It imports Spark, which plans without tables do without.
        from pyconnect_reconcile.database_tables.exact import exact_rows

        loaded = exact_rows(partial(_reader, session(), side), side.url, side.table, side.zone)
        # Executors write: a relative path would be one of the driver's JVM.
        place = rows.absolute().as_uri()
        loaded.write.parquet(place)
        _require_shared(rows)
        return CopiedTable(frame=session().read.parquet(place), files=files, committed=committed)


def _require_shared(rows: Path) -> None:
    """Refuse a copy on the disks of executors: Spark would read it as an empty table."""
    from pyspark.sql.utils import is_remote

    if not is_remote() and not any(rows.glob("*.parquet")):
        raise ReconcileError(
            f"{rows.parent} is not the same directory for the driver and its executors",
            hint="tables are copied into the report's directory: name one with --report on storage"
            " that all machines share",
        )


def _reader(spark: SparkSession, side: TableSide, table: str) -> DataFrame:
    from pyconnect_reconcile.database_tables.exact import exact_address, exact_options

    options = {
        "fetchsize": FETCH_ROWS,
        "preferTimestampNTZ": "true",
        **exact_options(side.url, side.options),
        **table_properties(side.properties),
        **exact_address(side.url),
        "dbtable": table,
    }
    return spark.read.format("jdbc").options(**options).load()


def _committed(spark: SparkSession, side: TableSide) -> Bounds:
    assert side.offsets is not None
    rows = _reader(spark, side, side.offsets.table).select(*OFFSET_COLUMNS).collect()
    return committed_bounds(side.offsets.connector, rows)
