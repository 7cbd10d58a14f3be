"""Parts of tasks under test: converters, tolerance, metrics, and a control without a worker."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyconnect_agent.builtin.converters.base import SimpleHeaderConverter, StringConverter
from pyconnect_agent.builtin.converters.json import JsonConverter
from pyconnect_agent.core.metric_values import Sampling
from pyconnect_agent.core.retry import RetryPolicy
from pyconnect_agent.tasks.plugins import Converters
from pyconnect_agent.tasks.records import ErrorReporter, Tolerance
from pyconnect_agent.tasks.source.pipeline import OutgoingRun, compose_run
from pyconnect_agent.tasks.task_metrics import SinkMetrics, SourceMetrics, TaskMetrics
from pyconnect_api import Converter, SourceRecord


@dataclass
class FakeControl:
    """The part of `tasks.control.Control` that loops read; the test plays the worker."""

    should_pause: bool = False
    stop_requested: threading.Event = field(default_factory=threading.Event)
    changed: threading.Event = field(default_factory=threading.Event)

    @property
    def stopping(self) -> bool:
        return self.stop_requested.is_set()

    def wait(self, timeout_s: float | None = None) -> None:
        """Return at once, as the test changes the state in between."""
        raise AssertionError("a loop waits although nothing can change")


def source_metrics() -> SourceMetrics:
    return SourceMetrics(TaskMetrics(Sampling()))


def sink_metrics() -> SinkMetrics:
    return SinkMetrics(TaskMetrics(Sampling()))


def tolerance(
    *reporters: ErrorReporter, tolerate_all: bool = False, policy: RetryPolicy | None = None
) -> Tolerance:
    return Tolerance(
        tolerate_all=tolerate_all,
        policy=policy or RetryPolicy(),
        reporters=reporters,
        stop_requested=threading.Event(),
    )


def converters(values: Converter | None = None, keys: Converter | None = None) -> Converters:
    """Return converters of texts, with another one for values."""
    text = StringConverter()
    return Converters(key=keys or text, value=values or text, header=SimpleHeaderConverter())


def json_values(*, schemas: bool = True) -> JsonConverter:
    made = JsonConverter()
    made.configure({"schemas.enable": str(schemas).lower()}, is_key=False)
    return made


def text_run(polled: Sequence[SourceRecord]) -> OutgoingRun:
    """Return the run of records with texts."""
    return compose_run(converters())(polled, polled)
