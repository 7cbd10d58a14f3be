"""Tests a plugin without Kafka, for its author before an installation.

`python -m pyconnect_agent.plugins.self_check NAME [--plugin-path DIR]...` prints one JSON object
when a step begins and one when it has ended, and exits with 1 when a step failed. It runs the
plugin's code in its own process, so `pyconnect plugins test` starts it as a process.

    {"step": "poll", "result": "begun" | "passed" | "failed" | "skipped", "detail": "..."}

Connectors are run from start to stop with `pyconnect_api.testing`; converters, transformations and
predicates are configured and given a sample. A step that does not return in time, or that crashes,
ends the process; `--stack-to` names the descriptor that the stacks of its threads are written to.
"""

import argparse
import contextlib
import faulthandler
import json
import os
import re
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from pyconnect_agent.core.plugin_catalog import PluginNotFoundError
from pyconnect_agent.plugins.loading import NEEDS_EXTRA, instantiate, load
from pyconnect_agent.plugins.scan import scan
from pyconnect_api import (
    STRING_SCHEMA,
    ConnectException,
    Connector,
    Converter,
    DataException,
    HeaderConverter,
    Predicate,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceTask,
    TopicPartition,
    Transformation,
)
from pyconnect_api.configdef import ConfigDef
from pyconnect_api.testing import (
    ConnectorHarness,
    ManualStop,
    RecordingReporter,
    SinkHarness,
    SourceHarness,
)

Steps = Iterator[str]
"""Yields a step's name, then its detail after the step's code has run, then the next name."""
WITHOUT_CONFIG = "skipped: give a config for this step"
SAMPLE = "a text of the self-check"
SAMPLE_PARTITION = TopicPartition("self-check", 0)
LONGEST_WAIT_S = 1.0
DEFAULT_TIME_S = 10.0
SPARE_S = 1.0
"""The time beyond a step's own, as a step that waits for records uses its whole time."""
SCAN_S = 60.0
_NOT_THE_AUTHORS = re.compile(
    r"^<frozen|[/\\]pyconnect_(?:agent|api)[/\\]|"
    + re.escape(sysconfig.get_paths()["stdlib"])
    + r"[/\\](?!site-packages|dist-packages)"
)
Begin = Callable[[str], None]


class Stoppable(Protocol):
    def stop(self) -> None: ...


class _TimedStop(ManualStop):
    """A stop signal; a wait for it lasts a second at most."""

    def __init__(self) -> None:
        super().__init__()
        self._event = threading.Event()

    def set(self) -> None:
        super().set()
        self._event.set()

    def wait(self, timeout: float | None = None) -> bool:
        return self._event.wait(min(timeout or LONGEST_WAIT_S, LONGEST_WAIT_S))


def _connector_steps(
    connector_class: type[Connector],
    props: Mapping[str, str],
    time_s: float,
    running: list[Stoppable],
) -> Steps:
    """Validate, start, split into tasks, run one task, stop."""
    yield "validate"
    connector = ConnectorHarness(connector_class, props)
    if wrong := connector.errors():
        texts = [f"{name}: {'; '.join(errors)}" for name, errors in wrong.items()]
        raise ConnectException("The config is not valid. " + " ".join(texts))
    running.append(connector)
    yield "the config is valid"
    yield "start"
    connector.start()
    yield "the connector runs"
    yield "split"
    most = int(props.get("tasks.max", "1"))
    configs = connector.task_configs(most)
    if not configs:
        raise ConnectException("task_configs() returned none, so nothing would run")
    yield f"{len(configs)} tasks for tasks.max={most}"
    if issubclass(connector_class, SourceConnector):
        yield from _source_steps(connector, configs[0], time_s, running)
    elif issubclass(connector_class, SinkConnector):
        yield from _sink_steps(connector, configs[0], running)
    yield "stop"
    while running:
        running.pop().stop()
    yield "task and connector have stopped"


def _source_steps(
    connector: ConnectorHarness, config: Mapping[str, str], time_s: float, running: list[Stoppable]
) -> Steps:
    yield "start task"
    task_class = connector.connector.task_class()
    assert issubclass(task_class, SourceTask)
    source = SourceHarness(task_class, config, stop_signal=_TimedStop)
    running.append(source)
    source.start()
    yield "task 0 runs"
    yield "poll"
    detail = "skipped: there was nothing to read"
    deadline = time.monotonic() + time_s
    while time.monotonic() < deadline:
        if records := source.poll():
            # The next poll shows whether the task changes records that it has already returned.
            source.poll()
            topics = ", ".join(sorted({str(record.topic) for record in records}))
            detail = f"{len(records)} records for {topics}"
            break
    yield detail
    yield "commit"
    source.acknowledge()
    source.commit()
    yield f"offsets of {len(source.offsets.all())} source partitions"
    yield "restart"
    source.restart()
    yield "another task started from these offsets"


