"""Names, traces and answers of other systems never control the terminal."""

import json
import re
from pathlib import Path

import pytest
import yaml

from pyconnect_cli.render.output import to_yaml
from pyconnect_cli.render.styles import STYLES, displayed, json_text, paint
from tests.cli.conftest import Run
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector

HOSTILE = "evil\x1b]0;title\x07\x9b2J\x85\u202e\x7f"
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def connect() -> FakeConnect:
    """A cluster with one connector, all of whose texts are hostile."""
    config = {"name": HOSTILE, "connector.class": f"org.{HOSTILE}", "note": HOSTILE}
    offsets = [{"partition": {"file": HOSTILE}, "offset": {"position": HOSTILE}}]
    connector = FakeConnector(
        config=config,
        tasks=["RUNNING", "FAILED"],
        trace=f"E: {HOSTILE}",
        offsets=offsets,
        topics=[HOSTILE],
    )
    other = FakeConnector(config={"name": "b", "connector.class": "C"}, offsets=offsets)
    return FakeConnect(
        connectors={HOSTILE: connector, "b": other},
        loggers={HOSTILE: "INFO"},
        plugins={f"org.{HOSTILE}": []},
        worker_id=f"{HOSTILE}:8083",
        version=HOSTILE,
    )


COMMANDS = [
    *(f"connectors {verb} {HOSTILE}" for verb in ("pause", "resume", "stop", "restart")),
    f"connectors pause {HOSTILE} --dry-run",
    "connectors pause --all --dry-run",
    "connectors delete --all",
    "connectors delete --all --yes",
    "connectors delete nothing",
    f"connectors delete {HOSTILE}x",
    "connectors list",
    "connectors list -o wide",
    f"connectors describe {HOSTILE}",
    f"connectors get {HOSTILE}",
    "connectors export --all",
    "connectors export --all --dir d",
    f"connectors topics {HOSTILE}",
    f"connectors patch {HOSTILE} note={HOSTILE}x --dry-run",
    f"connectors wait {HOSTILE} --for PAUSED --timeout 1s",
    "tasks list",
    f"tasks describe {HOSTILE}/1",
    f"tasks stacks {HOSTILE}/1",
    f"tasks restart {HOSTILE}/1",
    "offsets get --all",
    f"offsets get {HOSTILE}",
    f"offsets export {HOSTILE}",
    "offsets export --all --dir d",
    f"offsets reset {HOSTILE} --stop --dry-run",
    f"offsets reset {HOSTILE} --stop --yes",
    "plugins list",
    "loggers list",
    "info",
    "health",
    "status",
    "status -vv",
]


@pytest.mark.parametrize("command", COMMANDS)
@cases("form", "", "coloured", "json", "yaml", "ndjson", "name")
def test_no_verb_sends_controls(run: Run, environ: dict[str, str], command: str, form: str) -> None:
    """No format prints control characters; with colours there are only this program's sequences."""
    if form == "coloured":
        environ["FORCE_COLOR"], form = "1", ""
    ended = run(*command.split(" "), *(("-o", form) if form and "-o" not in command else ()))
    printed = ended.out + ended.err
    assert "internal error" not in printed
    for ours in (*STYLES.values(), "\x1b[0m"):
        printed = printed.replace(ours, "")
    assert not CONTROLS.search(printed)


@cases("form", "json", "yaml")
def test_documents_keep_every_character(run: Run, form: str) -> None:
    """A program reads the original text, because control characters are escapes of the format."""
    ended = run("connectors", "get", HOSTILE, "-o", form)
    document = yaml.safe_load(ended.out) if form == "yaml" else json.loads(ended.out)
    assert document["name"] == HOSTILE


def test_an_exported_file_keeps_every_character(run: Run) -> None:
    """An exported file has escapes only, because users also print it with `cat`."""
    run("connectors", "export", "b", HOSTILE, "--dir", "d")
    texts = [file.read_text("utf-8") for file in Path("d").iterdir()]
    assert not any(CONTROLS.search(text) for text in texts)
    assert HOSTILE in {json.loads(text)["name"] for text in texts}


@cases("code", *range(32), *range(0x7F, 0xA1), 0x202E, 0x2028, 0xFEFF, 0x1F600)
def test_each_character_survives_json_and_yaml(code: int) -> None:
    """Each character survives as a key, as a value, and beside texts that YAML would convert."""
    document = {f"k{chr(code)}": [f"{chr(code)}v", chr(code), f"- a: {chr(code)} #x"]}
    assert json.loads(json_text(document)) == document
    assert yaml.safe_load(to_yaml(document)) == document


def test_colours_are_ours_only() -> None:
    """Of all sequences only those of `paint` are printed, even with colours."""
    painted = paint("ok", "good", colour=True)
    expected = f"{painted} \\x1b[31mred\\x1b[5m"
    assert displayed(f"{painted} \x1b[31mred\x1b[5m", colour=True) == expected
    assert "\x1b" not in displayed(painted, colour=False)
