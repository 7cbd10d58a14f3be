"""`pyconnect reconcile` from its command line to its report, and the jobs under spark-submit."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from pyconnect_agent.builtin.converters.avro.converter import AvroConverter
from pyconnect_api import INT64_SCHEMA, SchemaBuilder, Struct
from pyconnect_cli.reconcile.spark_jars import SparkArchive
from tests.support.audits.seeding import Record, Seed, seed_topic
from tests.support.commands.processes import python_environment
from tests.support.commands.reconcile_command import QUICK
from tests.support.servers.kafka import SharedBroker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(850)]

RUN_S = 300.0
ORDER = SchemaBuilder.struct().name("com.example.Order").field("id", INT64_SCHEMA).build()


@pytest.fixture(scope="module")
def seed(kafka_broker: SharedBroker) -> Seed:
    """A topic with twenty numbers, the fifth twice."""
    seed = seed_topic(kafka_broker.bootstrap_servers)
    seed.write([Record(f"n={n}".encode(), key=b"secret-key") for n in [*range(20), 5]])
    return seed


def start(seed: Seed, state: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "XDG_STATE_HOME": str(state), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "pyconnect_cli", "reconcile", *arguments, *QUICK]
    here = state / "here"
    here.mkdir(exist_ok=True)
    return subprocess.Popen(
        [*command, "--kafka-bootstrap", seed.bootstrap],
        env=python_environment(environment),
        cwd=here,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_run_leaves_its_whole_report(
    kafka_broker: SharedBroker, schema_registry_url: str, tmp_path: Path, spark: SparkSession
) -> None:
    """JSON, NDJSON, Parquet and page of a report agree, and the exit code is 1 for a difference.

    The values are Avro: the command adds Spark's jar for it and takes the registry from an option.
    """
    seed = seed_topic(kafka_broker.bootstrap_servers)
    with contextlib.closing(AvroConverter()) as avro:
        avro.configure({"schema.registry.url": schema_registry_url}, False)
        values = [
            avro.from_connect_data(seed.topic, [], ORDER, Struct(ORDER).put("id", n))
            for n in [*range(20), 5]
        ]
    seed.write([Record(value, key=b"secret-key") for value in values])
    process = start(
        seed, tmp_path, "sequence", seed.topic, "--sequence", "avro:id",
        "--registry", schema_registry_url, "--hide-keys", "-o", "json",
    )  # fmt: skip
    out, err = process.communicate(timeout=RUN_S)
    assert process.returncode == 1, err
    answer = json.loads(out)
    directory = Path(answer["report"])
    assert directory.is_relative_to(tmp_path)
    report = (directory / "report.json").read_text()
    assert json.loads(report)["verdict"] == "differ"
    assert schema_registry_url not in report
    written = (directory / "findings" / "findings.ndjson").read_text().splitlines()
    [finding] = map(json.loads, written)
    assert (finding["kind"], finding["first"]) == ("repeated", 5)
    assert [copy["offset"] for copy in finding["copies"]] == [5, 20]
    rows = spark.read.parquet(str(directory / "findings" / "findings.parquet")).collect()
    assert [(row["kind"], row["first"]) for row in rows] == [("repeated", 5)]
    page = (directory / "report.html").read_text()
    assert "number 5 occurs 2 times" in page
    assert "secret-key" not in out + page + "".join(written)
    assert "Traceback" not in err
    assert sorted(path.name for path in directory.iterdir()) == [
        "findings", "report.html", "report.json", "spark.log",
    ]  # fmt: skip
    assert not list((tmp_path / "here").iterdir()), "a run writes nothing where it was started"


def test_ctrl_c_cancels_and_leaves_no_jvm(seed: Seed, tmp_path: Path) -> None:
    """Ctrl-C ends the command with exit code 130, and every process that it started."""
    process = start(seed, tmp_path, "sequence", seed.topic, "--sequence", r"regex:n=(\d+)")
    assert process.stderr is not None
    for line in process.stderr:
        if "folding" in line:
            break
    children = psutil.Process(process.pid).children(recursive=True)
    assert any("java" in child.name() for child in children)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=RUN_S)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert psutil.wait_procs(children, timeout=RUN_S)[1] == []


def test_a_killed_command_takes_spark_with_it(seed: Seed, tmp_path: Path) -> None:
    """kill -9 of the command also ends the JVM, through a pipe."""
    process = start(seed, tmp_path, "sequence", seed.topic, "--sequence", r"regex:n=(\d+)")
    assert process.stderr is not None
    for line in process.stderr:
        if "folding" in line:
            break
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate(timeout=RUN_S)
    assert psutil.wait_procs(children, timeout=RUN_S)[1] == []


def test_the_driver_maps_the_archive(spark: SparkSession, spark_archive: SparkArchive) -> None:
    """The driver gets the option, and Java accepts the archive for its class path."""
    gateway = SparkContext._gateway
    assert gateway is not None
    maps = Path(f"/proc/{gateway.proc.pid}/maps").read_text()
    assert str(spark_archive.path) in maps
