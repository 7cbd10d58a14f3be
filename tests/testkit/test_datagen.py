"""Tests of Datagen."""

import json
import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_api import ConfigException, ExactlyOnceSupport, SourceRecord, Struct, Type
from pyconnect_api.testing import ConnectorHarness, SourceHarness
from pyconnect_testkit.datagen.connector import TEMPLATES, DatagenSourceConnector, DatagenSourceTask
from pyconnect_testkit.datagen.generator import RecordGenerator, text_maker

FAST = {"topic": "t", "quickstart": "orders", "max.interval": "0", "random.seed": "1"}


def harness(**settings: str) -> SourceHarness:
    props = {**FAST, **{name.replace("_", "."): value for name, value in settings.items()}}
    connector = ConnectorHarness(DatagenSourceConnector, props)
    connector.start()
    return connector.source()


def content(records: list[SourceRecord]) -> list[object]:
    return [(record.key, record.value) for record in records]


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_every_quickstart_makes_valid_records(name: str) -> None:
    """Each value fits its schema, and each record has a key."""
    source = harness(quickstart=name, batch_size="50")
    source.start()
    records = source.poll()
    assert len(records) == 50
    for record in records:
        assert isinstance(record.value, Struct)
        record.value.validate()
        assert record.key is not None


def test_the_sequence_goes_on_after_a_restart_as_if_there_were_none() -> None:
    """Record n depends only on seed, task and n; a header counts the starts."""
    whole = harness(batch_size="10")
    whole.start()
    expected = content(whole.run(20))
    source = harness(batch_size="10")
    source.start()
    records = source.run(10)
    source.commit()
    source.poll()
    source.restart()
    again = source.run(10)
    assert content(records + again) == expected
    header = again[0].headers.last_with_name("task.generation")
    assert header is not None
    assert header.value == 1


def test_a_seed_that_was_chosen_is_kept() -> None:
    """Without random.seed the first start picks a seed; later starts read it from the offset."""
    source = SourceHarness(
        DatagenSourceTask, {"topic": "t", "quickstart": "users", "max.interval": "0"}
    )
    source.start()
    first = source.run(1)[0].source_offset
    source.commit()
    source.restart()
    later = source.poll()[0].source_offset
    assert first is not None
    assert later is not None
    assert later["random.seed"] == first["random.seed"]


def test_tasks_have_sequences_of_their_own() -> None:
    """Two tasks with the same seed write different records."""
    connector = ConnectorHarness(DatagenSourceConnector, FAST)
    connector.start()
    streams = []
    for number in range(2):
        source = connector.source(number, max_tasks=2)
        source.start()
        streams.append(content(source.poll()))
    assert streams[0] != streams[1]


def test_after_the_last_iteration_it_waits_in_slices() -> None:
    """An exhausted source waits, so that the worker does not poll without a pause."""
    source = harness(iterations="3", batch_size="2")
    source.start()
    assert [len(source.poll()) for _ in range(3)] == [2, 1, 0]
    assert source.stop_requested.waits_s == [1.0]


