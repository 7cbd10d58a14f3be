"""Which jars an audit fetches for Spark."""

from __future__ import annotations

import pytest

from pyconnect_cli.reconcile.spark_jars import JDBC, JDBC_CHECKSUMS
from pyconnect_sandbox.coordinates import Coordinate


@pytest.mark.parametrize(
    "driver", sorted(set(JDBC.values()), key=str), ids=lambda driver: driver.artifact
)
def test_the_cache_of_a_driver_expects_this_driver_only(driver: Coordinate) -> None:
    """A cache that also expected the jars of another driver could never be filled."""
    assert set(JDBC_CHECKSUMS[driver]) == {f"{driver.artifact}-{driver.version}.jar"}
