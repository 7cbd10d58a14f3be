"""LakeSink's files on a local path: names, rotation, formats, schemas, offsets."""

import csv
import gzip
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pyconnect_api import (
    FLOAT64_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    ConfigException,
    ConnectException,
    DataException,
    Schema,
    SchemaBuilder,
    Struct,
    date_builder,
    decimal_builder,
    time_builder,
    timestamp_builder,
)
from pyconnect_api.testing import RecordingReporter, SinkHarness, SourceHarness
from pyconnect_connectors.lake.partitioners import path_template
from pyconnect_connectors.lake.sink import LakeSinkConnector, LakeSinkTask
from pyconnect_connectors.lake.source import LakeSourceTask
from tests.connectors.lake.rows import ROW, TOPIC, send
from tests.support.cases import cases


def props(lake: Path, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    return {"name": "to-lake", "lake.url": str(lake), "retry.backoff.ms": "0", **(settings or {})}


def started(lake: Path, settings: Mapping[str, str] | None = None, **more: object) -> SinkHarness:
    sink = SinkHarness(LakeSinkTask, props(lake, settings), **more)  # type: ignore[arg-type]
    sink.start()
    return sink


def files(lake: Path) -> dict[str, Path]:
    """Return the files that a reader of the lake sees, with paths below the lake's directory."""
    found = (path for path in lake.rglob("*") if path.is_file())
    paths = {str(path.relative_to(lake)): path for path in found}
    return {
        name: path for name, path in sorted(paths.items()) if "/_" not in name and name[0] != "_"
    }


def ids(path: Path) -> list[int]:
    if path.suffix == ".json":
        return [json.loads(line)["id"] for line in path.read_text().splitlines()]
    return pq.read_table(path)["id"].to_pylist()


def test_files_are_named_after_their_first_rows(tmp_path: Path) -> None:
    """Offsets are committed behind finished files, not behind the open file."""
    sink = started(tmp_path, {"flush.size": "3"})
    send(sink, range(7))
    sink.deliver()
    assert sink.commit() == {TOPIC: 6}
    assert {name: ids(path) for name, path in files(tmp_path).items()} == {
        "topics/topic/partition=0/topic+0+0000000000.snappy.parquet": [0, 1, 2],
        "topics/topic/partition=0/topic+0+0000000003.snappy.parquet": [3, 4, 5],
    }


@cases("is_closing, read_twice", (True, 0), (False, 400))
def test_partitions_that_close_leave_no_row_to_be_read_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_closing: bool, read_twice: int
) -> None:
    """Without the signal of KIP-275, the next owner reads the rows of the open file again."""
    sink = started(tmp_path, {"flush.size": "600"})
    send(sink, range(1000))
    sink.deliver(1000)
    if not is_closing:
        monkeypatch.setattr(type(sink.context), "is_closing", property(lambda _: False, _ignore))
    sink.stop()
    monkeypatch.undo()
    sink.start()
    assert len(sink.deliver(1000)) == read_twice
    sink.stop()
    assert sorted(n for path in files(tmp_path).values() for n in ids(path)) == list(range(1000))


def _ignore(_context: object, _value: object) -> None:
    """Ignore the change of an attribute."""


def test_a_new_task_continues_behind_the_files(tmp_path: Path) -> None:
    """The files say where a new task continues, even without a committed offset in Kafka."""
    sink = started(tmp_path, {"flush.size": "3"})
    send(sink, range(5))
    sink.deliver()
    assert sink.committed == {}
    sink.crash()
    assert [record.kafka_offset for record in sink.deliver()] == [3, 4]
    sink.stop()


