"""Messages that are converted in runs give the same records as single messages."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from itertools import accumulate
from typing import Any
from unittest import mock

import pytest
from confluent_kafka import KafkaError as ClientError
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.builtin.connectors.file_stream import FileStreamSinkTask
from pyconnect_agent.builtin.converters.base import SimpleHeaderConverter, StringConverter
from pyconnect_agent.tasks.records import Chain, Failure, TransformationStage
from pyconnect_agent.tasks.sink import pipeline as sink_pipeline
from pyconnect_agent.tasks.sink.dead_letters import ConsumedRecord
from pyconnect_agent.tasks.sink.pipeline import MessageRun
from pyconnect_agent.tasks.source import pipeline as source_pipeline
from pyconnect_api import (
    Converter,
    DataException,
    RetriableException,
    SinkRecord,
    SinkRecords,
    SourceRecord,
    TopicPartition,
)
from tests.agent.builtin.transforms.transformations import transformation
from tests.agent.tasks.parts import converters, json_values, tolerance
from tests.agent.tasks.sink.sink_loop import P0, assigned_sink, message
from tests.support.cases import cases
from tests.support.fakes.fake_clients import FakeMessage
from tests.support.functions import ANY_MESSAGES, chain_of

Deeds = Mapping[int, str]


class Reports:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    def report(self, failure: Failure) -> Future[None] | None:
        record: Any = failure.record
        message = record.consumed if isinstance(record, ConsumedRecord) else record
        self.seen.append((failure.stage.value, repr(message), str(failure.error)))
        return None


def converted(
    messages: Sequence[FakeMessage],
    *,
    value_converter: Converter,
    deeds: Deeds,
    tolerate_all: bool,
    gone: frozenset[TopicPartition],
    keep_consumed: bool,
    knows_topic: bool,
) -> dict[str, Any]:
    """Return all results of a conversion."""
    reports, transformed, topics = Reports(), [], set()
    handling = tolerance(reports, tolerate_all=tolerate_all)

    def transform(record: SinkRecord) -> SinkRecord | None:
        transformed.append(record.kafka_offset)
        match deeds.get(record.kafka_offset):
            case "drop":
                return None
            case "fail":
                raise DataException("failed")
            case "later":
                raise RetriableException("not yet")
            case "route":
                return record.new_record("other", 9, None, None, None, "new", None)
        return record

    intake = sink_pipeline.Intake(
        topic_used=topics.add,
        is_assigned=lambda partition: partition not in gone,
        check_error=lambda message: None,
        only_topic="t" if knows_topic and {m.topic() for m in messages} == {"t"} else None,
    )
    convert = sink_pipeline.compose_conversion(
        intake,
        converters=converters(value_converter),
        chain=chain_of(transform, tolerance=handling) if deeds else None,
        tolerance=handling,
        keep_consumed=keep_consumed,
    )
    consumed: dict[TopicPartition, int] = {}
    try:
        records, foreign = convert(messages, consumed)
    except Exception as exc:
        return {"failure": (repr(exc), repr(exc.__cause__)), "reports": reports.seen}
    return {
        "records": [(type(record), repr(record)) for record in records],
        "messages": [getattr(record, "consumed", None) for record in records],
        "foreign": foreign,
        "consumed": consumed,
        "topics": topics,
        "reports": reports.seen,
        "transformed": transformed,
        "counts": handling.counts.record_errors,
    }


@st.composite
def messages(draw: st.DrawFn) -> list[FakeMessage]:
    """Draw messages, most of them ordinary, some with an odd part or a gap."""
    made: list[FakeMessage] = []
    step = st.just(1) if draw(st.booleans()) else st.integers(1, 3)
    for offset in accumulate(draw(st.lists(step, min_size=1, max_size=8)), initial=0):
        odd = draw(st.sampled_from([*[""] * 8, "place", "key", "value", "time", "header", "error"]))
        made.append(
            FakeMessage(
                draw(st.sampled_from(["t", "u"])) if odd == "place" else "t",
                draw(st.integers(0, 1)) if odd == "place" else 0,
                offset,
                draw(st.sampled_from([None, b"no JSON", b"\xff"]))
                if odd == "value"
                else b'{"schema":{"type":"string","optional":false},"payload":"%d"}' % offset,
                b"k" if odd == "key" else None,
                draw(st.sampled_from([(0, -1), (1, -1), (1, -5), (2, 7)]))
                if odd == "time"
                else (1, 7),
                (("h", draw(st.sampled_from([None, b"1"]))),) if odd == "header" else (),
                ClientError(ClientError._PARTITION_EOF) if odd == "error" else None,
            )
        )
    return made


deeds = st.sampled_from(["drop", "fail", "later", "route"])
surroundings = st.fixed_dictionaries(
    {
        "deeds": st.dictionaries(st.integers(0, 7), deeds, max_size=3),
        "tolerate_all": st.booleans(),
        "gone": st.frozensets(st.sampled_from([P0, TopicPartition("u", 1)]), max_size=1),
        "keep_consumed": st.booleans(),
        "knows_topic": st.booleans(),
    }
)


@cases("make", StringConverter, json_values, lambda: json_values(schemas=False))
@given(polled=messages(), surroundings=surroundings)
def test_runs_have_the_same_results_as_single_messages(
    make: Callable[[], Converter], polled: list[FakeMessage], surroundings: dict[str, Any]
) -> None:
    """Records, offsets, reports and the task's failure do not depend on the way of conversion."""
    seen = [
        converted(polled, value_converter=make(), **surroundings) for _ in single_messages_only()
    ]
    assert seen[0] == seen[1]


