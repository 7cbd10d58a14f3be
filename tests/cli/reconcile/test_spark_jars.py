"""Which jars an audit fetches for Spark."""

from __future__ import annotations

import pytest

from pyconnect_cli.errors import PreconditionFailed
from pyconnect_cli.reconcile import spark_jars


def test_the_jars_of_an_unknown_spark_are_refused_with_the_ways_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error names this Spark, the versions with known jars, and --packages."""
    monkeypatch.setattr(spark_jars, "require_spark", lambda: "1.2.3")
    with pytest.raises(PreconditionFailed, match=r"Spark 1\.2\.3") as caught:
        spark_jars.kafka_source_jars()
    assert caught.value.hint is not None
    assert all(word in caught.value.hint for word in ("--packages", *spark_jars.KAFKA_SOURCE))
