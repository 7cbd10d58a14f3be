"""Spans of sampled records, as a collector receives them."""

import subprocess
import sys
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from pyconnect_agent.tasks.tracing import EXPORT_S, Tracing, tracing_of
from pyconnect_api import ConfigException, Header
from tests.agent.tasks.parts import text_run
from tests.agent.tasks.sink.sink_loop import P0, Sink
from tests.agent.tasks.source.source_loop import Source, record
from tests.agent.tasks.source.test_exactly_once import Case
from tests.support.cases import cases
from tests.support.fakes.connect_server import frozen
from tests.support.fakes.fake_clients import FakeMessage
from tests.support.servers.otlp_collector import Collector, otlp_collector

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
UNSAMPLED = f"00-{TRACE}-00f067aa0ba902b7-00"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with otlp_collector() as made:
        yield made


def tracing_to(url: str, every: int = 1) -> Tracing:
    setup: Any = SimpleNamespace(
        worker=SimpleNamespace(
            config=SimpleNamespace(
                agent_tracing_otlp_endpoint=url, agent_tracing_sample_every=every
            )
        ),
        task_id=SimpleNamespace(connector="orders", task=2),
    )
    made = tracing_of(setup)
    assert made is not None
    return made


def parents(*texts: str) -> list[Header]:
    return [Header("traceparent", None, text) for text in texts]


def test_a_source_record_has_a_span_from_poll_to_acknowledgement(collector: Collector) -> None:
    """The span is part of the trace in the record's headers; a refused record's span has failed."""
    source = Source(tolerate_all=True)
    source.sender.tracing = tracing_to(collector.url)
    source.poll(
        record(1, headers=parents(PARENT)), record(2), record(3, headers=parents(UNSAMPLED))
    )
    assert source.producer.sent[0].headers == [("traceparent", PARENT.encode())]
    source.producer.fail(1, -188)
    source.producer.deliver()
    source.producer.serve()
    source.sender.tracing.close()
    assert collector.paths == {"/v1/traces"}
    failed, first = sorted(collector.spans, key=lambda span: not span["failed"])
    expected = (*("send t", TRACE, "00f067aa0ba902b7"), False)
    assert (first["name"], first["trace"], first["parent"], first["failed"]) == expected
    assert first["kafka.connect.connector"] == "orders"
    assert first["kafka.connect.task"] == 2
    assert first["messaging.destination.name"] == "t"
    assert first["ns"] > 0
    assert (failed["failed"], failed["parent"]) == (True, "")


@cases("exactly_once", False, True)
def test_one_record_in_so_many_is_sampled_in_runs(collector: Collector, exactly_once: bool) -> None:
    """The sizes of runs do not change which records are sampled, and all callbacks are kept."""
    tracing = tracing_to(collector.url, every=10)
    source, case = Source(), Case()
    sender: Any = case.sender if exactly_once else source.sender
    sender.tracing = tracing
    sent = 0
    for size in (3, 25, 1, 12, 19):
        polled = [record(sent + place) for place in range(size)]
        sender.send_run(text_run(polled))
        source.producer.deliver()
        sender.batch_sent()
        sent += size
    if not exactly_once:
        committable = source.sender.submitted.committable_offsets()
        assert (committable.committable_count, committable.uncommittable_count) == (60, 0)
    else:
        assert sum(len(each) for each in case.producer.committed) >= 60
    tracing.close()
    assert len(collector.spans) == 6


def test_a_sink_record_has_a_span_from_read_to_put(collector: Collector) -> None:
    """The span of a sampled record ends when the task has taken the record."""
    tracing = tracing_to(collector.url, every=2)
    sink = Sink(tracing=tracing)
    sink.assign({P0: 0})
    sink.consumer.polls = [
        [
            FakeMessage("t", 0, offset, b"v", the_headers=(("traceparent", PARENT.encode()),))
            for offset in range(3)
        ]
    ]
    sink.loop.step()
    tracing.close()
    spans = sorted(collector.spans, key=lambda span: int(span["messaging.kafka.offset"]))
    assert [(span["name"], span["messaging.kafka.offset"], span["trace"]) for span in spans] == [
        ("process t", 0, TRACE),
        ("process t", 2, TRACE),
    ]


def test_spans_of_partitions_that_go_are_dropped(collector: Collector) -> None:
    """A span of a lost partition is dropped, as another member's task takes the record."""
    tracing = tracing_to(collector.url)
    tracing.read([FakeMessage("t", 0, 1, b"v"), FakeMessage("t", 1, 1, b"v")])
    tracing.accepted({P0: 1})
    tracing.accepted({P0: 2})
    tracing.close()
    assert [span["messaging.destination.partition.id"] for span in collector.spans] == ["0"]


def test_a_collector_that_is_not_there_costs_the_task_nothing() -> None:
    """A refused connection does not affect delivery or commits."""
    source = Source()
    source.sender.tracing = tracing_to("http://127.0.0.1:9/")
    source.poll(record(1))
    source.producer.deliver()
    source.sender.finish(failed=False, complete=True)
    assert len(source.written) == 1
    source.sender.tracing.close()


def test_a_missing_extra_and_a_wrong_address_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error for an address names the key, the one for a missing extra names the extra."""
    with pytest.raises(ConfigException, match=r"agent\.tracing\.otlp\.endpoint.*http://"):
        tracing_to("collector:4318")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigException, match=r"pyconnect-worker\[tracing\]"):
        tracing_to("http://127.0.0.1:9")


def test_opentelemetry_is_not_imported_without_a_collector() -> None:
    """A task without tracing does not import OpenTelemetry."""
    code = "import sys, pyconnect_agent.tasks.work, pyconnect_agent.tasks.work\n"
    code += "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_a_collector_that_is_gone_holds_no_task_up(caplog: pytest.LogCaptureFixture) -> None:
    """A stuck collector delays the end by one request at most; each error is logged once."""
    with frozen() as url:
        source = Source()
        source.sender.tracing = tracing_to(url)
        for first in range(0, 2_000, 500):
            source.poll(*(record(number) for number in range(first, first + 500)))
            source.producer.deliver()
            source.producer.serve()
        began_s = time.monotonic()
        source.sender.tracing.close()
        assert time.monotonic() - began_s < 3 * EXPORT_S, "four requests take 8 s"
    texts = [each.msg for each in caplog.records if each.name.startswith("opentelemetry")]
    assert len(texts) == len(set(texts))
