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
import contextlib
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

from pyconnect_agent.core.plugin_catalog import PluginNotFoundError
from pyconnect_agent.plugins.loading import NEEDS_EXTRA, instantiate, load
from pyconnect_agent.plugins.scan import scan
from pyconnect_agent.plugins.trials import Steps, Stoppable, trial_of
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
    running: list[Stoppable] = []
    steps = _steps(name, plugin_path, config, time_s, running)
    try:
        for step in steps:
            begin(step)
            try:
                detail = next(steps)
            # The plugin's code may raise any exception, SystemExit too.
            except (Exception, SystemExit) as error:  # noqa: BLE001  plugin code
                text = f"{type(error).__name__}: {error}{_place(error)}"
                yield StepResult(step, "failed", text)
                return
            skipped = detail.startswith("skipped: ")
            detail = detail.removeprefix("skipped: ")
            yield StepResult(step, "skipped" if skipped else "passed", detail)
    finally:
        begin("clean up")
        for each in reversed(running):
            # The plugin's code; a step has told already.
            with contextlib.suppress(Exception):
                each.stop()


def _steps(
    name: str,
    plugin_path: Sequence[str],
    config: Mapping[str, str] | None,
    time_s: float,
    running: list[Stoppable],
) -> Steps:
    """Find, import and construct the plugin; check version and definition; go on with its trial."""
    yield "find"
    result = scan(plugin_path)
    try:
        desc = result.catalog.plugin(name)
    except PluginNotFoundError as error:
        # Parts that need an extra are not the author's, and explain only a name of their own.
        others = [warning for warning in result.warnings if NEEDS_EXTRA not in warning]
        reasons = "".join(f"\n{warning}" for warning in others or result.warnings)
        raise ConnectException(
            f"No plugin is named {name}; is its distribution installed here, or its directory in "
            f"an entry of the plugin path?{reasons}"
        ) from error
    yield f"{desc.kind.value} {desc.class_name}, version {desc.version}, in {desc.location}"
    yield "load"
    plugin_class = load(desc)
    yield f"from {desc.python_path}"
    yield "define"
    instance = instantiate(plugin_class)
    if isinstance(instance, Connector):
        version = instance.version()
        if not isinstance(version, str) or not version:
            raise ConnectException(f"version() returned {version!r}, not a text")
    detail = "takes no settings"
    config_of = getattr(instance, "config", None)
    if config_of is not None:
        definition = config_of()
        if not isinstance(definition, ConfigDef):
            raise ConnectException(f"config() returned a {type(definition).__qualname__}")
        undocumented = [key.name for key in definition.keys.values() if not key.documentation]
        if undocumented:
            raise ConnectException(f"Settings without documentation: {', '.join(undocumented)}")
        detail = f"{len(definition.keys)} settings"
    yield detail
    yield from trial_of(plugin_class, desc, config, time_s, running)


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
