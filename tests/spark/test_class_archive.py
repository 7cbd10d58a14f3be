"""The driver's JVM maps the archive of Spark's classes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from pyconnect_cli.reconcile.spark_jars import SparkArchive

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]


def test_the_driver_maps_the_archive(spark: SparkSession, spark_archive: SparkArchive) -> None:
    """The option reaches the driver, and Java accepts the archive for its class path."""
    gateway = SparkContext._gateway
    assert gateway is not None
    maps = Path(f"/proc/{gateway.proc.pid}/maps").read_text()
    assert str(spark_archive.path) in maps