def test_a_commit_whose_files_are_missing_is_finished_first(tmp_path: Path) -> None:
    """A new task completes a commit with the decided rows, even if settings allow more of them."""
    settings = {"partitioner.class": "field", "partition.field.name": "city", "flush.size": "2"}
    sink = started(tmp_path, settings)
    send(sink, range(10))
    sink.deliver(4)
    sink.crash()
    lost = tmp_path / "topics/topic/city=Bonn/topic+0+0000000001.snappy.parquet"
    assert ids(lost) == [1]
    lost.unlink()
    sink.props["flush.size"] = "100"
    sink.crash()
    sink.deliver()
    assert ids(lost) == [1]
    sink.stop()
    assert sorted(n for path in files(tmp_path).values() for n in ids(path)) == list(range(10))


def test_other_settings_do_not_finish_a_commit(tmp_path: Path) -> None:
    """Other settings do not finish a commit, because its rows could then be in two files."""
    sink = started(tmp_path, {"flush.size": "2"})
    send(sink, range(2))
    sink.deliver()
    for path in files(tmp_path).values():
        path.unlink()
    sink.props["format.class"] = "json"
    sink.crash()
    with pytest.raises(ConnectException, match="begun with other settings"):
        sink.deliver()


def test_a_file_of_another_connector_is_not_replaced(tmp_path: Path) -> None:
    """Two connectors with one directory would write the same names, so the second one fails."""
    first, second = started(tmp_path), started(tmp_path, {"name": "other"})
    for sink in (first, second):
        send(sink, range(2))
        sink.deliver()
    first.stop()
    with pytest.raises(ConnectException, match="exists already and is not of this commit"):
        second.stop()


def test_changed_offsets_are_kafkas(tmp_path: Path) -> None:
    """Changed offsets delete the commit log; a user has to delete existing files first."""
    sink = started(tmp_path, {"flush.size": "2"})
    send(sink, range(4))
    sink.deliver()
    sink.stop()
    for path in files(tmp_path).values():
        path.unlink()
    assert LakeSinkConnector().alter_offsets(sink.props, {TOPIC: 0})
    sink.committed = {TOPIC: 0}
    sink.start()
    assert len(sink.deliver()) == 4
    assert len(files(tmp_path)) == 2
    sink.stop()


def test_at_least_once_needs_no_commit_log(tmp_path: Path) -> None:
    """At-least-once delivery replaces a file when its rows come again, and has no commit log."""
    sink = started(tmp_path, {"flush.size": "2", "delivery.guarantee": "at-least-once"})
    send(sink, range(4))
    sink.deliver()
    sink.crash()
    assert len(sink.deliver()) == 4
    assert [ids(path) for path in files(tmp_path).values()] == [[0, 1], [2, 3]]
    assert not list(tmp_path.rglob("*0.json"))
    sink.stop()


def test_half_written_files_are_where_no_reader_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name appears when its content is complete and on the disk."""
    seen: list[list[str]] = []
    monkeypatch.setattr("os.fsync", lambda _: seen.append(list(files(tmp_path))))
    sink = started(tmp_path, {"flush.size": "2"})
    send(sink, range(2))
    sink.deliver()
    assert seen[-2:] == [[], list(files(tmp_path))]
    assert not any((tmp_path / "_pyconnect" / "staged").iterdir())


def test_a_file_ends_with_its_time(tmp_path: Path) -> None:
    """A file ends when a record's time is far enough after that of the file's first record."""
    sink = started(tmp_path, {"rotate.interval.ms": "3000", "format.class": "json"})
    send(sink, range(8))
    sink.deliver()
    sink.stop()
    assert [ids(path) for path in files(tmp_path).values()] == [[0, 1, 2], [3, 4, 5], [6, 7]]


def test_a_file_ends_on_schedule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file ends on schedule even if no new record comes."""
    now_s = 1000.0
    monkeypatch.setattr("time.time", lambda: now_s)
    sink = started(tmp_path, {"rotate.schedule.interval.ms": "60000"})
    send(sink, range(2))
    sink.deliver()
    now_s = 1019.9
    sink.deliver()
    assert files(tmp_path) == {}
    now_s = 1020.0
    sink.deliver()
    assert len(files(tmp_path)) == 1
    assert sink.commit() == {TOPIC: 2}