def single_messages_only() -> Any:
    """Yield twice; the second time messages are converted one by one."""
    yield None
    with mock.patch.object(MessageRun, "of", return_value=None):
        yield None


def test_an_ordinary_poll_is_a_run() -> None:
    """An ordinary poll is converted as a run; the comparison above depends on it."""
    run = MessageRun.of([FakeMessage("t", place % 2, place) for place in range(4)])
    assert run is not None
    assert run.ends == {P0: 3, TopicPartition("t", 1): 4}
    assert run.offsets == [0, 1, 2, 3]


def test_a_converter_that_loses_values_is_asked_one_by_one() -> None:
    """A form for many values that returns another number of values raises, so no record is lost."""

    class Losing(StringConverter):
        def from_connect_many(self, *arguments: Any) -> list[bytes | None]:
            return super().from_connect_many(*arguments)[1:]

        def to_connect_many(self, *arguments: Any) -> Any:
            schemas, values = super().to_connect_many(*arguments)
            return schemas[1:], values[1:]

    losing = converters(Losing())
    run = MessageRun.of([FakeMessage("t", 0, 0, b"v")])
    assert run is not None
    polled = [SourceRecord({}, {}, "t", value="v")]
    with pytest.raises(ValueError, match="another number"):
        sink_pipeline.compose_run(losing, SinkRecord)(run)
    with pytest.raises(ValueError, match="another number"):
        source_pipeline.compose_run(losing)(polled, polled)


def test_a_run_is_offered_again_as_it_was() -> None:
    """A batch is put again with the same record objects."""
    sink = assigned_sink()
    given: list[list[SinkRecord]] = []

    def put(records: Sequence[SinkRecord]) -> None:
        given.append(list(records))
        if len(given) == 1:
            raise RetriableException("later")

    sink.task.put = put  # type: ignore[method-assign]
    sink.deliver(message(0), message(1))
    sink.deliver()
    assert len(given) == 2
    assert all(one is other for one, other in zip(*given, strict=True))


def test_a_file_gets_the_lines_of_a_run_as_of_a_list(tmp_path: Any) -> None:
    """The file sink writes the same lines for a run and a list, also for other values."""
    values: list[object] = ["one", "two", 3, None]
    records = [SinkRecord("t", 0, None, None, None, value, 0) for value in values]
    contents = []
    for number, batch in enumerate(
        (records, SinkRecords(values, lambda: records), SinkRecords(values[:2], lambda: records))
    ):
        task = FileStreamSinkTask()
        task.start({"file": str(tmp_path / str(number))})
        task.put(batch)
        task.stop()
        contents.append((tmp_path / str(number)).read_text())
    assert contents == ["one\ntwo\n3\nnull\n"] * 2 + ["one\ntwo\n"]


def test_trace_headers_pass_transformations_and_reach_the_sink_as_they_are() -> None:
    """Headers of W3C Trace Context keep their order and bytes through transformations."""
    trace = (
        ("traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ("tracestate", b"rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
        ("tracestate", b"vendor=1"),
    )
    consumed = FakeMessage(the_value=b'{"id": 1, "card": "4111"}', the_headers=trace)
    handling = tolerance()
    stages = [
        TransformationStage(alias=name, transformation=transformation(name, **options))
        for name, options in (
            ("InsertField$Value", {"topic_field": "topic"}),
            ("MaskField$Value", {"fields": "card"}),
            ("ValueToKey", {"fields": "id"}),
            ("RegexRouter", {"regex": "(.*)", "replacement": "$1-clean"}),
            ("InsertHeader", {"header": "origin", "value_literal": "x"}),
        )
    ]
    convert = sink_pipeline.compose_conversion(
        ANY_MESSAGES,
        converters=converters(json_values(schemas=False)),
        chain=Chain(stages, handling),
        tolerance=handling,
    )
    (record,), _ = convert([consumed], {})
    written = [
        (
            each.key,
            SimpleHeaderConverter().from_connect_header("t", each.key, each.schema, each.value),
        )
        for each in record.headers
    ]
    assert written == [*trace, ("origin", b"x")]
    assert [each.value for each in record.headers][:3] == [text.decode() for _, text in trace]
