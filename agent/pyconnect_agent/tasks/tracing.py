"""Spans of a few of a task's records, sent to an OTLP collector.

Only this module imports OpenTelemetry, and only when a collector is configured. Records are chosen
by their position among those of the task, so the others cost nothing. Headers are read and never
changed. The task's thread makes all calls, except for callbacks of deliveries.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pyconnect_agent.kafka.task_consumer import ConsumedMessage
from pyconnect_agent.kafka.task_producer import DeliveredMessage, KafkaHeaders, OnDelivery
from pyconnect_agent.process.long_lived import Thread
from pyconnect_agent.tasks.worker_view import TaskSetup
from pyconnect_api import ConfigException, TopicPartition

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanKind

ENDPOINT = "agent.tracing.otlp.endpoint"
EXPORT_S = 2.0
"""Time limit of a request to the collector, and of the last spans at the end of a task."""
SELDOM_S = 60.0


def tracing_of(setup: TaskSetup) -> Tracing | None:
    """Return the tracing of a task; None without a collector. Raises ConfigException."""
    endpoint = setup.worker.config.agent_tracing_otlp_endpoint
    if endpoint is None:
        return None
    parts = urlsplit(endpoint)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigException(
            f"Invalid value {endpoint} for configuration {ENDPOINT}: it must be an address such as"
            " http://collector:4318"
        )
    if parts.path in {"", "/"}:
        endpoint = parts._replace(path="/v1/traces").geturl()
    try:
        return Tracing(
            endpoint,
            every=setup.worker.config.agent_tracing_sample_every,
            connector=setup.task_id.connector,
            task=setup.task_id.task,
        )
    except ImportError as exc:
        raise ConfigException(
            f"{ENDPOINT} needs OpenTelemetry: pip install 'pyconnect-worker[tracing]'; or remove"
            f" the key ({exc})"
        ) from exc


class _Seldom(logging.Filter):
    """A filter that passes one line a minute of each text: a collector may be down for a night."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        text = f"{record.name} {record.msg}"
        seldom = record.created - self._said.get(text, 0) >= SELDOM_S
        if seldom:
            self._said[text] = record.created
        return seldom


_SELDOM = _Seldom()


class Tracing:
    """The spans of a task; one record in `every` has one.

    `began_ns`: when the task's `poll` was last called.
    """

    def __init__(self, endpoint: str, *, every: int, connector: str, task: int) -> None:
        from opentelemetry.context import Context
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = TracerProvider(
            resource=Resource.create(
                {
                    "service.name": "kafka-connect",
                    "kafka.connect.connector": connector,
                    "kafka.connect.task": task,
                }
            ),
            shutdown_on_exit=False,
        )
        self._exporter = OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_S)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        for name in logging.root.manager.loggerDict:
            if name.startswith("opentelemetry."):
                logging.getLogger(name).addFilter(_SELDOM)
        self._tracer = self._provider.get_tracer("pyconnect")
        self._extract = TraceContextTextMapPropagator().extract
        self._new_trace = Context()
        self._kinds: tuple[SpanKind, SpanKind] = (SpanKind.PRODUCER, SpanKind.CONSUMER)
        self._error = StatusCode.ERROR
        self._every = every
        self._next = 0  # the place of the next chosen record, counted from the next record
        self._open: dict[tuple[TopicPartition, int], Span] = {}
        self.began_ns = time.time_ns()

    def watched(
        self,
        topics: Sequence[str],
        headers: Sequence[KafkaHeaders | None],
        callbacks: Iterable[OnDelivery | None],
    ) -> Iterable[OnDelivery | None]:
        """Return the callbacks of records about to be sent; those of chosen records end spans."""
        places = self._places(len(topics))
        if not places:
            return callbacks
        left, parts, at = iter(callbacks), [], 0
        for place in places:
            watch = partial(self._sent, topics[place], headers[place])
            parts += [islice(left, place - at), map(watch, islice(left, 1))]
            at = place + 1
        return chain(*parts, left)

    def read(self, messages: Sequence[ConsumedMessage]) -> None:
        """Begin spans for the chosen among the consumed messages."""
        for place in self._places(len(messages)):
            message = messages[place]
            if message.error() is None:
                source = TopicPartition(message.topic(), message.partition())
                headers, began_ns = message.headers(), time.time_ns()
                span = self._span(1, f"process {source.topic}", source.topic, headers, began_ns)
                _place(span, source.partition, message.offset())
                self._open[source, message.offset()] = span

    def accepted(self, current: Mapping[TopicPartition, int]) -> None:
        """End the spans of records before these offsets, which the task has taken."""
        for source, offset in list(self._open):
            if source not in current:
                del self._open[source, offset]
            elif current[source] > offset:
                self._open.pop((source, offset)).end()

    def close(self) -> None:
        """Send the last spans; a collector that does not answer delays the task by EXPORT_S."""
        last = Thread("last spans", self._provider.shutdown)
        last.start()
        last.join(EXPORT_S)
        if last.is_alive():
            self._exporter.shutdown()

    def _places(self, count: int) -> range:
        places = range(self._next, count, self._every)
        self._next = (self._next - count) % self._every
        return places

    def _span(
        self, kind: int, name: str, topic: str, headers: KafkaHeaders | None, began_ns: int
    ) -> Span:
        """Begin a span in the trace of the record's headers, if they have one."""
        carried = {
            key: data.decode("latin-1")
            for key, data in headers or ()
            if key in {"traceparent", "tracestate"} and data is not None
        }
        return self._tracer.start_span(
            name,
            context=self._extract(carried) if carried else self._new_trace,
            kind=self._kinds[kind],
            attributes={"messaging.system": "kafka", "messaging.destination.name": topic},
            start_time=began_ns,
        )

    def _sent(
        self, topic: str, headers: KafkaHeaders | None, done: OnDelivery | None
    ) -> OnDelivery:
        span = self._span(0, f"send {topic}", topic, headers, self.began_ns)

        def delivered(failure: Any, message: DeliveredMessage) -> None:
            if failure is None:
                _place(span, message.partition(), message.offset())
            else:
                span.set_status(self._error, str(failure))
            span.end()
            if done is not None:
                done(failure, message)

        return delivered


def _place(span: Span, partition: int | None, offset: int | None) -> None:
    span.set_attributes(
        {
            "messaging.destination.partition.id": str(partition),
            "messaging.kafka.offset": -1 if offset is None else offset,
        }
    )