@cases(
    "settings",
    {"rotate.schedule.interval.ms": "60000"},
    {"rotate.interval.ms": "60000", "timestamp.extractor": "Wallclock"},
)
def test_a_file_ends_when_the_wall_clock_is_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]
) -> None:
    """Otherwise a file's rows would wait until the clock reaches the old time again."""
    now_s = 100_000.0
    monkeypatch.setattr("time.time", lambda: now_s)
    sink = started(tmp_path, {"format.class": "json", **settings})
    send(sink, range(2))
    sink.deliver()
    assert files(tmp_path) == {}
    now_s = 1_000.0
    send(sink, range(2, 3))
    sink.deliver()
    assert [ids(path) for path in files(tmp_path).values()] in ([[0, 1]], [[0, 1, 2]])


def test_a_file_ends_with_its_size(tmp_path: Path) -> None:
    """A file ends at the size of `file.max.bytes`, if records come one by one."""
    sink = started(tmp_path, {"file.max.bytes": "50", "format.class": "json"})
    send(sink, range(9))
    for _ in range(9):
        sink.deliver(1)
    assert [path.stat().st_size >= 50 for path in files(tmp_path).values()] == [True] * 3


def test_directories_are_those_of_fields(tmp_path: Path) -> None:
    """In directories of fields, characters with a meaning in paths are escaped as Hive does."""
    settings = {"partitioner.class": "field", "partition.field.name": "city,id"}
    sink = started(tmp_path, {**settings, "topics.dir": ""})
    sink.send(Struct(ROW).put("id", 1).put("city", "a/b=ü c"), value_schema=ROW)
    sink.send(Struct(ROW).put("id", 2), value_schema=ROW)
    sink.deliver()
    sink.stop()
    assert [str(Path(name).parent) for name in files(tmp_path)] == [
        "topic/city=__HIVE_DEFAULT_PARTITION__/id=2",
        "topic/city=a%2Fb%3D%C3%BC c/id=1",
    ]


def test_directories_are_those_of_times(tmp_path: Path) -> None:
    """Directories are named by times of a field of the value, in the zone of the config."""
    schema = SchemaBuilder.struct().field("at", timestamp_builder()).build()
    settings = {
        "partitioner.class": "time",
        "path.format": "'day'=YYYY-MM-dd/'it''s' HH",
        "timezone": "Europe/Berlin",
        "timestamp.extractor": "RecordField",
        "timestamp.field": "at",
    }
    sink = started(tmp_path, settings)
    for hour in (10, 23):
        at = datetime(2024, 6, 1, hour, 59, tzinfo=UTC)
        sink.send(Struct(schema).put("at", at), value_schema=schema)
    sink.deliver()
    sink.stop()
    assert [str(Path(name).parent) for name in files(tmp_path)] == [
        "topics/topic/day=2024-06-01/it's 12",
        "topics/topic/day=2024-06-02/it's 01",
    ]


@cases("pattern", "YYYY/'x", "YYY", "hh")
def test_a_path_format_has_known_letters_only(pattern: str) -> None:
    """Other letters in a path format are refused: they would be taken for text, or lost."""
    with pytest.raises(ConfigException, match=r"path\.format"):
        path_template(pattern)


def test_a_change_of_the_schema_begins_a_file(tmp_path: Path) -> None:
    """A changed schema begins a new file, because the rows of a Parquet file have one schema."""
    wide = SchemaBuilder.struct().field("id", INT64_SCHEMA).field("note", STRING_SCHEMA).build()
    sink = started(tmp_path)
    send(sink, range(2))
    sink.send(Struct(wide).put("id", 2).put("note", "n"), value_schema=wide)
    send(sink, range(3, 5))
    sink.deliver()
    sink.stop()
    assert [pq.read_table(path).to_pydict() for path in files(tmp_path).values()] == [
        {"id": [0, 1], "city": ["Ulm", "Bonn"]},
        {"id": [2], "note": ["n"]},
        {"id": [3, 4], "city": ["Ulm", "Bonn"]},
    ]


