"""Releases of Spark on which the other tests do not run."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from platformdirs import user_cache_path
from pyspark import cloudpickle

from pyconnect_reconcile.values import releases as json_text
from tests.support.audits.every_audit import check, every_audit, specs
from tests.support.audits.seeding import seed_topic
from tests.support.commands.processes import run_python
from tests.support.commands.reconcile_command import QUICK_CONF, run_specs
from tests.support.servers.kafka import SharedBroker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements"
JARS_OF = """
from pyconnect_cli.reconcile.spark_jars import avro_jars, kafka_source_jars
print(*kafka_source_jars(), *avro_jars(), sep="\\n")
"""
INSTALL_S = 1200.0


def packages_of(release: str) -> Path:
    """Return a directory with PySpark and Py4J of a release, installed in the user's cache."""
    file = REQUIREMENTS / f"spark-{release}.txt"
    version = re.search(r"^pyspark==(\S+)", file.read_text(), re.MULTILINE)
    assert version is not None
    directory = user_cache_path("pyconnect") / "spark-releases" / version[1]
    if not directory.exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent) as work:
            options = ("--quiet", "--no-deps", "--no-build-isolation", "--require-hashes")
            target = Path(work) / "packages"
            subprocess.run(
                [
                    *(sys.executable, "-m", "pip", "install", *options),
                    *("--target", str(target), "-r", str(file)),
                ],
                check=True,
                timeout=INSTALL_S,
            )
            target.rename(directory)
    return directory


@pytest.mark.long(only=True)
@pytest.mark.parametrize("release", ["3.5", "4.0", "4.2"])
def test_every_audit_finds_the_same_on_other_releases(
    release: str, kafka_broker: SharedBroker, schema_registry_url: str, tmp_path: Path
) -> None:
    """Other releases find the same as the release on which all other tests run."""
    environment = {**os.environ, "PYTHONPATH": str(packages_of(release))}
    named = run_python(["-c", JARS_OF], environment)
    assert named.returncode == 0, named.stderr
    bootstrap = kafka_broker.bootstrap_servers
    audits = every_audit(bootstrap, schema_registry_url, tmp_path)
    spark = {"master": "local[2]", "jars": named.stdout.split(), "conf": QUICK_CONF}
    runs = run_specs(specs(audits, bootstrap, spark), tmp_path / "runs", environment)
    check(audits, runs)
    versions = {run.report["spark_version"] for run in runs if run.report is not None}
    assert {version for version in versions if version} == {packages_of(release).name}


@pytest.mark.long(only=True)
def test_spark_connect_is_refused_on_spark_3(kafka_broker: SharedBroker, tmp_path: Path) -> None:
    """Spark 3.5 has a usage error before a server is asked, which names the other ways."""
    topic = seed_topic(kafka_broker.bootstrap_servers).topic
    asked = {"version": 1, "job": "duplicates", "topics": [topic], "spark": {"remote": "sc://x:1"}}
    clusters = {"main": {"bootstrap": kafka_broker.bootstrap_servers}}
    environment = {**os.environ, "PYTHONPATH": str(packages_of("3.5"))}
    [run] = run_specs([{**asked, "clusters": clusters}], tmp_path / "runs", environment)
    assert run.code == 2
    assert "need Spark 4.0 or newer, but the client is pyspark 3.5" in run.err
    assert "--master" in run.err


def test_executors_of_spark_3_bring_json_into_its_form_without_this_package() -> None:
    """The function for Spark 3.5 runs in a Python that cannot import pyconnect."""
    cloudpickle.register_pickle_by_value(json_text)
    shipped = cloudpickle.dumps(json_text.canonical)
    program = (
        "import pickle, sys; sys.modules['pyconnect_reconcile'] = None;"
        f'print(pickle.loads({shipped!r})(\'{{"b":"","a":""}}\'))'
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=400, check=False
    )
    assert ended.stdout == '{"a":"","b":""}\n', ended.stderr
