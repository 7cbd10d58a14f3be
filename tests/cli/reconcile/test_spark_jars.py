"""The jars that an audit fetches for Spark."""

from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from pyconnect_cli.errors import PreconditionFailed
from pyconnect_cli.reconcile import spark_jars
from tests.support.cases import cases


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that pretends an installed release of PySpark, which cannot be imported."""

    def install(version: str) -> None:
        (tmp_path / "version.py").write_text(f"__version__: str = '{version}'\n")
        spec = ModuleSpec("pyspark", None, origin=str(tmp_path / "__init__.py"))
        monkeypatch.setattr(spark_jars, "find_spec", lambda name: spec)

    return install


@cases("version", "3.4.4", "4.3.0", "5.0.0.dev1")
def test_an_unknown_release_of_spark_is_refused_with_the_known_ones(
    version: str, installed: Callable[[str], None]
) -> None:
    """A release of Spark without known jars is refused, and the error names the known lines."""
    installed(version)
    with pytest.raises(PreconditionFailed) as caught:
        spark_jars.kafka_source_jars()
    assert f"Spark {version}" in caught.value.message
    assert all(line in caught.value.message for line in spark_jars.RELEASES)


@cases("version, scala", ("3.5.0", "2.12"), ("4.0.5", "2.13"), ("4.1.0", "2.13"), ("4.2.1", "2.13"))
def test_a_line_of_spark_has_its_jars_for_all_patch_releases(
    version: str, scala: str, installed: Callable[[str], None]
) -> None:
    """All patch releases of a line use jars of that line and of PySpark's Scala version."""
    installed(version)
    line = spark_jars.line_of(version)
    for use in (spark_jars.KAFKA, spark_jars.AVRO):
        of_spark = [path for path in spark_jars.known_jars(use) if "org/apache/spark/" in path]
        assert of_spark
        assert all(f"_{scala}/{line}." in path for path in of_spark)
    assert len(spark_jars.known_jars(spark_jars.KAFKA)) == 4


def test_a_release_that_lacks_a_jar_is_refused(installed: Callable[[str], None]) -> None:
    """Iceberg has no library for Spark 4.2 yet: the error says so and names the ways out."""
    installed("4.2.1")
    with pytest.raises(PreconditionFailed, match=r"Spark 4\.2 reads Iceberg tables") as caught:
        spark_jars.iceberg_jars()
    assert caught.value.hint is not None
    assert all(word in caught.value.hint for word in ("--packages", "4.1"))
