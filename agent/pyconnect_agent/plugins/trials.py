"""The test of each kind of plugin in a self-check.

Connectors go through a life with `pyconnect_api.testing`; converters, transformations and
predicates are configured and given a sample.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping

from pyconnect_agent.core.plugin_catalog import PluginDesc
from pyconnect_agent.plugins.loading import instantiate
from pyconnect_api import (
    STRING_SCHEMA,
    ConnectException,
    Connector,
    ConnectRecord,
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

Steps = Iterator[tuple[str, Callable[[], str]]]
WITHOUT_CONFIG = "skipped: give a config for this step"
SAMPLE = "a text of the self-check"
SAMPLE_PARTITION = TopicPartition("self-check", 0)
LONGEST_WAIT_S = 1.0


class Trial(ABC):
    """Steps to run in order, then `close`, also after a failure."""

    @abstractmethod
    def steps(self) -> Steps:
        """Yield names and actions; an action returns a detail or raises."""

    def close(self) -> None:  # noqa: B027  most trials hold nothing
        """Release what the steps acquired."""


def trial_of(
    plugin_class: type, desc: PluginDesc, config: Mapping[str, str] | None, time_s: float
) -> Trial:
    """Return the trial of a plugin; `time_s`: the time for a source to return records."""
    if config is None:
        return _Unconfigured()
    if issubclass(plugin_class, Connector):
        props = {"name": "self-check", "connector.class": desc.class_name, **config}
        return _ConnectorTrial(plugin_class, props, time_s)
    return _SampleTrial(plugin_class, config)


class _Unconfigured(Trial):
    def steps(self) -> Steps:
        yield "configure", lambda: WITHOUT_CONFIG


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


class _ConnectorTrial(Trial):
    """Validate, start, split into tasks, run one task, stop."""

    def __init__(
        self, connector_class: type[Connector], props: Mapping[str, str], time_s: float
    ) -> None:
        self._class = connector_class
        self._props = props
        self._time_s = time_s
        self._harness: ConnectorHarness | None = None
        self._source: SourceHarness | None = None
        self._sink: SinkHarness | None = None

    def steps(self) -> Steps:
        yield "validate", self._validate
        yield "start", self._start
        yield "split", self._split
        if issubclass(self._class, SourceConnector):
            yield "start task", self._start_source
            yield "poll", self._poll
            yield "commit", self._commit_source
            yield "restart", self._restart_source
        elif issubclass(self._class, SinkConnector):
            yield "start task", self._start_sink
            yield "put", self._put
            yield "commit", self._commit_sink
            yield "revoke", self._revoke
        yield "stop", self._stop

    def close(self) -> None:
        """Stop task and connector after a failed step; ignore further errors."""
        for stop in (self._stop_task, self._stop_connector):
            try:
                stop()
            except Exception:  # noqa: BLE001, S112  the plugin's code; a step has told already
                continue

    def _connector(self) -> ConnectorHarness:
        assert self._harness is not None
        return self._harness

    def _validate(self) -> str:
        harness = ConnectorHarness(self._class, self._props)
        wrong = harness.errors()
        if wrong:
            texts = [f"{name}: {'; '.join(errors)}" for name, errors in wrong.items()]
            raise ConnectException("The config is not valid. " + " ".join(texts))
        self._harness = harness
        return "the config is valid"

    def _start(self) -> str:
        self._connector().start()
        return "the connector runs"

    def _split(self) -> str:
        most = int(self._props.get("tasks.max", "1"))
        configs = self._connector().task_configs(most)
        if not configs:
            raise ConnectException("task_configs() returned none, so nothing would run")
        return f"{len(configs)} tasks for tasks.max={most}"

    def _start_source(self) -> str:
        connector = self._connector()
        task_class = connector.connector.task_class()
        assert issubclass(task_class, SourceTask)
        config = connector.task_configs(int(self._props.get("tasks.max", "1")))[0]
        self._source = SourceHarness(task_class, config, stop_signal=_TimedStop)
        self._source.start()
        return "task 0 runs"

    def _poll(self) -> str:
        source = self._source
        assert source is not None
        deadline = time.monotonic() + self._time_s
        while time.monotonic() < deadline:
            records = source.poll()
            if records:
                # The next poll shows whether the task changes records that it has returned.
                source.poll()
                topics = ", ".join(sorted({str(record.topic) for record in records}))
                return f"{len(records)} records for {topics}"
        return "skipped: there was nothing to read"

    def _commit_source(self) -> str:
        assert self._source is not None
        self._source.acknowledge()
        self._source.commit()
        return f"offsets of {len(self._source.offsets.all())} source partitions"

    def _restart_source(self) -> str:
        assert self._source is not None
        self._source.restart()
        return "another task started from these offsets"

    def _start_sink(self) -> str:
        connector = self._connector()
        task_class = connector.connector.task_class()
        assert issubclass(task_class, SinkTask)
        config = connector.task_configs(int(self._props.get("tasks.max", "1")))[0]
        self._sink = SinkHarness(
            task_class, config, partitions=[SAMPLE_PARTITION], reporter=RecordingReporter()
        )
        self._sink.start()
        return f"task 0 runs and has {SAMPLE_PARTITION}"

    def _put(self) -> str:
        sink = self._sink
        assert sink is not None
        for number in range(3):
            sink.send(f"{SAMPLE} {number}", value_schema=STRING_SCHEMA, partition=SAMPLE_PARTITION)
        try:
            delivered = sink.deliver()
        except DataException as error:
            return f"skipped: the task takes no texts: {error}"
        if not delivered:
            return "skipped: the task asked to have the records again later"
        return f"{len(delivered)} records with a text as value"

    def _commit_sink(self) -> str:
        assert self._sink is not None
        return f"offsets {_shown(self._sink.commit())}"

    def _revoke(self) -> str:
        assert self._sink is not None
        self._sink.revoke()
        return f"offsets {_shown(self._sink.committed)} when the partition was taken away"

    def _stop(self) -> str:
        self._stop_task()
        self._stop_connector()
        return "task and connector have stopped"

    def _stop_task(self) -> None:
        running, self._source, sink, self._sink = self._source, None, self._sink, None
        if running is not None:
            running.stop()
        if sink is not None:
            sink.stop()

    def _stop_connector(self) -> None:
        harness, self._harness = self._harness, None
        if harness is not None:
            harness.stop()


class _SampleTrial(Trial):
    """Configure, convert or apply a sample, close."""

    def __init__(self, plugin_class: type, config: Mapping[str, str]) -> None:
        self._instance = instantiate(plugin_class)
        self._config = config

    def steps(self) -> Steps:
        yield "configure", self._configure
        yield "sample", self._sample
        yield "close", self._close

    def _configure(self) -> str:
        match self._instance:
            case Converter():
                self._instance.configure(self._config, False)
            case HeaderConverter() | Transformation() | Predicate():
                self._instance.configure(self._config)
        return "configured"

    def _sample(self) -> str:
        match self._instance:
            case Converter():
                data = self._instance.from_connect_data("self-check", [], STRING_SCHEMA, SAMPLE)
                found = self._instance.to_connect_data("self-check", [], data)
            case HeaderConverter():
                data = self._instance.from_connect_header("self-check", "h", STRING_SCHEMA, SAMPLE)
                found = self._instance.to_connect_header("self-check", "h", data)
            case Transformation() | Predicate():
                return self._try_record(self._instance)
            case _:
                return "skipped: there is no sample for this kind of plugin"
        if found.value != SAMPLE:
            raise ConnectException(f"{SAMPLE!r} came back as {found.value!r}")
        return f"{SAMPLE!r} came back as it was"

    def _try_record(self, plugin: Transformation[ConnectRecord] | Predicate[ConnectRecord]) -> str:
        record = SinkRecord(
            SAMPLE_PARTITION.topic, 0, None, None, STRING_SCHEMA, SAMPLE, 0, timestamp=0
        )
        try:
            if isinstance(plugin, Transformation):
                return f"{SAMPLE!r} became {plugin.apply(record)}"
            return f"{SAMPLE!r} gave {plugin.test(record)}"
        except DataException as error:
            return f"skipped: it takes no texts: {error}"

    def _close(self) -> str:
        close = getattr(self._instance, "close", None)
        if close is not None:
            close()
        return "closed"


def _shown(offsets: Mapping[TopicPartition, int]) -> str:
    return ", ".join(f"{partition}={offset}" for partition, offset in offsets.items()) or "none"
