"""Tests a plugin without Kafka, for its author before an installation.

`python -m pyconnect_agent.plugins.self_check NAME [--plugin-path DIR]...` prints one JSON object
when a step begins and one when it has ended, and ends with 1 when a step failed. It runs the
plugin's code in its own process, so `pyconnect plugins test` starts it as a process.

    {"step": "poll", "result": "begun" | "passed" | "failed" | "skipped", "detail": "..."}

A step that does not return in time, or that crashes, ends the process; `--stack-to` names the
descriptor that the stacks of its threads are written to.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyconnect_agent.core.plugin_catalog import PluginDesc, PluginNotFoundError
from pyconnect_agent.plugins.loading import NEEDS_EXTRA, instantiate, load
from pyconnect_agent.plugins.scan import scan
from pyconnect_agent.plugins.trials import Trial, trial_of
from pyconnect_api.configdef import ConfigDef
from pyconnect_api.connector import Connector
from pyconnect_api.errors import ConnectException

DEFAULT_TIME_S = 10.0
SPARE_S = 1.0
"""Time beyond that of a step: a step that waits for records uses its whole time."""
SCAN_S = 60.0
_NOT_THE_AUTHORS = re.compile(
    r"^<frozen|[/\\]pyconnect_(?:agent|api)[/\\]|"
    + re.escape(sysconfig.get_paths()["stdlib"])
    + r"[/\\](?!site-packages|dist-packages)"
)

Begin = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step; `detail` is a text for the user."""

    step: str
    result: str
    detail: str

    def to_json(self) -> dict[str, str]:
        """Return the printed form."""
        return {"step": self.step, "result": self.result, "detail": self.detail}


def check(
    name: str,
    plugin_path: Sequence[str],
    config: Mapping[str, str] | None,
    time_s: float,
    begin: Begin = lambda _step: None,
) -> Iterator[StepResult]:
    """Yield the steps in order, up to the first that fails; `begin` is called before each.

    Without `config` only steps that need none are run. A source has `time_s` to return records.
    """
    found: list[PluginDesc] = []
    loaded: list[type] = []

    def find() -> str:
        found.append(_find(name, plugin_path))
        desc = found[0]
        return f"{desc.kind.value} {desc.class_name}, version {desc.version}, in {desc.location}"

    def import_it() -> str:
        loaded.append(load(found[0]))
        return f"from {found[0].python_path}"

    steps: list[tuple[str, Callable[[], str]]] = [("find", find), ("load", import_it)]
    steps.append(("define", lambda: _define(loaded[0])))
    for step, action in steps:
        begin(step)
        result = _tried(step, action)
        yield result
        if result.result == "failed":
            return
    trial = trial_of(loaded[0], found[0], config, time_s)
    yield from _run(trial, begin)


def _run(trial: Trial, begin: Begin) -> Iterator[StepResult]:
    try:
        for step, action in trial.steps():
            begin(step)
            result = _tried(step, action)
            yield result
            if result.result == "failed":
                return
    finally:
        begin("clean up")
        trial.close()


def _tried(step: str, action: Callable[[], str]) -> StepResult:
    try:
        detail = action()
    # The plugin's code may raise any exception, SystemExit too.
    except (Exception, SystemExit) as error:  # noqa: BLE001  plugin code
        return StepResult(step, "failed", f"{type(error).__name__}: {error}{_place(error)}")
    skipped = detail.startswith("skipped: ")
    return StepResult(step, "skipped" if skipped else "passed", detail.removeprefix("skipped: "))


def _place(error: BaseException | None) -> str:
    """Return ` (file:line)` of the author's code that an error comes from; empty if there is none.

    A cause is looked at when an error was raised by the agent's own code.
    """
    while error is not None:
        if isinstance(error, SyntaxError) and error.filename:
            return f" ({Path(error.filename).name}:{error.lineno})"
        frames = traceback.extract_tb(error.__traceback__)
        if own := [frame for frame in frames if not _NOT_THE_AUTHORS.search(frame.filename)]:
            return f" ({Path(own[-1].filename).name}:{own[-1].lineno})"
        error = error.__cause__
    return ""


def _find(name: str, plugin_path: Sequence[str]) -> PluginDesc:
    result = scan(plugin_path)
    try:
        return result.catalog.plugin(name)
    except PluginNotFoundError as error:
        # Parts that need an extra are not the author's, and explain only a name of their own.
        others = [warning for warning in result.warnings if NEEDS_EXTRA not in warning]
        reasons = "".join(f"\n{warning}" for warning in others or result.warnings)
        raise ConnectException(
            f"No plugin is named {name}; is its distribution installed here, or its directory in "
            f"an entry of the plugin path?{reasons}"
        ) from error


def _define(plugin_class: type) -> str:
    """Construct the plugin and check its version and its definition."""
    instance = instantiate(plugin_class)
    if isinstance(instance, Connector):
        version = instance.version()
        if not isinstance(version, str) or not version:
            raise ConnectException(f"version() returned {version!r}, not a text")
    config = getattr(instance, "config", None)
    if config is None:
        return "takes no settings"
    definition = config()
    if not isinstance(definition, ConfigDef):
        raise ConnectException(f"config() returned a {type(definition).__qualname__}")
    undocumented = [key.name for key in definition.keys.values() if not key.documentation]
    if undocumented:
        raise ConnectException(f"Settings without documentation: {', '.join(undocumented)}")
    return f"{len(definition.keys)} settings"


def main(arguments: Sequence[str]) -> int:
    """Check one plugin and print the steps."""
    parser = argparse.ArgumentParser(description="Test a plugin without Kafka.")
    parser.add_argument("name")
    parser.add_argument("--plugin-path", action="append", default=[])
    parser.add_argument("--config-from-stdin", action="store_true", help="a JSON object of texts")
    parser.add_argument("--time", type=float, default=DEFAULT_TIME_S, help="of a step, in seconds")
    parser.add_argument("--stack-to", type=int, metavar="DESCRIPTOR", default=2)
    options = parser.parse_args(arguments)
    config = json.load(sys.stdin) if options.config_from_stdin else None
    faulthandler.enable(options.stack_to)

    def begin(step: str) -> None:
        limit_s = options.time + (SCAN_S if step == "find" else SPARE_S)
        # faulthandler's thread waits for it, and needs no lock that the plugin may hold.
        faulthandler.dump_traceback_later(limit_s, file=options.stack_to, exit=True)
        _print(StepResult(step, "begun", ""))

    failed = False
    for result in check(options.name, options.plugin_path, config, options.time, begin):
        _print(result)
        failed |= result.result == "failed"
    return int(failed)


def _print(result: StepResult) -> None:
    # Output of the plugin may come before it, without an end of line.
    sys.stdout.write(f"\n{json.dumps(result.to_json())}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    code = main(sys.argv[1:])
    # A thread that the plugin left must not delay the exit.
    os._exit(code)
