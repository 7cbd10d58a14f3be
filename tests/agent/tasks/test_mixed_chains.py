"""Chains with transformations in both languages, and their encoded records, without Java."""

import gc
import threading
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import pytest

from pyconnect_agent.core.config.connector_config import ConnectorSettings
from pyconnect_agent.core.metric_values import DEFAULT_SAMPLING
from pyconnect_agent.java_processes.crossing import Crossing
from pyconnect_agent.tasks.in_java.segments import (
    PART,
    MixedChain,
    Outcome,
    PythonSegment,
    PythonSegments,
    failure_of,
)
from pyconnect_agent.tasks.records import (
    RecordSkipped,
    StageCounts,
    TransformationStage,
    tolerance_of,
)
from pyconnect_api import (
    DATE_SCHEMA,
    STRING_SCHEMA,
    ConnectRecord,
    DataException,
    Header,
    SchemaBuilder,
    SinkRecord,
    SourceRecord,
    Struct,
    TimestampType,
)
from tests.support.functions import Applied

CONFIG = {"name": "c", "connector.class": "x", "errors.tolerance": "all"}


def record(value: object) -> SourceRecord:
    return SourceRecord({"file": "f"}, {"at": 1}, "t", value=value)


class Elsewhere:
    """A segment that answers later; it notes its records and fails for `bad`."""

    def __init__(self) -> None:
        self.counts: Sequence[StageCounts] = ()
        self.seen: list[object] = []

    def begin(self, records: Sequence[ConnectRecord]) -> Callable[[], Sequence[Outcome]]:
        self.seen += [each.value for each in records]

        def outcome(each: ConnectRecord) -> Outcome:
            return failure_of(self, DataException("no")) if each.value == "bad" else each

        return lambda: list(map(outcome, records))


def test_the_records_before_a_failure_come_first_and_none_is_transformed_twice() -> None:
    """The caller goes on with the records behind the failure, as with a chain of one language."""
    stop = threading.Event()
    tolerance = tolerance_of(CONFIG, task_id="c-0", describe_record=str, stop_requested=stop)
    elsewhere = Elsewhere()
    odd = TransformationStage(
        alias="odd", transformation=Applied(lambda each: None if each.value == 1 else each)
    )
    settings = ConnectorSettings.parse(CONFIG)
    python = PythonSegment([odd], settings, stop, DEFAULT_SAMPLING)
    chain = MixedChain([elsewhere, python], tolerance)  # type: ignore[list-item]  # in its place
    records = [record(value) for value in (0, "bad", 1, "bad", *range(2, 2 * PART))]
    done, failed = chain.run(records)
    assert [each.value for each in done] == [0]
    assert failed is not None
    with pytest.raises(RecordSkipped):
        failed()
    kept = chain.kept(records[2:])
    assert [each.value for each in kept] == [*range(2, 2 * PART)]
    assert elsewhere.seen == [each.value for each in records]
    assert tolerance.counts.records_skipped == 2
    (counts,) = python.counts
    assert (counts.came, counts.dropped, counts.failed) == (2 * PART, 1, 0)


def test_records_that_cross_are_the_same() -> None:
    """Headers, schemas and logical values cross, and an unchanged record stays the same object."""
    schema = SchemaBuilder.struct().field("day", DATE_SCHEMA).field("text", STRING_SCHEMA).build()
    value = Struct(schema).put("day", date(2026, 1, 2)).put("text", "a")
    headers = [Header("h", STRING_SCHEMA, "v")]
    source = record({"a": [1, 2.5, None]})
    created = TimestampType.CREATE_TIME
    sink = SinkRecord("t", 3, STRING_SCHEMA, "k", schema, value, 7, 5, created, headers, "o", 4, 6)

    def refuse(place: int, error: DataException) -> Any:
        pytest.fail(f"{place}: {error}")

    question = Crossing().encode(1, [source, sink], refuse)
    segment, found = Crossing().decode(question)
    assert segment == 1
    assert found == [source, sink]
    changed = found[1].new_record("new", 0, None, None, None, b"x", None)
    answer = Crossing().encode([[2, 0, 0]], [True, changed], refuse)
    counts, outcomes = Crossing().decode_outcomes(answer, [source, sink], refuse)
    assert counts == [[2, 0, 0]]
    assert outcomes[0] is source
    assert outcomes[1] == changed


ROW = SchemaBuilder.struct().field("a", SchemaBuilder.int64()).build()
NESTED = SchemaBuilder.struct().field("rows", SchemaBuilder.array(ROW)).build()


def nested(number: int) -> Struct:
    return Struct(NESTED).put("rows", [Struct(ROW).put("a", number)])


FLAT = SchemaBuilder.struct().field("row", ROW).build()


def flat(number: int) -> Struct:
    return Struct(FLAT).put("row", Struct(ROW).put("a", number))


CHANGES: dict[str, tuple[object, Callable[[Any], object]]] = {
    "nothing": (nested(1), lambda each: each),
    "nothing of a flat one": (flat(1), lambda each: each.value.get_struct("row").get("a")),
    "a field of a flat one": (flat(1), lambda each: each.value.get_struct("row").put("a", 2)),
    "a flat one": (flat(1), lambda each: each.value.put("row", Struct(ROW).put("a", 3))),
    "a field within": (nested(1), lambda each: each.value.get("rows")[0].put("a", 2)),
    "one more": (nested(1), lambda each: each.value.get("rows").append(Struct(ROW).put("a", 2))),
    "a member": ({"a": [1, None]}, lambda each: each.value["a"].append(2)),
    "another name": ({"a": 1}, lambda each: each.value.update(b=each.value.pop("a"))),
    "a type": ({"a": 1}, lambda each: each.value.update(a=True)),
    "a header": (1, lambda each: each.headers.add_string("h", "x")),
    "the topic": (1, lambda each: setattr(each, "topic", "other")),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_python_changes_in_place_reaches_java(case: str) -> None:
    """The answer leaves out only a record of which no part has changed."""
    value, change = CHANGES[case]

    def apply(each: ConnectRecord) -> ConnectRecord:
        change(each)
        return each

    stage = TransformationStage(alias="x", transformation=Applied(apply))
    settings = ConnectorSettings.parse(CONFIG)
    segment = PythonSegment([stage], settings, threading.Event(), DEFAULT_SAMPLING)
    schema = value.schema if isinstance(value, Struct) else None
    sent = SourceRecord({}, {}, "t", value_schema=schema, value=value)
    crossing = Crossing()
    answer = PythonSegments([segment], ()).transform(crossing.encode(0, [sent], failure_of))
    original = SourceRecord({}, {}, "t")
    _, [found] = crossing.decode_outcomes(answer, [original], failure_of)
    assert (found is original) == case.startswith("nothing")
    if found is not original:
        expected = SourceRecord({}, {}, "t", value_schema=schema, value=value)
        change(expected)
        assert found == expected


def test_changes_of_records_that_came_back_are_not_kept() -> None:
    """Otherwise each struct that a later transformation changes would stay in memory."""
    crossing, sent = Crossing(), SourceRecord({}, {}, "t")
    changed = sent.new_record("o", 0, None, None, ROW, Struct(ROW), 0)
    answer = Crossing().encode([], [changed], failure_of)

    def structs() -> int:
        return sum(isinstance(each, Struct) for each in gc.get_objects())

    before = structs()
    for _ in range(100):
        _, [found] = crossing.decode_outcomes(answer, [sent], failure_of)
        found.value.put("a", 1)
    assert structs() < before + 50