def test_older_rows_are_projected_when_that_is_asked_for(tmp_path: Path) -> None:
    """With projection only a newer version of the schema begins another file."""
    newer = (
        SchemaBuilder.struct()
        .name("row")
        .version(2)
        .field("id", INT64_SCHEMA)
        .field("city", OPTIONAL_STRING_SCHEMA)
        .field("note", SchemaBuilder.string().default("none"))
        .build()
    )
    sink = started(tmp_path, {"schema.compatibility": "BACKWARD"})
    send(sink, range(1))
    sink.send(Struct(newer).put("id", 1).put("note", "n"), value_schema=newer)
    send(sink, range(2, 4))
    sink.deliver()
    sink.stop()
    assert [pq.read_table(path).to_pydict() for path in files(tmp_path).values()] == [
        {"id": [0], "city": ["Ulm"]},
        {"id": [1, 2, 3], "city": [None, None, "Ulm"], "note": ["n", "none", "none"]},
    ]


@cases(
    "first, second",
    ({"a": (OPTIONAL_INT64_SCHEMA, 1)}, {"b": (OPTIONAL_INT64_SCHEMA, 2)}),
    ({"a": (FLOAT64_SCHEMA, 0.5)}, {"a": (INT64_SCHEMA, 2**60 + 1)}),
    ({"a": (INT32_SCHEMA, 1)}, {"a": (INT64_SCHEMA, 2**40)}),
    ({"a": (decimal_builder(2).build(), Decimal("1.25"))}, {"a": (INT64_SCHEMA, 2)}),
    (
        {"a": (SchemaBuilder.array(FLOAT64_SCHEMA).build(), [0.5])},
        {"a": (SchemaBuilder.array(INT64_SCHEMA).build(), [2**60 + 1])},
    ),
    (
        {"a": (SchemaBuilder.int64().default(7).build(), 1)},
        {"a": (SchemaBuilder.int64().default(7).optional().build(), None)},
    ),
)
@cases("versions", (None, None), (2, 1), (1, 1))
def test_a_projection_that_would_lose_something_is_another_file(
    tmp_path: Path,
    first: Mapping[str, tuple[Schema, object]],
    second: Mapping[str, tuple[Schema, object]],
    versions: tuple[int | None, int | None],
) -> None:
    """Rows are not projected if a field, digits or null would be lost."""
    sink = started(tmp_path, {"schema.compatibility": "BACKWARD"})
    for fields, version in zip((first, second), versions, strict=True):
        builder = SchemaBuilder.struct()
        if version is not None:
            builder.version(version)
        for name, (kind, _) in fields.items():
            builder.field(name, kind)
        schema = builder.build()
        value = Struct.of_checked(schema, [value for _, value in fields.values()])
        sink.send(value, value_schema=schema)
    sink.deliver()
    sink.stop()
    assert [pq.read_table(path).to_pylist() for path in files(tmp_path).values()] == [
        [{name: value for name, (_, value) in fields.items()}] for fields in (first, second)
    ]


VALUES = (
    SchemaBuilder.struct()
    .field("price", decimal_builder(4))
    .field("at", timestamp_builder())
    .field("day", date_builder())
    .field("hour", time_builder())
    .field("tags", SchemaBuilder.array(OPTIONAL_STRING_SCHEMA))
    .field("sizes", SchemaBuilder.map(STRING_SCHEMA, INT32_SCHEMA))
    .field("place", SchemaBuilder.struct().field("x", INT32_SCHEMA).build())
    .field("raw", SchemaBuilder.bytes())
    .field("count", SchemaBuilder.int32().default(7).optional())
    .build()
)


