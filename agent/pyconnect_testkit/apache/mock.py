"""MockSource and MockSink: they move no records, and fail on request.

Layer: builtin. Kafka: `org.apache.kafka.connect.tools`. `mock_mode` is `connector-failure` or
`task-failure`, `delay_ms` when (15,000); without a mode they only run.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from pyconnect_agent import long_lived
from pyconnect_agent.core.apache_release import CONNECT_VERSION
from pyconnect_api import (
    ConfigDef,
    Connector,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
)

MODE = "mock_mode"
DELAY = "delay_ms"
CONNECTOR_FAILURE = "connector-failure"
TASK_FAILURE = "task-failure"
DEFAULT_DELAY_MS = 15_000
SINK_WAIT_MS = 250
IDLE_WAIT_S = 0.1


class _MockConnector(Connector):
    """One task; in the mode for it, the connector reports an error after the delay."""

    def __init__(self) -> None:
        self._props: Mapping[str, str] = {}
        self._timer: long_lived.Timer | None = None

    def version(self) -> str:
        return CONNECT_VERSION

    def start(self, props: Mapping[str, str]) -> None:
        self._props = props
        if props.get(MODE) == CONNECTOR_FAILURE:
            failure = RuntimeError("Triggered connector failure")
            fail = partial(self.context.raise_error, failure)
            self._timer = long_lived.Timer("mock-failure", _delay_ms(props) / 1000, fail)
            self._timer.start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._props]

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
            self._timer = None

    def config(self) -> ConfigDef:
        return ConfigDef()


class _Failure:
    """Fails once the delay has passed since it was made, in the mode for it."""

    def __init__(self, props: Mapping[str, str]) -> None:
        self.delay_ms = _delay_ms(props) if props.get(MODE) == TASK_FAILURE else None
        self._started = time.monotonic()

    def check(self) -> None:
        if self.delay_ms is not None and time.monotonic() - self._started > self.delay_ms / 1000:
            raise RuntimeError("Triggered task failure")


def _delay_ms(props: Mapping[str, str]) -> int:
    return int(props.get(DELAY, DEFAULT_DELAY_MS))


class MockSourceTask(SourceTask):
    """Has no records."""

    java_name = "org.apache.kafka.connect.tools.MockSourceTask"

    def version(self) -> str:
        return CONNECT_VERSION

    def start(self, props: Mapping[str, str]) -> None:
        self._failure = _Failure(props)

    def poll(self) -> Sequence[SourceRecord] | None:
        self._failure.check()
        self.context.stop_requested.wait(IDLE_WAIT_S)
        return []

    def stop(self) -> None:
        """Nothing to release."""


class MockSinkTask(SinkTask):
    """Drops its records."""

    java_name = "org.apache.kafka.connect.tools.MockSinkTask"

    def version(self) -> str:
        return CONNECT_VERSION

    def start(self, props: Mapping[str, str]) -> None:
        self._failure = _Failure(props)
        self._ask_for_a_put()

    def put(self, records: Collection[SinkRecord]) -> None:
        self._failure.check()
        self._ask_for_a_put()

    def stop(self) -> None:
        """Nothing to release."""

    def _ask_for_a_put(self) -> None:
        # Without records `put` may be called at offset commits only.
        if self._failure.delay_ms is not None:
            self.context.timeout(min(self._failure.delay_ms, SINK_WAIT_MS))


class MockSourceConnector(_MockConnector, SourceConnector):
    """A source without records."""

    def task_class(self) -> type[SourceTask]:
        return MockSourceTask


class MockSinkConnector(_MockConnector, SinkConnector):
    """A sink that drops its records."""

    def task_class(self) -> type[SinkTask]:
        return MockSinkTask
