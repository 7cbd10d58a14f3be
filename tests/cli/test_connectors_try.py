"""`pyconnect connectors try`: a connector's records, shown without a worker and without Kafka."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import cases
from tests.support.plugins.bad_plugins import idle_source

pytestmark = pytest.mark.wire

# `run` of conftest.py: arguments to (exit code, stdout, stderr)
Run = Any

JSON = "org.apache.kafka.connect.json.JsonConverter"
TRANSFORMS = "org.apache.kafka.connect.transforms"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the trial find the connectors of these tests: commands run in an empty directory."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


def config_file(directory: Path, config: dict[str, str]) -> str:
    path = directory / "connector.json"
    path.write_text(json.dumps({"name": "tried", "config": config}))
    return str(path)


def source(directory: Path, **settings: str) -> dict[str, str]:
    lines = directory / "lines.txt"
    lines.write_text("one\ntwo\nthree\n")
    return {"connector.class": "FileStreamSource", "file": str(lines), "topic": "t", **settings}


def sink(directory: Path) -> dict[str, str]:
    return {
        "connector.class": "FileStreamSink",
        "file": str(directory / "never"),
        "topics": "t",
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        "transforms": "mask",
        "transforms.mask.type": f"{TRANSFORMS}.MaskField$Value",
        "transforms.mask.fields": "card",
    }


def test_a_sources_records_are_shown_at_each_step(run: Run, tmp_path: Path) -> None:
    """A source's record is shown as polled, after each transformation, and as written."""
    config = source(
        tmp_path,
        **{
            "transforms": "hoist,odd",
            "transforms.hoist.type": f"{TRANSFORMS}.HoistField$Value",
            "transforms.hoist.field": "line",
            "transforms.odd.type": f"{TRANSFORMS}.Filter",
            "transforms.odd.predicate": "never",
            "predicates": "never",
            "predicates.never.type": f"{TRANSFORMS}.predicates.TopicNameMatches",
            "predicates.never.pattern": "other",
            "value.converter": JSON,
            "value.converter.schemas.enable": "false",
        },
    )
    code, out, err = run(
        "connectors", "try", config_file(tmp_path, config), "-n", "2", address=None
    )
    assert code == 0, err
    lines = [line.strip() for line in out.splitlines() if "timestamp" not in line]
    assert lines == [
        "record 1",
        "polled      topic: t",
        "value: one  (string)",
        "hoist       value: Struct{line=one}  ({line: string})",
        "odd         unchanged",
        "written     key: -",
        'value: {"line":"one"}',
        "record 2",
        "polled      topic: t",
        "value: two  (string)",
        "hoist       value: Struct{line=two}  ({line: string})",
        "odd         unchanged",
        "written     key: -",
        'value: {"line":"two"}',
    ]
    assert "note: start and poll were called" in err


def test_a_sinks_records_are_shown_and_not_put(run: Run, tmp_path: Path) -> None:
    """A sink's records are converted but not put, and a record that fails is exit 1."""
    records = tmp_path / "records.json"
    records.write_text(
        json.dumps(
            [
                {"topic": "t", "value": {"id": 1, "card": "4711"}},
                {"topic": "t", "value": "{oops", "key": {"base64": "/w=="}},
                {"topic": "t", "value": None, "headers": [{"key": "h", "value": "x"}]},
            ]
        )
    )
    file = config_file(tmp_path, sink(tmp_path))
    code, out, err = run(
        "connectors", "try", file, "--records", str(records), "-o", "json", address=None
    )
    assert code == 1
    assert "2 of 3 records fail" in err
    found = json.loads(out)["records"]
    shown = [(step["step"], step["record"]["value"]) for step in found[0]["steps"]]
    assert shown == [("converted", '{"id": 1, "card": "4711"}'), ("mask", '{"id": 1, "card": ""}')]
    assert [step["step"] for step in found[1]["steps"]] == ["JsonConverter"]
    # MaskField needs a map, so it fails for a null value.
    assert [step["step"] for step in found[2]["steps"]] == ["converted", "mask"]
    assert not (tmp_path / "never").exists()
    assert "put is not called" in str(json.loads(out)["notes"])


def test_a_connector_is_started_and_stopped_once(run: Run, tmp_path: Path) -> None:
    """A trial starts and stops the connector once, although it uses two processes."""
    config = idle_source("journal", tmp_path)
    del config["name"]
    code, _, err = run(
        "connectors", "try", config_file(tmp_path, config), "--for", "1s", address=None
    )
    assert code == 0, err
    assert "no record within 1s" in err
    assert (tmp_path / "journal").read_text().split() == ["start", "configs", "stop"]


@cases(
    "changes, options, text",
    ({"connector.class": "Nope"}, (), "Failed to find any class that implements Connector"),
    ({"tasks.max": "many"}, (), "tasks.max: Invalid value many"),
    ({}, ("--records", "records.json"), "a source takes no records"),
    ({"connector.class": "FileStreamSink", "topics": "t"}, (), "a sink needs records"),
    ({"transforms": "x", "transforms.x.type": "Nope"}, (), "Nope"),
)
def test_a_wrong_question_is_answered_with_the_reason(
    run: Run, tmp_path: Path, changes: dict[str, str], options: tuple[str, ...], text: str
) -> None:
    """A question that cannot be answered is exit 1 with the reason and without output."""
    Path("records.json").write_text("[]")
    file = config_file(tmp_path, source(tmp_path) | changes)
    code, out, err = run("connectors", "try", file, *options, address=None)
    assert (code, out) == (1, "")
    assert text in err


def test_records_of_another_form_are_refused(run: Run, tmp_path: Path) -> None:
    """Records of another form are exit 2, and the error names their file."""
    for text in (
        '{"topic": "t"}',
        '[{"topic": "t"}]',
        '[{"topic": "t", "value": 1, "offset": "x"}]',
    ):
        (tmp_path / "records.json").write_text(text)
        code, _, err = run(
            "connectors", "try", config_file(tmp_path, sink(tmp_path)),
            "--records", str(tmp_path / "records.json"), address=None,
        )  # fmt: skip
        assert code == 2
        assert "records.json: " in err


def test_secrets_of_the_config_are_not_shown(run: Run, tmp_path: Path) -> None:
    """An error of the connector does not show a secret of its configuration."""
    secrets = tmp_path / "secrets.properties"
    secrets.write_text(f"file={tmp_path / 'no' / 'such'}\n")
    worker = tmp_path / "worker.properties"
    worker.write_text(
        "config.providers=file\nconfig.providers.file.class=FileConfigProvider\n"
        f"key.converter={JSON}\nvalue.converter={JSON}\nbootstrap.servers=127.0.0.1:1\n"
    )
    config = idle_source("journal", tmp_path, refuse=str(tmp_path / "journal"))
    config["password"] = f"${{file:{secrets}:file}}"
    del config["name"]
    code, _, err = run(
        "connectors", "try", config_file(tmp_path, config), "--worker-config", str(worker),
        address=None,
    )  # fmt: skip
    assert code == 1
    assert "refused this time" in err
    assert "no/such" not in err
