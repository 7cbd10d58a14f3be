"""LakeSource on a local path: order, new files, offsets, formats."""

import gzip
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyconnect_api import ConnectException, DataException, ExactlyOnceSupport, SourceRecord, Struct
from pyconnect_api.testing import SourceHarness
from pyconnect_connectors.lake.source import LakeSourceConnector, LakeSourceTask
from tests.support.cases import cases
from tests.support.eventually import eventually


def props(lake: Path, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    return {
        "lake.url": str(lake),
        "topic": "rows",
        "format.class": "json",
        "poll.interval.ms": "1",
        "retry.backoff.ms": "0",
        **(settings or {}),
    }


def started(lake: Path, settings: Mapping[str, str] | None = None) -> SourceHarness:
    source = SourceHarness(LakeSourceTask, props(lake, settings))
    source.start()
    return source


def write(lake: Path, name: str, numbers: range) -> None:
    path = lake / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{number}\n" for number in numbers))


def read(records: list[SourceRecord]) -> list[object]:
    return [record.value for record in records]


def test_offsets_are_files_and_rows(tmp_path: Path) -> None:
    """Offsets count rows, and that of a file's last row marks the end of the file."""
    write(tmp_path, "in/a.json", range(3))
    source = started(tmp_path, {"batch.max.rows": "2"})
    records = source.run(3)
    assert {str(record.source_partition) for record in records} == {"{'file': 'in/a.json'}"}
    assert [record.source_offset for record in records] == [
        {"row": 1},
        {"row": 2},
        {"row": 3, "done": True},
    ]
    source.stop()


@cases("name, count", ("json", 10), ("csv", 10), ("parquet", 10))
def test_a_task_continues_in_the_middle_of_a_file(tmp_path: Path, name: str, count: int) -> None:
    """A task continues in the middle of a file of any format."""
    table = pa.table({"n": [str(n) for n in range(count)]})
    if name == "parquet":
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    else:
        lines = [f'{{"n":"{n}"}}' if name == "json" else str(n) for n in range(count)]
        (tmp_path / f"a.{name}").write_text("\n".join(lines if name == "json" else ["n", *lines]))
    for begin in range(count):
        source = started(tmp_path, {"format.class": name, "batch.max.rows": "4"})
        source.offsets.store({"file": f"a.{name}"}, {"row": begin})
        values = read(source.run(count - begin))
        found = [v.get("n") if isinstance(v, Struct) else v["n"] for v in values]  # type: ignore[index]
        assert found == [str(n) for n in range(begin, count)]
        source.stop()
    source = started(tmp_path, {"format.class": name})
    source.offsets.store({"file": f"a.{name}"}, {"row": count + 1})
    with pytest.raises(DataException, match=f"File a.{name}: it has 10 rows, and 11 were read"):
        source.poll()


def test_a_broken_row_among_those_that_were_read_names_the_file(tmp_path: Path) -> None:
    """A broken row before the offset fails with the file's name, as after a replaced file."""
    (tmp_path / "a.csv").write_text('n\n1\n"2\n3\n4\n')
    source = started(tmp_path, {"format.class": "csv"})
    source.offsets.store({"file": "a.csv"}, {"row": 3})
    with pytest.raises(DataException, match=r"File a\.csv: before row 4: a quote is not closed"):
        source.poll()


def test_files_that_were_read_are_not_opened_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Read files are not opened again, and new files are found anywhere in the order.

    A file that has changed is logged once.
    """
    write(tmp_path, "m.json", range(2))
    source = started(tmp_path)
    source.run(2)
    source.commit()
    write(tmp_path, "a.json", range(10, 12))
    write(tmp_path, "z.json", range(20, 22))
    assert read(source.run(4)) == [10, 11, 20, 21]
    source.commit()
    for path in tmp_path.iterdir():
        path.write_text("not JSON")
    eventually(lambda: source.poll() or "a file was changed" in caplog.text)
    assert [source.poll() for _ in range(5)] == [[]] * 5
    names = [record.file for record in caplog.records if hasattr(record, "file")]
    assert sorted(names) == ["a.json", "m.json", "z.json"]
    source.restart()
    assert source.poll() == []
    source.stop()


@cases("order, first", ("name", [0, 1]), ("time", [2, 3]))
def test_files_are_read_in_the_order_of_names_or_times(
    tmp_path: Path, order: str, first: list[int]
) -> None:
    """Files are read by name, or by the time of their last change."""
    write(tmp_path, "a.json", range(2))
    write(tmp_path, "b.json", range(2, 4))
    os.utime(tmp_path / "b.json", (1, 1))
    source = started(tmp_path, {"file.order": order})
    assert read(source.run(2)) == first
    source.stop()


def test_files_are_split_over_tasks(tmp_path: Path) -> None:
    """Each file is read by one task, whatever the number of tasks was before."""
    for number in range(20):
        write(tmp_path, f"{number}.json", range(number, number + 1))
    connector = LakeSourceConnector()
    connector.start(props(tmp_path))
    found = []
    for config in connector.task_configs(3):
        source = SourceHarness(LakeSourceTask, config)
        source.start()
        while records := source.poll():
            found.append(records[0].value)
        source.stop()
    assert sorted(found) == list(range(20))


def test_only_files_that_match_are_read(tmp_path: Path) -> None:
    """Hidden names are left out, because such files are not complete, or not data."""
    for name in ("in/a.json", "in/b.txt", "in/_c.json", "in/_log/d.json", "in/.e.json", "f.json"):
        write(tmp_path, name, range(1))
    source = started(tmp_path, {"prefix": "in", "file.pattern": r".*\.json"})
    (record,) = source.run(1)
    assert record.source_partition == {"file": "in/a.json"}
    assert source.poll() == []
    source.stop()


@cases("settings, count", ({"prefix": "IN"}, 0), ({"file.pattern": "json"}, 1), ({}, None))
def test_a_prefix_or_pattern_without_a_file_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, settings: dict[str, str], count: int | None
) -> None:
    """A prefix or pattern without a file may be misspelt, so the task logs a warning."""
    write(tmp_path, "in/a.json", range(1))
    source = started(tmp_path, settings)
    source.poll()
    source.poll()
    source.stop()
    found = [
        getattr(r, "found", None) for r in caplog.records if "no file is read yet" in r.message
    ]
    assert found == ([] if count is None else [count])


def test_types_become_those_of_connect(tmp_path: Path) -> None:
    """A type that Connect lacks is read as the next wider type, or as text."""
    columns = {
        "small": pa.array([200], pa.uint8()),
        "price": pa.array([Decimal("1.50")]),
        "at": pa.array([1717236000 * 10**9 + 5], pa.timestamp("ns")),
        "word": pa.array(["a"]).dictionary_encode(),
        "tags": pa.array([["a", None]]),
        "sizes": pa.array([[("s", 1)]], pa.map_(pa.string(), pa.int32())),
        "place": pa.array([{"at": datetime(2024, 6, 1, tzinfo=UTC)}]),
        "big": pa.array([2**64 - 1], pa.uint64()),
        "none": pa.array([None], pa.int8()),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    source = started(tmp_path, {"format.class": "parquet"})
    (record,) = source.run(1)
    assert isinstance(record.value, Struct)
    record.value.validate()
    *plain, place, big, none = record.value.stored_values()
    ten = datetime(2024, 6, 1, 10, tzinfo=UTC)
    assert plain == [200, Decimal("1.50"), ten, "a", ["a", None], {"s": 1}]
    assert isinstance(place, Struct)
    assert place.stored_values() == [datetime(2024, 6, 1, tzinfo=UTC)]
    assert (big, none) == ("18446744073709551615", None)
    source.stop()


@cases("name", "a.csv.gz", "a.csv", "a.GZ")
def test_compressed_text_is_read(tmp_path: Path, name: str) -> None:
    """Text is decompressed whatever the file's name is; empty values of CSV are null."""
    (tmp_path / name).write_bytes(gzip.compress(b'a,b\n1,\n"x\ny",2\n'))
    source = started(tmp_path, {"format.class": "csv"})
    values = [record.value for record in source.run(2)]
    assert [v.stored_values() for v in values if isinstance(v, Struct)] == [
        ["1", None],
        ["x\ny", "2"],
    ]
    source.stop()


def test_a_comma_is_the_null_of_an_only_column(tmp_path: Path) -> None:
    """A comma in a CSV file of one column is a null, as LakeSink writes it."""
    (tmp_path / "a.csv").write_bytes(b'"a"\n"x"\n,\n""\n"y",z\n')
    source = started(tmp_path, {"format.class": "csv"})
    values = [record.value for record in source.run(3)]
    assert [v.stored_values() for v in values if isinstance(v, Struct)] == [["x"], [None], [None]]
    with pytest.raises(DataException, match="has 2 values, and the first line 1"):
        source.run(1)


def test_rows_of_csv_end_with_either_sign(tmp_path: Path) -> None:
    """CSV rows end with CR, LF or both; within quotes these are part of the value."""
    (tmp_path / "a.csv").write_bytes(b'a,b\r1,2\n"x\ry",4\r\n5,6')
    source = started(tmp_path, {"format.class": "csv"})
    values = [record.value for record in source.run(3)]
    assert [v.stored_values() for v in values if isinstance(v, Struct)] == [
        ["1", "2"],
        ["x\ry", "4"],
        ["5", "6"],
    ]
    source.stop()


@cases("name", "a.json", "a.json.gz")
def test_marks_and_empty_lines_are_no_rows_of_json(tmp_path: Path, name: str) -> None:
    """A byte order mark, `\\r` as white space and empty lines do not count in offsets of JSON."""
    content = b'\xef\xbb\xbf{"a":"\xc3\xa9"}\r\n\r\n \n\r{"a":\r2}\n{"a":3}'
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    source = started(tmp_path)
    records = source.run(3)
    assert [record.value for record in records] == [{"a": "é"}, {"a": 2}, {"a": 3}]
    assert [(record.source_offset or {})["row"] for record in records] == [1, 2, 3]
    source.stop()


@cases(
    "written, content, text",
    ("parquet", b"text", r"^File in/a\.x: it is not a parquet file, or damaged"),
    ("json", b'{"a":1}\nsecret', r"^Row 2 of file in/a\.x is not JSON: Expecting value"),
    ("json", b"NaN", r"^Row 1 of file in/a\.x is not JSON: NaN"),
    ("json", b'{"a":1e99999999999999999999}', r"Row 1 of file in/a\.x is not JSON: a number"),
    ("json", b"[" * 100_000, r"^Row 1 of file in/a\.x is not JSON: it is nested too deeply"),
    # Only `\n` ends a row.
    ("json", b'{"a":1}\r{"a":2}\n', r"^Row 1 of file in/a\.x is not JSON: Extra data"),
    ("json", b"[\n{},\n{}\n]\n", r"^File in/a\.x, row 1: the JSON value does not end on its line"),
    ("json", b'{\n"a": 1\n}\n', r"^File in/a\.x, row 1: the JSON value does not end on its line"),
    (
        "json",
        b'{"a":{"b":["secret \xff"]}}',
        r"^Column a\.b of file in/a\.x, row 1: a text that is not UTF-8 does not fit STRING",
    ),
    (
        "json",
        b'{"n":1}\n{"n":1,"v":"secret\\ud800"}',
        r"^Column v of file in/a\.x, row 2: a lone surrogate does not fit STRING",
    ),
    ("json", b'{"\\ud800":1}', r"row 1: a lone surrogate in a name does not fit"),
    ("csv", b"a,b\n1\n", r"^Row 1 of file in/a\.x has 1 values, and the first line 2"),
    ("csv", b"a,b\n1,2\n1,2,3\n", r"^Row 2 of file in/a\.x has 3 values"),
    ("csv", b'a,b\n1,"secret\n2,b\n3,c\n', r"^File in/a\.x, row 1: a quote is not closed"),
    ("csv", b'a,b\n1,2\n3,"secret', r"^File in/a\.x, row 2: a quote is not closed"),
    ("csv", b'a,b\n1,"secret"x\n', r"^File in/a\.x, row 1: text follows a closing quote"),
    ("csv", b'a,"b\n1,2\n', r"^File in/a\.x: the first line: a quote is not closed"),
    ("csv", b"a,b,a\n1,2,3\n", r"^File in/a\.x: the first line names a twice"),
    ("csv", b",\n1,2\n", r"^File in/a\.x: the first line has no name"),
    ("csv", b"a,\n1,secret\n", r"^Row 1 of file in/a\.x has a value in a column without a name"),
    (
        "csv",
        b"a\n\n1\nsecret \xff\n",
        r"^Column a of file in/a\.x, row 2: a text that is not UTF-8",
    ),
    ("csv", b"\xff,b\n1,2\n", r"^File in/a\.x: the first line is not UTF-8"),
    ("csv", "a,b\n1,2\n".encode("utf-16-be"), r"^File in/a\.x: the first line is not UTF-8"),
)
def test_content_of_another_format_fails_the_task(
    tmp_path: Path, written: str, content: bytes, text: str
) -> None:
    """Content of another format fails with file and row, not the value; rows before it arrive."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.x").write_bytes(content)
    source = started(tmp_path, {"format.class": written})
    with pytest.raises(DataException, match=text) as caught:
        source.run(100)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_file_that_vanished_fails_the_task(tmp_path: Path) -> None:
    """A file that vanished fails the task; after a restart it is not listed any more."""
    write(tmp_path, "a.json", range(1))
    write(tmp_path, "b.json", range(1))
    source = started(tmp_path)
    source.run(1)
    (tmp_path / "b.json").unlink()
    with pytest.raises(ConnectException, match=r"Cannot read b\.json"):
        source.run(1)


def test_delivery_exactly_once_is_supported(tmp_path: Path) -> None:
    """Exactly-once delivery is supported, because each row has its own position."""
    support = LakeSourceConnector().exactly_once_support(props(tmp_path))
    assert support is ExactlyOnceSupport.SUPPORTED


def test_changed_offsets_are_files_and_rows(tmp_path: Path) -> None:
    """Changed offsets must be positions in files; others are refused with their names."""
    connector = LakeSourceConnector()
    good = [({"file": "a"}, {"row": 1}), ({"file": "b"}, None)]
    assert connector.alter_offsets(props(tmp_path), good)
    assert connector.alter_offsets(props(tmp_path), [({"file": "a"}, {"row": 1, "done": False})])
    for partition, offset in (
        ({"path": "a"}, {"row": 1}),
        ({"file": "a"}, {"line": 1}),
        ({"file": "a"}, {"row": True}),
        ({"file": "a"}, {"row": 1, "done": "false"}),
    ):
        with pytest.raises(ConnectException, match="must have the key"):
            connector.alter_offsets(props(tmp_path), [(partition, offset)])


@cases(
    "settings, name",
    ({"file.pattern": "("}, "file.pattern"),
    ({"format.class": "iceberg"}, "format.class"),
    ({"lake.url": "/no/such/directory"}, "lake.url"),
    ({"topic": ""}, "topic"),
)
def test_a_wrong_setting_is_found_by_validation(
    tmp_path: Path, settings: dict[str, str], name: str
) -> None:
    """Validation adds the error to the setting that has to be changed."""
    config = LakeSourceConnector().validate(props(tmp_path, settings))
    assert [value.name for value in config.config_values if value.error_messages] == [name]
