"""The steps and outcomes of records of a connector that is only tried.

Kafka has no counterpart. The task runs as in any other process, without producer, consumer and
stored offsets. A shown record is an object of JSON:

    {"steps": [{"step": NAME, "record": {...} | null} | {"step": NAME, "error": TEXT}, ...],
     "kafka": {"key", "value", "headers"}, "source_partition": {...}, "source_offset": {...}}

Steps are `polled` or `converted`, then transformations by their alias; a dropped record is null. A
step that fails is the last: a transformation, a converter, or `written` where a worker would refuse
the record. `kafka` are the bytes that the converters write, only for a source: a text, or
{"base64": TEXT}.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any, NoReturn

from pyconnect_agent.channel import Message
from pyconnect_agent.channel.reports import ConnectorTried
from pyconnect_agent.channel.requests import GivenRecord, TryConnectorJob
from pyconnect_agent.core.config.agent_keys import JAVA_ISOLATION, OWN_PROCESS
from pyconnect_agent.java_processes.launch import JavaClass
from pyconnect_agent.kafka.task_consumer import message_of
from pyconnect_agent.plugins.java_classes import plugin_locations
from pyconnect_agent.plugins.loading import instantiate
from pyconnect_agent.tasks.connector import task_class_in
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.in_java.process import (
    conversions,
    java_class_of,
    plugins_of_python,
    python_segments,
    start_link,
)
from pyconnect_agent.tasks.in_java.sink_task import from_base64
from pyconnect_agent.tasks.questions import answer
from pyconnect_agent.tasks.sink.pipeline import record_maker
from pyconnect_agent.tasks.source.offsets import WorkerOffsetReader
from pyconnect_agent.tasks.source.pipeline import NO_TOPIC, checked_timestamp, record_converter
from pyconnect_agent.tasks.trace import format_trace, shortened
from pyconnect_agent.tasks.work import WorkerSourceTaskContext
from pyconnect_agent.tasks.worker_view import WorkerView
from pyconnect_api import ConnectException, ConnectRecord, Schema, SourceRecord, SourceTask, Type
from pyconnect_api.coroutines import run_coroutines

PAUSE_S = 0.05
"""The pause between polls without records."""
QUIET_S = 2.0
"""A source is done after this time without further records, even with fewer than were asked for."""
MOST_CHARACTERS = 10_000
"""The most characters of one value of a shown record."""

Shown = dict[str, Any]


def try_connector(job: TryConnectorJob, control: Control) -> Message:
    """Return the records of a trial; a failure is an answer too, so this never raises."""
    return answer(job.worker, lambda worker: _tried(job, worker, control))


def _tried(job: TryConnectorJob, worker: WorkerView, control: Control) -> ConnectorTried:
    until_s = time.monotonic() + job.time_ms / 1000
    config = worker.resolve(job.config).values
    task_config = worker.resolve(job.task_config).values
    shown: list[Shown] = []
    failure = None
    tried: _InPython | _InJava | None = None
    try:
        java = java_class_of(worker, config)
        if java is None:
            tried = _InPython(job, worker, control, config, task_config)
        else:
            tried = _InJava(java, worker, control, config, task_config)
        if job.given is not None:
            shown += tried.convert(job.given)
        else:
            tried.start(task_config)
            last_s = until_s
            while len(shown) < job.most and time.monotonic() < last_s:
                if found := tried.poll(job.most - len(shown)):
                    shown += found
                    last_s = min(until_s, time.monotonic() + QUIET_S)
                else:
                    control.stop_requested.wait(PAUSE_S)
    except Exception as exc:  # noqa: BLE001  plugin code
        failure = format_trace(exc)
    finally:
        if tried is not None:
            try:
                tried.stop()
            except Exception as exc:  # noqa: BLE001  plugin code
                failure = failure or format_trace(exc)
    return ConnectorTried(
        records=tuple(worker.mask(json.dumps(each, default=str)) for each in shown),
        failure=None if failure is None else shortened(worker.mask(failure)),
    )


class _ConversionError(Exception):
    """An error of a converter."""

    def __init__(self, operator: type, error: Exception) -> None:
        super().__init__(str(error))
        self.operator = operator
        self.error = error


def _fail(_stage: object, operator: type, error: Exception, *_operation: object) -> NoReturn:
    raise _ConversionError(operator, error) from error


class _InPython:
    """The task of a Python connector, whose records are shown."""

    def __init__(
        self,
        job: TryConnectorJob,
        worker: WorkerView,
        control: Control,
        config: Mapping[str, str],
        task_config: Mapping[str, str],
    ) -> None:
        alone = {**config, JAVA_ISOLATION: OWN_PROCESS}
        self._plugins, _ = plugins_of_python(worker, alone, control, owner="trial", alone=True)
        self._record_of = record_maker(self._plugins.converters, _fail)
        self._outgoing_of = record_converter(self._plugins.converters, _fail)
        self._task: SourceTask | None = None
        self._is_started = False
        if job.given is None:
            task = instantiate(task_class_in(task_config, worker.connector(config)))
            assert isinstance(task, SourceTask)
            run_coroutines(task)
            context = WorkerSourceTaskContext(
                configs=lambda: task_config,
                reader=WorkerOffsetReader(job.connector, lambda _keys, _timeout_ms: {}),
                stop_requested=control.stop_requested,
            )
            task.initialize(context)
            self._task = task

    def start(self, config: Mapping[str, str]) -> None:
        assert self._task is not None
        self._is_started = True
        self._task.start(config)

    def poll(self, most: int) -> Sequence[Shown]:
        assert self._task is not None
        return [self._written(record) for record in (self._task.poll() or ())[:most]]

    def convert(self, given: Sequence[GivenRecord]) -> Sequence[Shown]:
        shown: list[Shown] = []
        for each in given:
            message = message_of(**asdict(each))
            try:
                record = self._record_of(message, each.topic, each.partition, each.offset)
            except _ConversionError as failed:
                shown.append({"steps": [_failed(failed.operator.__qualname__, failed.error)]})
                continue
            steps = [_step("converted", record)]
            self._changed(record, steps)
            shown.append({"steps": steps})
        return shown

    def stop(self) -> None:
        with ExitStack() as closing:
            self._plugins.close_with(closing)
            if self._task is not None and self._is_started:
                closing.callback(self._task.stop)

    def _written(self, polled: SourceRecord) -> Shown:
        steps = [_step("polled", polled)]
        shown: Shown = {
            "source_partition": polled.source_partition,
            "source_offset": polled.source_offset,
            "steps": steps,
        }
        record = self._changed(polled, steps)
        if record is None:
            return shown
        try:
            _, value, key, _, _, headers = self._outgoing_of(polled, record)
        except _ConversionError as failed:
            steps.append(_failed(failed.operator.__qualname__, failed.error))
        except ConnectException as exc:
            steps.append(_failed("written", exc))
        else:
            shown["kafka"] = _kafka(key, value, headers or ())
        return shown

    def _changed(self, record: Any, steps: list[Shown]) -> Any:
        """Note the record after each transformation; return the last, None if it has none."""
        for stage in self._plugins.stages:
            try:
                record = stage.apply(record)
            except Exception as exc:  # noqa: BLE001  plugin code
                steps.append(_failed(stage.alias, exc))
                return None
            steps.append(_step(stage.alias, record))
            if record is None:
                return None
        return record


class _InJava:
    def __init__(
        self,
        found: JavaClass,
        worker: WorkerView,
        control: Control,
        config: Mapping[str, str],
        task_config: Mapping[str, str],
    ) -> None:
        answers = {
            "configs": lambda _: dict(task_config),
            "readOffsets": lambda asked: [None] * len(asked["partitions"]),
        }
        converting, segments = conversions(worker, config, found.jars, alone=True)
        self._segments = python_segments(worker, config, control, converting, segments)
        alone = {**config, JAVA_ISOLATION: OWN_PROCESS}
        self._link = start_link(worker, control, alone, answers, quick=True)
        self._link.transform = self._segments.transform
        self._link.begin(
            {
                "mode": "trial",
                "connector": found.to_json(),
                "task": task_config.get("task.class"),
                "locations": plugin_locations(worker.catalog),
                **converting,
            }
        )

    def start(self, config: Mapping[str, str]) -> None:
        self._link.call("start", config=dict(config))

    def poll(self, most: int) -> Sequence[Shown]:
        return [self._plain(shown) for shown in self._link.call("poll", most=most)]

    def convert(self, given: Sequence[GivenRecord]) -> Sequence[Shown]:
        rows = [
            {
                "topic": each.topic,
                "partition": each.partition,
                "offset": each.offset,
                "timestamp": each.timestamp_ms,
                "key": _base64(each.key),
                "value": _base64(each.value),
                "headers": [(name, _base64(data)) for name, data in each.headers],
            }
            for each in given
        ]
        shown: Sequence[Shown] = self._link.call("convert", given=rows)
        return shown

    def stop(self) -> None:
        try:
            self._link.stop()
        finally:
            self._segments.close()

    @staticmethod
    def _plain(shown: Shown) -> Shown:
        if (kafka := shown.pop("kafka", None)) is not None:
            record = shown["steps"][-1]["record"]
            try:
                if record["topic"] is None:
                    raise ConnectException(NO_TOPIC)
                checked_timestamp(record["timestamp"] or 0)
            except ConnectException as exc:
                shown["steps"].append(_failed("written", exc))
                return shown
            headers = [(name, from_base64(text)) for name, text in kafka["headers"]]
            shown["kafka"] = _kafka(from_base64(kafka["key"]), from_base64(kafka["value"]), headers)
        return shown


def _step(name: str, record: ConnectRecord | None) -> Shown:
    if record is None:
        return {"step": name, "record": None}
    fields = {
        "topic": record.topic,
        "partition": record.kafka_partition,
        "timestamp": record.timestamp,
        "key": _text(record.key),
        "key_schema": _schema_text(record.key_schema),
        "value": _text(record.value),
        "value_schema": _schema_text(record.value_schema),
        "headers": [(header.key, _text(header.value)) for header in record.headers],
    }
    return {"step": name, "record": fields}


def _failed(step: str, error: Exception) -> Shown:
    return {"step": step, "error": f"{type(error).__name__}: {error}"}


def _kafka(
    key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes | None]]
) -> Shown:
    return {
        "key": _document(key),
        "value": _document(value),
        "headers": [{"key": name, "value": _document(data)} for name, data in headers],
    }


def _document(data: bytes | None) -> object:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": _base64(data)}


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, dict | list):
        text = json.dumps(value, default=str)
    else:
        text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


def _schema_text(schema: Schema | None) -> str | None:
    if schema is None:
        return None
    match schema.type:
        case Type.STRUCT:
            members = (f"{each.name}: {_schema_text(each.schema)}" for each in schema.fields)
            text = f"{{{', '.join(members)}}}"
        case Type.ARRAY:
            text = f"[{_schema_text(schema.value_schema)}]"
        case Type.MAP:
            text = f"{{{_schema_text(schema.key_schema)}: {_schema_text(schema.value_schema)}}}"
        case _:
            text = schema.type.name.lower()
    text = text if schema.name is None else f"{schema.name} {text}"
    return f"{text}?" if schema.optional else text


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
