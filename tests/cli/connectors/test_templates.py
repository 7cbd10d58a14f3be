"""`connectors init`: templates made from the settings that a plugin defines."""

import json
from pathlib import Path
from typing import Any

import pytest

from pyconnect_cli.connectors.files import read_connector_files
from pyconnect_cli.connectors.init import chosen_plugin, template_name
from pyconnect_cli.errors import UsageError
from pyconnect_cli.rest.answers import Plugin
from tests.cli.conftest import Run
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect

SINK = "org.example.TableSinkConnector"


def setting(name: str, **members: object) -> dict[str, Any]:
    plain = {
        "name": name, "type": "STRING", "required": False, "default_value": None,
        "importance": "MEDIUM", "documentation": f"What {name} is for.",
    }  # fmt: skip
    return {**plain, **members}


@pytest.fixture
def settings(connect: FakeConnect) -> None:
    connect.plugins[SINK] = [
        setting("batch.rows", default_value="10", type="INT"),
        setting("address", required=True, documentation='Where "it" is: a URL.\n  Never a #.'),
        setting("password", type="PASSWORD", importance="HIGH"),
        setting("mode", default_value="insert", importance="HIGH"),
    ]


@pytest.mark.usefixtures("settings")
def test_a_template_in_json_has_required_and_important_settings(run: Run) -> None:
    """A JSON template has no comments, so it has only required and important settings."""
    outcome = run("connectors", "init", "table-sink", code=0)
    assert json.loads(outcome.out) == {
        "name": "table-sink",
        "connector.class": SINK,
        "tasks.max": "1",
        "topics": "",
        "address": "",
        "mode": "insert",
    }
    assert "give a value to: topics, address" in outcome.err


@pytest.mark.usefixtures("settings")
def test_what_a_plugin_refuses_to_be_without_is_required(run: Run, connect: FakeConnect) -> None:
    """A setting that the plugin's validation demands is required, unless it has a default."""
    connect.needed_keys = ("password", "batch.rows", "topics")
    outcome = run("connectors", "init", "table-sink", "--set", "address=x")
    assert json.loads(outcome.out)["password"] == ""
    assert "batch.rows" not in json.loads(outcome.out)
    assert "give a value to: topics, password" in outcome.err


@pytest.mark.usefixtures("settings")
@cases("form", "json", "yaml", "properties")
def test_create_takes_a_template(run: Run, connect: FakeConnect, tmp_path: Path, form: str) -> None:
    """`create` accepts a template, with values of --set for undefined settings too."""
    values = {"topics": "a", "address": 'x: "y" = #z\\', "errors.tolerance": "all"}
    given = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    outcome = run("connectors", "init", "TableSink", "--name", "mine", "--format", form, *given)
    assert outcome.code == 0, outcome.err
    assert "give a value" not in outcome.err
    file = tmp_path / f"mine.{form}"
    file.write_text(outcome.out)
    run("connectors", "create", "-f", str(file), code=0)
    config = connect.connectors["mine"].config
    plain = {"connector.class": SINK, "tasks.max": "1", "mode": "insert"}
    assert {key: config.get(key) for key in (*values, *plain)} == {**values, **plain}


@pytest.mark.usefixtures("settings")
@cases(
    "form, lines",
    (
        "yaml",
        ['#batch.rows: "10"', '#password: "${file:/etc/connect/secrets.properties:password}"'],
    ),
    (
        "properties",
        ["#batch.rows=10", "#password=${file:/etc/connect/secrets.properties:password}"],
    ),
)
def test_all_forms_have_all_settings(run: Run, tmp_path: Path, form: str, lines: list[str]) -> None:
    """YAML and properties have all settings; those with a default are comments."""
    outcome = run("connectors", "init", SINK, "--format", form)
    written = outcome.out.splitlines()
    assert written[0] == f"# {SINK} 1"
    assert '# Where "it" is: a URL. Never a #.' in written
    for line in lines:
        assert line in written
    file = tmp_path / f"x.{form}"
    file.write_text(outcome.out.replace("#batch", "batch"))
    (read,) = read_connector_files([str(file)])
    assert read.config["batch.rows"] == "10"
    assert "password" not in read.config


@cases(
    "class_name, expected",
    ("pyconnect_connectors.sql.sink.SqlSinkConnector", "sql-sink"),
    ("org.apache.kafka.connect.file.FileStreamSourceConnector", "file-stream-source"),
    ("io.example.S3Sink", "s3-sink"),
)
def test_a_class_has_a_short_name(class_name: str, expected: str) -> None:
    """The short name of a connector is its class without package and `Connector`."""
    assert template_name(class_name) == expected
    plugin = Plugin(class_name=class_name, type="sink")
    for word in (expected, class_name, class_name.rpartition(".")[2].removesuffix("Connector")):
        assert chosen_plugin(word, [plugin]) == plugin


def test_names_of_no_connector_or_of_several_are_refused() -> None:
    """An ambiguous or unknown name is refused, and the hint has a name that works."""
    plugins = [
        Plugin(class_name=name, type="sink")
        for name in ("a.SqlSinkConnector", "b.SqlSink", "c.FileSink")
    ]
    with pytest.raises(UsageError, match=r"several classes: a\.SqlSinkConnector, b\.SqlSink"):
        chosen_plugin("sql-sink", plugins)
    with pytest.raises(UsageError) as caught:
        chosen_plugin("file-sinc", plugins)
    assert "`file-sink`" in str(caught.value.hint)


def test_the_guarantee_of_file_stream_sink_is_told(run: Run, connect: FakeConnect) -> None:
    """The template of FileStreamSink comes with a warning that names an exactly-once sink."""
    name = "org.apache.kafka.connect.file.FileStreamSinkConnector"
    connect.plugins[name] = [setting("file")]
    outcome = run("connectors", "init", "file-stream-sink")
    assert "FileStreamSink delivers at-least-once" in outcome.err
    assert "pyconnect connectors init lake-sink" in outcome.err
    assert json.loads(outcome.out)["connector.class"] == name
