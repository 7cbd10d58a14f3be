"""The test of each kind of plugin in a self-check.

Connectors go through a life with `pyconnect_api.testing`; converters, transformations and
predicates are configured and given a sample.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from typing import Protocol

from pyconnect_agent.core.plugin_catalog import PluginDesc
from pyconnect_agent.plugins.loading import instantiate
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
from pyconnect_api.testing import (
    ConnectorHarness,
    ManualStop,
    RecordingReporter,
    SinkHarness,
    SourceHarness,
)

Steps = Iterator[str]
"""The name of a step; after its code has run the detail; then the name of the next."""
WITHOUT_CONFIG = "skipped: give a config for this step"
SAMPLE = "a text of the self-check"
SAMPLE_PARTITION = TopicPartition("self-check", 0)
LONGEST_WAIT_S = 1.0


class Stoppable(Protocol):
    def stop(self) -> None: ...


def trial_of(
    plugin_class: type,
    desc: PluginDesc,
    config: Mapping[str, str] | None,
    time_s: float,
    running: list[Stoppable],
) -> Steps:
    """Return the steps for a plugin; `time_s`: the time for a source to return records.

    `running` gets what is to be stopped after a failure, the last first.
    """
    if config is None:
        return iter(("configure", WITHOUT_CONFIG))
    if issubclass(plugin_class, Connector):
        props = {"name": "self-check", "connector.class": desc.class_name, **config}
        return _connector_steps(plugin_class, props, time_s, running)
    return _sample_steps(plugin_class, config)


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
    connector: ConnectorHarness,
    config: Mapping[str, str],
    time_s: float,
    running: list[Stoppable],
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
            # The next poll shows whether the task changes records that it has returned.
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
    """Return what became of a text."""
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