def test_throughput_limits_records_per_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are due by the time since the start, at most a batch in each poll."""
    now_s = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    source = harness(throughput="10", batch_size="4")
    source.start()
    assert source.poll() == []
    assert source.stop_requested.waits_s == [0.1]
    now_s = 100.55
    assert [len(source.poll()) for _ in range(3)] == [4, 1, 0]


def test_without_throughput_each_record_waits_for_a_random_part_of_the_interval() -> None:
    """Each poll waits and returns one record."""
    source = harness(max_interval="200")
    source.start()
    assert [len(source.poll()) for _ in range(5)] == [1] * 5
    waits_s = source.stop_requested.waits_s
    assert len(waits_s) == 5
    assert all(wait is not None and 0 <= wait <= 0.2 for wait in waits_s)
    assert len(set(waits_s)) > 1


def schema(*fields: object) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": list(fields)})


def test_hints_select_the_generated_values() -> None:
    """Each hint has its effect, also in nested types and unions."""

    def field(name: str, kind: object, **hints: object) -> dict[str, object]:
        base = kind if isinstance(kind, dict) else {"type": kind}
        return {"name": name, "type": {**base, "arg.properties": hints} if hints else kind}

    generator = RecordGenerator(
        schema(
            field("pick", "string", options=["a", "b"]),
            field("between", "int", range={"min": 3, "max": 5}),
            field("count", "long", iteration={"start": 10, "step": 5, "restart": 20}),
            field("ratio", "double", range={"min": 1, "max": 2}),
            field("code", "string", regex="[A-C]{2}-\\d+"),
            field("five", "string", length=5),
            field("list", {"type": "array", "items": "int"}, length={"min": 2, "max": 3}),
            field("never", "boolean", odds=0.0),
            field("maybe", ["null", "string"]),
            field("map", {"type": "map", "values": "long"}, length=1),
            field("suit", {"type": "enum", "name": "Suit", "symbols": ["X", "Y"]}),
            field("raw", {"type": "fixed", "name": "Raw", "size": 3}),
            field("when", {"type": "long", "logicalType": "timestamp-millis"}),
            field("suit2", "Suit"),
        )
    )
    records = [generator.record("s", number) for number in range(40)]
    assert {record.get("pick") for record in records} == {"a", "b"}
    assert {record.get("between") for record in records} == {3, 4}
    assert [record.get("count") for record in records[:3]] == [10, 15, 10]
    assert {record.get("maybe") is None for record in records} == {True, False}
    for record in records:
        assert re.fullmatch(r"[A-C]{2}-\d+", str(record.get("code")))
        assert len(str(record.get("five"))) == 5
        assert record.get_array("list") is not None
        assert len(record.get_array("list") or []) == 2
        assert record.get("never") is False
        assert len(record.get_bytes("raw") or b"") == 3
        assert {record.get("suit"), record.get("suit2")} <= {"X", "Y"}
    when = generator.field_schema("when")
    assert (when.name, when.type) == ("org.apache.kafka.connect.data.Timestamp", Type.INT64)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"quickstart": ""}, "exactly one of"),
        ({"schema.string": "{}"}, "exactly one of"),
        ({"quickstart": "", "schema.string": "nope"}, "not JSON"),
        ({"quickstart": "", "schema.string": '"int"'}, "must be an Avro record"),
        ({"quickstart": "", "schema.filename": "/nowhere/x"}, "cannot be read"),
        ({"schema.keyfield": "nope"}, "no field nope"),
        (
            {
                "quickstart": "",
                "schema.string": schema(
                    {"name": "f", "type": {"type": "int", "arg.properties": {"rnage": {}}}}
                ),
            },
            "Unknown generator hints rnage",
        ),
        (
            {"quickstart": "", "schema.string": schema({"name": "f", "type": "Missing"})},
            "does not define",
        ),
    ],
)
def test_a_wrong_schema_is_found_by_validation(settings: dict[str, str], text: str) -> None:
    """Validation reports the reason before the connector is created."""
    found = ConnectorHarness(DatagenSourceConnector, {**FAST, **settings}).errors()
    assert re.search(text, str(found))


def test_a_missing_topic_is_found_by_validation() -> None:
    """Either `topic` or `kafka.topic` is enough."""
    props = {name: value for name, value in FAST.items() if name != "topic"}
    assert "topic" in ConnectorHarness(DatagenSourceConnector, props).errors()
    assert not ConnectorHarness(DatagenSourceConnector, {**props, "kafka.topic": "t"}).errors()


def test_a_schema_may_come_from_a_file(tmp_path: Path) -> None:
    """A schema file has the same effect as schema.string."""
    path = tmp_path / "schema.avsc"
    path.write_text(schema({"name": "f", "type": "int"}))
    source = harness(quickstart="", schema_filename=str(path))
    source.start()
    record = source.poll()[0]
    assert record.key is None
    assert isinstance(record.value, Struct)


def test_it_supports_exactly_once() -> None:
    """The records after a restart are those that would have come, so exactly-once is possible."""
    assert DatagenSourceConnector().exactly_once_support(FAST) is ExactlyOnceSupport.SUPPORTED


PATTERNS = [
    "User_[1-9]",
    "a|bc",
    r"\w+@[a-z]{2,5}\.(com|org)",
    "x?y*z{3}",
    "[a-f0-9-]{4,}",
    "a{2,}",
]


@given(st.sampled_from(PATTERNS), st.integers())
def test_a_made_text_matches_its_pattern(pattern: str, seed: int) -> None:
    """The text matches for all random numbers."""
    assert re.fullmatch(pattern, text_maker(pattern)(Random(seed)))


@pytest.mark.parametrize("pattern", ["(a", "a)", "[", "[^a]", "*", "a{x}", "\\"])
def test_a_pattern_that_is_not_understood_is_refused(pattern: str) -> None:
    """A pattern with an unknown construct raises, as its texts would not match."""
    with pytest.raises(ConfigException, match="not understood"):
        text_maker(pattern)