def values() -> Struct:
    place = VALUES.field("place")
    assert place is not None
    return (
        Struct(VALUES)
        .put("price", Decimal("12345678901234567890.1234"))
        .put("at", datetime(2024, 6, 1, 10, tzinfo=UTC))
        .put("day", date(2024, 6, 1))
        .put("hour", time(12, 30))
        .put("tags", ["a", None])
        .put("sizes", {"s": 1})
        .put("place", Struct(place.schema).put("x", 3))
        .put("raw", b"\x00\xff")
    )


def test_parquet_keeps_types_and_digits(tmp_path: Path) -> None:
    """Parquet keeps types and digits, and null stays null whatever the default is."""
    sink = started(tmp_path)
    sink.send(values(), value_schema=VALUES)
    sink.deliver()
    sink.stop()
    (path,) = files(tmp_path).values()
    assert pq.read_table(path).to_pylist() == [
        {
            "price": Decimal("12345678901234567890.1234"),
            "at": datetime(2024, 6, 1, 10, tzinfo=UTC),
            "day": date(2024, 6, 1),
            "hour": time(12, 30),
            "tags": ["a", None],
            "sizes": [("s", 1)],
            "place": {"x": 3},
            "raw": b"\x00\xff",
            "count": None,
        }
    ]


@cases("type_", OPTIONAL_STRING_SCHEMA, OPTIONAL_INT64_SCHEMA, ids=repr)
def test_the_null_of_an_only_column_is_no_empty_text(tmp_path: Path, type_: Schema) -> None:
    """CSV writes a comma for a null in the only column: an empty line would not be a row."""
    schema = SchemaBuilder.struct().field("a", type_).build()
    texts = ("x", None, "", 'q"\n,\n', None) if type_ is OPTIONAL_STRING_SCHEMA else (1, None)
    sink = started(tmp_path, {"format.class": "csv"})
    for text in texts:
        sink.send(Struct.of_checked(schema, [text]), value_schema=schema)
    sink.deliver()
    sink.stop()
    ((name, path),) = files(tmp_path).items()
    rows = b'"x"\n,\n""\n"q""\n,\n"\n,\n' if len(texts) > 2 else b'"1"\n,\n'
    assert path.read_bytes() == b'"a"\n' + rows
    reads = SourceHarness(
        LakeSourceTask, {"lake.url": str(path.parent), "topic": "read", "format.class": "csv"}
    )
    reads.start()
    values = [record.value for record in reads.run(len(texts))]
    reads.stop()
    found = [value.stored_values() for value in values if isinstance(value, Struct)]
    assert found == [[None if text in {None, ""} else str(text)] for text in texts], name


def test_csv_has_json_for_nested_values(tmp_path: Path) -> None:
    """CSV has JSON for nested values, and the names once, in the first line."""
    sink = started(tmp_path, {"format.class": "csv", "compression.type": "gzip"})
    for _ in range(2):
        sink.send(values(), value_schema=VALUES)
        sink.deliver()
    sink.stop()
    ((name, path),) = files(tmp_path).items()
    assert name.endswith("+0000000000.csv.gz")
    with gzip.open(path, "rt") as lines:
        names, *rows = list(csv.reader(lines))
    assert names == [field.name for field in VALUES.fields]
    assert rows == 2 * [
        [
            "12345678901234567890.1234",
            "2024-06-01 10:00:00.000000Z",
            "2024-06-01",
            "12:30:00.000000",
            '["a",null]',
            '{"s":1}',
            '{"x":3}',
            "AP8=",
            "",
        ]
    ]


def test_json_takes_any_value(tmp_path: Path) -> None:
    """JSON takes any value, with a schema or without, as one line."""
    sink = started(tmp_path, {"format.class": "json"})
    sink.send(values(), value_schema=VALUES)
    for value in ({"b": [1, None]}, "text\n", 5, None):
        sink.send(value)
    sink.props["behavior.on.null.values"] = "ignore"
    sink.start()
    sink.deliver()
    sink.stop()
    (path,) = files(tmp_path).values()
    first, *others = path.read_text().splitlines()
    assert json.loads(first, parse_float=Decimal) == {
        "price": Decimal("12345678901234567890.1234"),
        "at": "2024-06-01T10:00:00Z",
        "day": "2024-06-01",
        "hour": "12:30:00",
        "tags": ["a", None],
        "sizes": {"s": 1},
        "place": {"x": 3},
        "raw": "AP8=",
        "count": None,
    }
    assert others == ['{"b":[1,null]}', '"text\\n"', "5"]
    assert sink.committed == {TOPIC: 5}


