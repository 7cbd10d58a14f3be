"""Rows as two 64-bit hashes: what passes through exchanges in place of payloads.

xxHash64 with two seeds; together 128 bits, so that different rows are not taken for the same.
Null and empty differ. `first` alone buckets rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as sql

HASHES = ("first", "second")
SEEDS = (17, 7_046_029_254_386_353_131)


def hashes(columns: Sequence[Column], names: Sequence[str] = HASHES) -> list[Column]:
    """Return the two hashes of a row's columns."""
    parts = [part for column in columns for part in (column.isNull(), column)]
    return [
        # The seed of Spark's xxhash64 is fixed; a literal in front stands for another.
        sql.xxhash64(sql.lit(seed), *parts).alias(name)
        for seed, name in zip(SEEDS, names, strict=True)
    ]
