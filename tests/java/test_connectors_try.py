"""`pyconnect connectors try` runs Java connectors without worker and broker, and leaves nothing."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.plugins.java_jars import test_connectors as compiled_connectors
from tests.support.plugins.maven_plugins import DEBEZIUM, location_of
from tests.support.servers.postgres import PASSWORD, USER, PostgresServer, running_postgres

pytestmark = [pytest.mark.java, pytest.mark.timeout(800)]

LONGEST_S = 250
TRANSFORMS = "org.apache.kafka.connect.transforms"
TEXTS = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


def tried(directory: Path, plugins: Path, config: dict[str, str], *options: str) -> Any:
    """Return the JSON output of the command, which must succeed."""
    file = directory / "connector.json"
    file.write_text(json.dumps({"name": "tried", "config": config}))
    command = [sys.executable, "-m", "pyconnect_cli", "connectors", "try", str(file)]
    done = subprocess.run(
        [*command, "--plugin-path", str(plugins), "--for", "100s", "-o", "json", *options],
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def values(record: Any) -> list[tuple[str, str]]:
    return [(step["step"], step["record"]["value"]) for step in record["steps"]]


def test_a_java_source_and_a_java_sink(kafka_runtime: KafkaRuntime, tmp_path: Path) -> None:
    """Records, transformations and bytes are those of Java; the trial does not create a sink task.

    A Python sink's chain of transformations may switch to Java and back; each one is shown.
    """
    plugins, notes = tmp_path / "plugins", tmp_path / "notes"
    plugins.mkdir()
    compiled_connectors(kafka_runtime, plugins)
    hoisted = {
        "notes": str(notes),
        "transforms": "hoist",
        "transforms.hoist.type": f"{TRANSFORMS}.HoistField$Value",
        "transforms.hoist.field": "number",
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
    }
    source = {"connector.class": "io.pyconnect.tests.NumberSource", "topic": "t", **hoisted}
    found = tried(tmp_path, plugins, source, "-n", "3")["records"]
    assert [values(record) for record in found] == [
        [("polled", f"number {n}"), ("hoist", f"{{number=number {n}}}")] for n in range(3)
    ]
    assert found[0]["source_offset"] == {"number": 0}
    assert json.loads(found[0]["kafka"]["value"]) == {"number": "number 0"}
    assert found[0]["kafka"]["headers"] == [{"key": "header", "value": "of 0"}]
    assert "start 0" in notes.read_text()
    notes.unlink()
    records = tmp_path / "records.json"
    records.write_text(json.dumps([{"topic": "t", "value": {"a": 1}}]))
    sink = {"connector.class": "io.pyconnect.tests.NoteSink", "topics": "t", **hoisted}
    (record,) = tried(tmp_path, plugins, sink, "--records", str(records))["records"]
    assert values(record) == [("converted", "{a=1}"), ("hoist", "{number={a=1}}")]
    assert not notes.exists()
    records.write_text(json.dumps([{"topic": "t", "value": "one"}]))
    in_java = {f"transforms.{at}.type": "io.pyconnect.tests.Marked" for at in "ab"}
    marks = {f"transforms.{at}.mark": at for at in "ab"}
    mixed = {"connector.class": "FileStreamSink", "topics": "t", "file": str(notes), **hoisted}
    mixed |= {"transforms": "a, hoist, b", **in_java, **marks, "value.converter": TEXTS}
    (record,) = tried(tmp_path, plugins, mixed, "--records", str(records))["records"]
    steps = [("converted", "one"), ("a", "onea"), ("hoist", "Struct{number=onea}")]
    assert values(record) == [*steps, ("b", "Struct{number=onea}b")]


def test_values_are_the_same_after_a_python_transformation(
    kafka_runtime: KafkaRuntime, tmp_path: Path
) -> None:
    """Values of all types keep their schemas when a Python transformation changes another field."""
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    compiled_connectors(kafka_runtime, plugins)
    logical, scale = "org.apache.kafka.connect.data", {"parameters": {"scale": "2"}}
    fields: list[tuple[dict[str, Any], Any]] = [
        ({"type": "int8"}, -128),
        ({"type": "int16"}, 32767),
        ({"type": "int32", "default": 7, "doc": "d"}, -(2**31)),
        ({"type": "int64"}, 2**63 - 1),
        ({"type": "float", "optional": True}, 0.1),
        ({"type": "double"}, 0.1),
        ({"type": "boolean"}, True),
        ({"type": "bytes"}, "AP8="),
        ({"type": "string", "optional": True}, None),
        ({"type": "bytes", "name": f"{logical}.Decimal", "version": 1, **scale}, "BNI="),
        ({"type": "int32", "name": f"{logical}.Date", "version": 1}, 20000),
        ({"type": "int32", "name": f"{logical}.Time", "version": 1}, 86399999),
        ({"type": "int64", "name": f"{logical}.Timestamp", "version": 1}, 1700000000123),
        ({"type": "array", "items": {"type": "int16"}}, [1, 2]),
        ({"type": "map", "keys": {"type": "int32"}, "values": {"type": "string"}}, [[1, "a"]]),
    ]
    inner = [{"field": f"f{at}", "optional": False, **of} for at, (of, _) in enumerate(fields)]
    schema = {"type": "struct", "name": "all", "fields": [{"field": "a", "type": "int32"}, *inner]}
    payload = {"a": 1, **{f"f{at}": value for at, (_, value) in enumerate(fields)}}
    records = tmp_path / "records.json"
    records.write_text(
        json.dumps([{"topic": "t", "value": {"schema": schema, "payload": payload}}])
    )
    sink = {
        "connector.class": "io.pyconnect.tests.NoteSink",
        "topics": "t",
        "notes": str(tmp_path / "notes"),
        "value.converter": JSON,
        "transforms": "set",
        "transforms.set.type": "Expression",
        "transforms.set.set.value": "{'a': 2}",
    }
    (record,) = tried(tmp_path, plugins, sink, "--records", str(records))["records"]
    before, after = (step["record"] for step in record["steps"])
    texts = [re.sub(r"\[B@\w+", "bytes", each["value"]) for each in (before, after)]
    assert "{a=2," in texts[1]
    assert texts[1] == texts[0].replace("{a=1,", "{a=2,")
    assert after["value_schema"] == before["value_schema"]


def test_debeziums_slot_is_the_trials_own_and_dropped(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """The trial shows rows of the snapshot and does not touch the slot that the config names."""
    database = postgres.new_database()
    config = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "database.hostname": "127.0.0.1",
        "database.port": str(postgres.port),
        "database.user": USER,
        "database.password": PASSWORD,
        "database.dbname": database,
        "topic.prefix": "p",
        "slot.name": "of_the_connector",
        "transforms": "unwrap",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    }
    with postgres.connect(database) as rows:
        rows.execute("CREATE TABLE numbers (id int PRIMARY KEY, text text)")
        rows.execute("INSERT INTO numbers VALUES (1, 'one'), (2, 'two')")
        answer = tried(tmp_path, location_of(DEBEZIUM).parent, config, "-n", "2")
        slots = rows.execute("SELECT slot_name FROM pg_replication_slots").fetchall()
    assert slots == []
    texts = [values(record)[-1] for record in answer["records"]]
    assert texts == [("unwrap", "Struct{id=1,text=one}"), ("unwrap", "Struct{id=2,text=two}")]
    assert any("slot.name is pyconnect_try_" in note for note in answer["notes"])
    assert PASSWORD not in json.dumps(answer).replace("pyconnect", "")