def test_a_record_that_has_no_row_is_reported_or_fails_the_task(tmp_path: Path) -> None:
    """After a report the offset moves on, and the records around are written once."""
    reporter = RecordingReporter()
    tolerant = started(tmp_path / "a", reporter=reporter)
    send(tolerant, range(2))
    tolerant.send("a text")
    tolerant.send(None)
    send(tolerant, range(4, 6))
    tolerant.deliver()
    tolerant.stop()
    assert len(reporter.reports) == 2
    assert sorted(n for path in files(tmp_path / "a").values() for n in ids(path)) == [0, 1, 4, 5]
    assert tolerant.committed == {TOPIC: 6}
    strict = started(tmp_path / "b")
    strict.send("a text")
    with pytest.raises(DataException, match=r"has no schema, which format\.class=parquet needs"):
        strict.deliver()


def test_errors_show_no_values(tmp_path: Path) -> None:
    """The error of a value that does not fit does not show the value."""
    schema = SchemaBuilder.struct().field("n", INT32_SCHEMA).build()
    sink = started(tmp_path)
    sink.send(Struct.of_checked(schema, ["a secret"]), value_schema=schema)
    with pytest.raises(
        DataException,
        match=r"^Column n of file topics/.*, topic-0@0: a value of class str does not fit int32",
    ) as caught:
        sink.deliver()
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


@cases(
    "settings, name",
    ({"lake.url": ""}, "lake.url"),
    ({"lake.url": "lake"}, "lake.url"),
    ({"lake.url": "ftp://host/lake"}, "lake.url"),
    ({"aws.access.key.id": "key"}, "aws.access.key.id"),
    ({"partitioner.class": "field"}, "partition.field.name"),
    ({"partitioner.class": "time", "path.format": "QQ"}, "path.format"),
    ({"partitioner.class": "time", "timestamp.extractor": "Wallclock"}, "timestamp.extractor"),
    ({"format.class": "avro"}, "format.class"),
    ({"timezone": "Mars"}, "timezone"),
)
def test_a_wrong_setting_is_found_by_validation(
    tmp_path: Path, settings: dict[str, str], name: str
) -> None:
    """Validation adds the error to the setting that has to be changed."""
    config = LakeSinkConnector().validate(props(tmp_path, settings))
    assert [value.name for value in config.config_values if value.error_messages] == [name]


def test_a_directory_that_cannot_be_written_is_found_by_validation(tmp_path: Path) -> None:
    """Validation fails if a file is in the place of the directory."""
    (tmp_path / "lake").write_text("")
    config = LakeSinkConnector().validate(props(tmp_path / "lake"))
    (text,) = [m for value in config.config_values for m in value.error_messages]
    assert "Cannot" in text


def test_a_bad_record_behind_a_rewind_skips_nothing(tmp_path: Path) -> None:
    """No record is skipped if one delivery reveals another task's commit and has a bad record."""
    settings = {"flush.size": "3", "format.class": "json"}
    zombie = started(tmp_path, settings, reporter=RecordingReporter())
    other = started(tmp_path, settings)
    for sink in (zombie, other):
        send(sink, range(3))
    other.deliver(2)
    other.stop()
    zombie.send(None)
    send(zombie, range(4, 6))
    zombie.deliver()
    zombie.deliver()
    zombie.stop()
    assert sorted(n for path in files(tmp_path).values() for n in ids(path)) == [0, 1, 2, 4, 5]