def _sink_steps(
    connector: ConnectorHarness, config: Mapping[str, str], running: list[Stoppable]
) -> Steps:
    yield "start task"
    task_class = connector.connector.task_class()
    assert issubclass(task_class, SinkTask)
    partitions = [SAMPLE_PARTITION]
    sink = SinkHarness(task_class, config, partitions=partitions, reporter=RecordingReporter())
    running.append(sink)
    sink.start()
    yield f"task 0 runs and has {SAMPLE_PARTITION}"
    yield "put"
    for number in range(3):
        sink.send(f"{SAMPLE} {number}", value_schema=STRING_SCHEMA, partition=SAMPLE_PARTITION)
    detail = "skipped: the task asked to have the records again later"
    try:
        if delivered := sink.deliver():
            detail = f"{len(delivered)} records with a text as value"
    except DataException as error:
        detail = f"skipped: the task takes no texts: {error}"
    yield detail
    yield "commit"
    yield f"offsets {_shown(sink.commit())}"
    yield "revoke"
    sink.revoke()
    yield f"offsets {_shown(sink.committed)} when the partition was taken away"


def _shown(offsets: Mapping[TopicPartition, int]) -> str:
    return ", ".join(f"{partition}={offset}" for partition, offset in offsets.items()) or "none"


def _sample_steps(plugin_class: type, config: Mapping[str, str]) -> Steps:
    """Configure, convert or apply a sample, close."""
    yield "configure"
    instance = instantiate(plugin_class)
    match instance:
        case Converter():
            instance.configure(config, False)
        case HeaderConverter() | Transformation() | Predicate():
            instance.configure(config)
    yield "configured"
    yield "sample"
    yield _sampled(instance)
    yield "close"
    close = getattr(instance, "close", None)
    if close is not None:
        close()
    yield "closed"


def _sampled(instance: object) -> str:
    """Return the outcome for a text."""
    record = SinkRecord(
        SAMPLE_PARTITION.topic, 0, None, None, STRING_SCHEMA, SAMPLE, 0, timestamp=0
    )
    try:
        match instance:
            case Converter():
                data = instance.from_connect_data("self-check", [], STRING_SCHEMA, SAMPLE)
                found = instance.to_connect_data("self-check", [], data)
            case HeaderConverter():
                data = instance.from_connect_header("self-check", "h", STRING_SCHEMA, SAMPLE)
                found = instance.to_connect_header("self-check", "h", data)
            case Transformation():
                return f"{SAMPLE!r} became {instance.apply(record)}"
            case Predicate():
                return f"{SAMPLE!r} gave {instance.test(record)}"
            case _:
                return "skipped: there is no sample for this kind of plugin"
    except DataException as error:
        if isinstance(instance, Transformation | Predicate):
            return f"skipped: it takes no texts: {error}"
        raise
    if found.value != SAMPLE:
        raise ConnectException(f"{SAMPLE!r} came back as {found.value!r}")
    return f"{SAMPLE!r} came back as it was"


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step; `detail` is a text for the user."""

    step: str
    result: str
    detail: str


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
            # The plugin's code; the steps have already reported the failure.
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
        # Warnings about a missing extra are not about the author's plugin, unless there are no
        # others.
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
    if config is None:
        yield "configure"
        yield WITHOUT_CONFIG
    elif issubclass(plugin_class, Connector):
        props = {"name": "self-check", "connector.class": desc.class_name, **config}
        yield from _connector_steps(plugin_class, props, time_s, running)
    else:
        yield from _sample_steps(plugin_class, config)


def _place(error: BaseException | None) -> str:
    """Return ` (file:line)` of the author's code that raised an error; empty if there is none.

    The cause of an error is searched when the agent's own code raised the error.
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
        # A timer of faulthandler waits for the step, and needs no lock that the plugin may hold.
        faulthandler.dump_traceback_later(limit_s, file=options.stack_to, exit=True)
        _print(StepResult(step, "begun", ""))

    failed = False
    for result in check(options.name, options.plugin_path, config, options.time, begin):
        _print(result)
        failed |= result.result == "failed"
    return int(failed)


def _print(result: StepResult) -> None:
    # Output of the plugin may precede the line, without an end of line.
    sys.stdout.write(f"\n{json.dumps(asdict(result))}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    code = main(sys.argv[1:])
    # A thread that the plugin left running must not delay the exit.
    os._exit(code)
