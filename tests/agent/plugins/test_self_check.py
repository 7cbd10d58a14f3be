"""`python -m pyconnect_agent.plugins.self_check`: its findings for good and faulty plugins."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from pyconnect_agent.plugins.self_check import StepResult, check
from tests.support.cases import cases

PLUGIN = """
from collections.abc import Sequence
from pyconnect_api import *

class Task(SourceTask):
    offset = {"o": 0}
    def start(self, props):
        if props.get("how") == "start":
            raise ConnectException("cannot start")
    def poll(self):
        how = self.context.configs().get("how")
        if how == "exit":
            raise SystemExit(3)
        if how == "empty":
            self.context.stop_requested.wait(0.01)
            return None
        if how == "one offset":
            self.offset["o"] += 1
            return [SourceRecord({"p": 1}, self.offset, "t", value="v")]
        value = "text" if how == "schema" else 1
        return [SourceRecord({"p": 1}, {"o": 1}, "t", value_schema=INT64_SCHEMA, value=value)]
    def stop(self): pass
    def version(self): return "1"

class Source(SourceConnector):
    def start(self, props): self.props = props
    def stop(self): pass
    def version(self): return "1"
    def task_class(self): return Task
    def task_configs(self, max_tasks):
        many = self.props.get("how") == "many"
        return [self.props] * (max_tasks + 1 if many else max_tasks)
    def config(self):
        return ConfigDef().define("needed", ConfigType.STRING, documentation="Needed.")

class Unversioned(Source):
    def version(self): return None

class Undocumented(Source):
    def config(self):
        return ConfigDef().define("x", ConfigType.STRING)
"""


@pytest.fixture
def plugin_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugin without entry points, in a module with a unique name."""
    directory = tmp_path / "plugins" / "one"
    directory.mkdir(parents=True)
    (directory / f"self_checked_{tmp_path.name}.py").write_text(PLUGIN)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    return directory.parent


def steps(
    plugin_path: Path, name: str, config: Mapping[str, str] | None = None
) -> dict[str, StepResult]:
    return {step.step: step for step in check(name, [str(plugin_path)], config, 0.2)}


def test_a_good_plugin_passes_every_step(plugin_path: Path) -> None:
    """The steps go from finding the plugin to stopping it."""
    found = steps(plugin_path, "Source", {"needed": "x", "tasks.max": "2"})
    assert {step.result for step in found.values()} == {"passed"}
    assert list(found) == [
        "find", "load", "define", "validate", "start", "split",
        "start task", "poll", "commit", "restart", "stop",
    ]  # fmt: skip


def test_without_a_config_only_steps_that_need_none_are_run(plugin_path: Path) -> None:
    """The steps that need a config are reported as skipped."""
    found = steps(plugin_path, "Source")
    assert [step.result for step in found.values()] == ["passed"] * 3 + ["skipped"]


@cases(
    "config, step, text",
    ({}, "validate", "needed: Missing required configuration"),
    ({"needed": "x", "how": "many"}, "split", "2 task configs for tasks.max=1"),
    ({"needed": "x", "how": "start"}, "start task", "cannot start"),
    ({"needed": "x", "how": "schema"}, "poll", "DataException"),
    ({"needed": "x", "how": "exit"}, "poll", "SystemExit: 3"),
    ({"needed": "x", "how": "one offset"}, "poll", "make a new dict for each record"),
)
def test_the_first_step_that_fails_says_why_and_where(
    plugin_path: Path, config: dict[str, str], step: str, text: str
) -> None:
    """The self check ends at the first failure."""
    found = steps(plugin_path, "Source", config)
    *passed, last = found.values()
    assert (last.step, last.result) == (step, "failed")
    assert text in last.detail
    assert {step.result for step in passed} == {"passed"}


def test_sources_without_records_and_unknown_names(plugin_path: Path) -> None:
    """A source without records skips the poll; the error for an unknown name says where to look."""
    found = steps(plugin_path, "Source", {"needed": "x", "how": "empty"})
    assert found["poll"].result == "skipped"
    assert found["stop"].result == "passed"
    found = steps(plugin_path, "Nope")
    assert found["find"].result == "failed"
    assert "an entry of the plugin path" in found["find"].detail


@cases("name, text", ("Unversioned", "not a text"), ("Undocumented", "without documentation: x"))
def test_version_and_definition_are_checked(plugin_path: Path, name: str, text: str) -> None:
    """A version must be a text and settings need documentation, as workers show both to users."""
    found = steps(plugin_path, name)
    assert found["define"].result == "failed"
    assert text in found["define"].detail


@cases(
    "name, config, detail",
    ("StringConverter", {"converter.type": "value"}, "came back as it was"),
    ("RegexRouter", {"regex": "(.*)", "replacement": "x-$1"}, "x-self-check"),
    ("RecordIsTombstone", {}, "gave False"),
    ("Cast$Value", {"spec": "int32"}, "takes no texts"),
)
def test_other_kinds_get_a_sample(
    plugin_path: Path, name: str, config: dict[str, str], detail: str
) -> None:
    """A converter gets a text for both directions, a transformation or predicate gets a record."""
    found = steps(plugin_path, name, config)
    assert detail in found["sample"].detail
    assert found["close"].result == "passed"
