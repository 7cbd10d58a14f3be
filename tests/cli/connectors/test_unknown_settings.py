"""Settings that a connector does not define."""

import json
from pathlib import Path

import pytest

from pyconnect_cli.connectors.files import unknown_settings
from tests.cli.conftest import Run
from tests.support.fakes.connect_server import FakeConnect

DEFINED = ("connector.class", "tasks.max", "team", "transforms", "db.password")
WARNING = "warning: {}: its connector does not define tasks.mx (did you mean tasks.max?)"


def test_settings_of_other_classes_are_not_unknown() -> None:
    """Settings of converters and clients are known, and without definitions all settings are."""
    keys = ["name", "team", "tasks.mx", "xyz", "producer.override.acks", "key.converter.schemas"]
    keys += ["agent.java.heap", "agent.java.options"]
    assert unknown_settings(keys, DEFINED) == {"tasks.mx": "tasks.max", "xyz": None}
    assert unknown_settings(keys, ()) == {}


@pytest.mark.wire
def test_an_unknown_setting_is_warned_of(run: Run, connect: FakeConnect, tmp_path: Path) -> None:
    """Every verb that takes a configuration warns of unknown settings and makes the change."""
    connect.defined_keys = DEFINED
    config = {"connector.class": "org.example.FileSource", "tasks.mx": "4"}
    file = tmp_path / "new.json"
    file.write_text(json.dumps({"name": "new", "config": config}))
    for words in (["create"], ["apply"], ["validate"]):
        connect.connectors.pop("new", None)
        outcome = run("connectors", *words, "-f", str(file))
        assert (outcome.code, outcome.err.count(WARNING.format("new"))) == (0, 1), words
    outcome = run("connectors", "patch", "orders", "--set", "tasks.mx=4")
    assert (outcome.code, WARNING.format("orders") in outcome.err) == (0, True)
    # Labels of users are not settings.
    create = ("create", "x", "--set", "connector.class=X", "--set", "label.tier=1")
    ended = run("connectors", *create, "--set", "team=a", "--set", "tasks.mx=1")
    assert f"{WARNING.format('x')}\n" in ended.err
    assert "team" not in ended.err
    # Settings from before the change cause no warning.
    outcome = run("connectors", "patch", "orders", "--set", "team=b")
    assert (outcome.code, outcome.err) == (0, "")
    assert connect.connectors["orders"].config["tasks.mx"] == "4"
