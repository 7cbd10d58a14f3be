"""LakeSource with values that Connect's types cannot hold, rows that cannot be read, wide rows."""

import gzip
import logging
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyconnect_agent.builtin.converters.json import JsonConverter
from pyconnect_api import ConnectException, DataException, SourceRecord, Struct
from pyconnect_api.testing import SourceHarness
from pyconnect_connectors.lake.arrow_rows import Rows
from pyconnect_connectors.lake.source import LakeSourceConnector
from pyconnect_connectors.odd_values import OddValueException
from tests.connectors.lake.test_source import props, started
from tests.support.cases import cases

FAR = 253_402_300_800
"""Seconds from 1970 to the year 10000."""
DAYS = 2_932_897
"""Days from 1970 to the year 10000."""


def rows(records: list[SourceRecord]) -> list[Any]:
    return [r.value.stored_values() if isinstance(r.value, Struct) else r.value for r in records]


def of_numbers(numbers: list[int | None], kind: Any) -> Any:
    bits = pa.types.is_date32(kind) or pa.types.is_time32(kind)
    return pa.array(numbers, pa.int32() if bits else pa.int64()).cast(kind)


def parquet(lake: Path, column: Any, settings: Mapping[str, str] | None = None) -> SourceHarness:
    numbers = pa.array(range(1, len(column) + 1), pa.int8())
    pq.write_table(pa.table({"id": numbers, "v": column}), lake / "a.parquet")
    return started(lake, {"format.class": "parquet", **(settings or {})})


ODD = [
    (of_numbers([0, FAR], pa.timestamp("s")), "a year after 9999", "+10000-01-01T00:00:00"),
    (of_numbers([0, 2**62], pa.timestamp("ms")), "a year", "+146140482-04-24T15:36:27.904"),
    (
        of_numbers([0, FAR * 1000 + 1], pa.timestamp("ms", "UTC")),
        "a year after 9999",
        "+10000-01-01T00:00:00.001Z",
    ),
    (
        of_numbers([0, -62_135_596_800_000_001], pa.timestamp("us", "UTC")),
        "a year before 1",
        "0000-12-31T23:59:59.999999Z",
    ),
    (of_numbers([0, DAYS], pa.date32()), "a year after 9999", "+10000-01-01"),
    (of_numbers([0, -735_235], pa.date32()), "a year before 1", "-0044-12-30"),
    (of_numbers([0, DAYS * 86_400_000], pa.date64()), "a year after 9999", "+10000-01-01"),
    (of_numbers([0, 86_400_000], pa.time32("ms")), "a time that is not within a day", "24:00:00"),
    (of_numbers([0, -1], pa.time64("us")), "a time that is not within a day", "-00:00:00.000001"),
]


@cases("column, kind, text", *ODD)
def test_a_value_out_of_range_fails_as_the_setting_says(
    tmp_path: Path, column: Any, kind: str, text: str
) -> None:
    """The error names file, column, row and kind; the other policies give null or texts."""
    source = parquet(tmp_path, column)
    assert len(source.run(1)) == 1
    place = rf"^Column v of file a\.parquet, row 2: {kind}.* does not fit (Date|Time|Timestamp); "
    with pytest.raises(OddValueException, match=place):
        source.run(1)
    nulls = parquet(tmp_path, column, {"values.out.of.range": "null"}).run(2)
    assert rows(nulls)[1] == [2, None]
    assert rows(nulls)[0][1] is not None
    texts = parquet(tmp_path, column, {"values.out.of.range": "text"}).run(2)
    assert rows(texts)[1] == [2, text]
    assert isinstance(rows(texts)[0][1], str)
    for record in (*nulls, *texts):
        assert isinstance(record.value, Struct)
        record.value.validate()


def test_values_within_nested_ones_are_treated_alike(tmp_path: Path) -> None:
    """The policy holds for elements of nested values, and the error has the path of the field."""
    kind = pa.struct([("at", pa.list_(pa.timestamp("us")))])
    numbers = pa.struct([("at", pa.list_(pa.int64()))])
    column = pa.array([{"at": [0, FAR * 10**6, None]}, None], numbers).cast(kind)
    with pytest.raises(OddValueException, match=r"^Column v\.at of file a\.parquet, row 1: a year"):
        parquet(tmp_path, column).run(1)
    nulls = parquet(tmp_path, column, {"values.out.of.range": "null"}).run(2)
    assert rows(nulls)[0][1].stored_values() == [[datetime(1970, 1, 1, tzinfo=UTC), None, None]]
    texts = parquet(tmp_path, column, {"values.out.of.range": "text"}).run(2)
    assert rows(texts)[0][1].stored_values() == [
        ["1970-01-01T00:00:00", "+10000-01-01T00:00:00", None]
    ]


def test_a_key_of_a_map_is_never_null(tmp_path: Path) -> None:
    """An odd key of a map is an error, because null would make one key of two."""
    kind = pa.map_(pa.date32(), pa.int8())
    column = pa.array([[(DAYS, 1)]], pa.map_(pa.int32(), pa.int8())).cast(kind)
    with pytest.raises(OddValueException, match=r"^Column v\.key of file a\.parquet, row 1"):
        parquet(tmp_path, column, {"values.out.of.range": "null"}).run(1)


def test_two_entries_of_a_map_never_become_one(tmp_path: Path) -> None:
    """Keys that are equal, or equal in milliseconds, are an error of the row."""
    twice = [[("a", 1), ("b", 2)], [("a", 1), ("a", 2)]]
    kind = pa.map_(pa.timestamp("us"), pa.int8())
    times = pa.array([[(0, 1), (1000, 2)], [(0, 1), (1, 2)]], kind)
    for column in (pa.array(twice, pa.map_(pa.string(), pa.int8())), times):
        source = parquet(tmp_path, column, {"values.out.of.range": "null"})
        assert len(source.run(1)) == 1
        with pytest.raises(OddValueException, match=r"^Column v of file a\.parquet, row 2: a map"):
            source.poll()
    pq.write_table(pa.table({"": pa.array([1])}), tmp_path / "a.parquet")
    with pytest.raises(DataException, match=r"^File a\.parquet: Column 1 has no name"):
        started(tmp_path, {"format.class": "parquet"}).run(1)
    lists = pa.array([[([1], 1)]], pa.map_(pa.list_(pa.int8()), pa.int8()))
    with pytest.raises(DataException, match=r"Column v has the type map<list"):
        parquet(tmp_path, lists).run(1)


def test_the_other_rows_arrive_when_errors_are_tolerated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A row that is left out is logged as a warning; the last good row's offset ends the file."""
    column = of_numbers([FAR, 0, 1, FAR, 2, FAR], pa.timestamp("s"))
    source = parquet(tmp_path, column, {"errors.tolerance": "all", "batch.max.rows": "4"})
    with caplog.at_level(logging.WARNING):
        records = source.run(3)
    assert [row[0] for row in rows(records)] == [2, 3, 5]
    assert [r.source_offset for r in records] == [{"row": 2}, {"row": 3}, {"row": 5, "done": True}]
    reasons = [record.reason for record in caplog.records if hasattr(record, "reason")]
    assert [reason.split(":")[0] for reason in reasons] == [
        f"Column v of file a.parquet, row {number}" for number in (1, 4, 6)
    ]


@cases(
    "name, content, expected",
    ("csv", b"a,b\n1,2\n3\n\xff,5\n6,7\n", [["1", "2"], ["6", "7"]]),
    ("json", b'1\n{"a":\n\n"\\ud800"\n"\xff"\n2\n', [1, 2]),
)
def test_text_files_too_leave_out_rows_that_cannot_be_read(
    tmp_path: Path, name: str, content: bytes, expected: list[object]
) -> None:
    """Offsets of text files count the rows that were left out."""
    (tmp_path / "a").write_bytes(content)
    settings = {"format.class": name, "errors.tolerance": "all"}
    first, last = started(tmp_path, settings).run(2)
    assert rows([first, last]) == expected
    source = started(tmp_path, settings)
    source.offsets.store({"file": "a"}, first.source_offset or {})
    assert rows(source.run(1)) == expected[1:]


@cases("name, content", ("csv", b'a\n1\n"2\n3\n'), ("json", b'[\n{"a":1},\n{"a":2}\n]\n'))
def test_a_broken_file_fails_whatever_is_tolerated(
    tmp_path: Path, name: str, content: bytes
) -> None:
    """A broken file fails with any tolerance: the reader cannot know which lines are rows."""
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(DataException, match=r"^File a, row"):
        started(tmp_path, {"format.class": name, "errors.tolerance": "all"}).run(5)


@cases(
    "name, content, expected",
    ("csv", b"a,b\n1,\xff\n", ["1", None]),
    ("json", b'{"a":1,"b":["\\udc00x"]}\n', {"a": 1, "b": [None]}),
    ("json", b'{"a":1,"b":"\xff"}\n', {"a": 1, "b": None}),
)
def test_what_is_not_text_may_be_null(
    tmp_path: Path, name: str, content: bytes, expected: object
) -> None:
    """With the policy `null` a text that is not UTF-8 becomes null, and the row is kept."""
    (tmp_path / "a").write_bytes(content)
    records = started(tmp_path, {"format.class": name, "values.out.of.range": "null"}).run(1)
    assert rows(records) == [expected]


def test_a_parquet_text_that_is_not_utf8_is_odd(tmp_path: Path) -> None:
    """Writers in other languages do not check that texts are UTF-8."""
    offsets, data = pa.array([0, 1, 2], pa.int32()), pa.py_buffer(b"a\xff")
    column = pa.Array.from_buffers(pa.string(), 2, [None, offsets.buffers()[1], data])
    source = parquet(tmp_path, column)
    source.run(1)
    with pytest.raises(OddValueException, match="row 2: a text that is not UTF-8 does not fit"):
        source.run(1)
    source = parquet(tmp_path, column, {"values.out.of.range": "null"})
    assert rows(source.run(2)) == [[1, "a"], [2, None]]


def test_values_are_cut_to_milliseconds_towards_the_past(tmp_path: Path) -> None:
    """Times are cut to milliseconds towards the past, before 1970 too, as in Java."""
    column = of_numbers([-1, -1000, 1999], pa.timestamp("us"))
    found = [row[1] for row in rows(parquet(tmp_path, column).run(3))]
    last = datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
    assert found == [last, last, datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=UTC)]


@cases(
    "column, expected",
    (pa.array([timedelta(days=1, seconds=2.5), timedelta(seconds=-1)]), ["PT86402.5S", "-PT1S"]),
    (pa.array([b"0123456789abcdef"], pa.uuid()), ["30313233-3435-3637-3839-616263646566"]),
    (pa.array([1.5], pa.float16()), [1.5]),
    (pa.array([Decimal("1.50")], pa.decimal256(60, 2)), [Decimal("1.50")]),
    (pa.array([["a"]], pa.large_list(pa.large_string())), [["a"]]),
    (pa.array([["a"]], pa.list_(pa.dictionary(pa.int8(), pa.string()))), [["a"]]),
    (pa.array([[[1], None]], pa.list_(pa.list_(pa.uint8()), 2)), [[[1], None]]),
    (pa.array([[1, None]], pa.list_view(pa.int32())), [[1, None]]),
    (pa.array([{"n": 2**64 - 1}], pa.struct([("n", pa.uint64())])), [str(2**64 - 1)]),
    (pa.array([date(1, 1, 1), date(9999, 12, 31)]), [date(1, 1, 1), date(9999, 12, 31)]),
    (pa.array([time(23, 59, 59, 999_999)]), [time(23, 59, 59, 999_000)]),
    (pa.array([None, None], pa.timestamp("us")), [None, None]),
    (pa.array([None], pa.null()), [None]),
    (pa.array(["x"], pa.string_view()), ["x"]),
)
def test_arrow_types_have_a_form_in_connect(
    tmp_path: Path, column: Any, expected: list[object]
) -> None:
    """Each Arrow type has a form in Connect, and none becomes Python's own text."""
    found = [row[1] for row in rows(parquet(tmp_path, column).run(len(expected)))]
    assert [v.stored_values()[0] if isinstance(v, Struct) else v for v in found] == expected


@cases("kind", pa.timestamp("us"), pa.timestamp("ns", "Asia/Tokyo"))
def test_a_dictionary_of_times_before_1970_is_read(kind: Any) -> None:
    """A dictionary of times is read as its values are."""
    column = pa.array([-1_500_000, None, 1_500_000], pa.int64()).cast(kind)
    batch = pa.record_batch([column.dictionary_encode(), column], names=["v", "w"])
    found, odd = Rows(batch.schema, "topic").structs(batch)
    assert odd == {}
    for row in found:
        assert row.get("v") == row.get("w")


def test_a_type_that_connect_has_not_is_named_with_its_file(tmp_path: Path) -> None:
    """A type that Connect lacks fails before any row, with the name of the file."""
    column = pa.array([["a"]], pa.list_view(pa.string()))
    with pytest.raises(DataException, match=r"^File a\.parquet: Column v has the type list_view"):
        parquet(tmp_path, column).run(1)


def test_old_timestamps_of_spark_are_read_beyond_2262(tmp_path: Path) -> None:
    """INT96 is read as microseconds: nanoseconds would change years after 2262."""
    column = of_numbers([32_503_680_000_000_000], pa.timestamp("us"))
    table = pa.table({"v": column})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    records = started(tmp_path, {"format.class": "parquet"}).run(1)
    assert rows(records) == [[datetime(3000, 1, 1, tzinfo=UTC)]]


@cases("name", "csv", "json")
def test_a_value_may_be_wide(tmp_path: Path, name: str) -> None:
    """A CSV value may have more than the 128 KiB at which Python's reader stops by default."""
    wide = "y" * 1_400_000
    content = f"id,t\n1,{wide}\n" if name == "csv" else f'{{"id":"1","t":"{wide}"}}\n'
    (tmp_path / "a.gz").write_bytes(gzip.compress(content.encode()))
    ((record),) = started(tmp_path, {"format.class": name}).run(1)
    assert rows([record]) == [["1", wide]] or rows([record]) == [{"id": "1", "t": wide}]


@cases(
    "content, expected",
    ("id,name,\n1,x,\n2,y,\n", [["1", "x"], ["2", "y"]]),
    ("id,name,\n1,x\n", [["1", "x"]]),
    ("id,,name,,\n1,,x,,\n2,,y\n", [["1", "x"], ["2", "y"]]),
    ("\n\nid,name\n1,x\n", [["1", "x"]]),
    ('"id","na""me"\n"1",x"y\n', [["1", 'x"y']]),
)
def test_a_header_of_a_spreadsheet_is_read(
    tmp_path: Path, content: str, expected: list[object]
) -> None:
    """Columns without a name are left out while they are empty."""
    (tmp_path / "a").write_text(content)
    source = started(tmp_path, {"format.class": "csv"})
    assert rows(source.run(len(expected))) == expected


@cases(
    "digits",
    "1E+400",
    "-1E-400",
    "12345678901234567890.123456789",
    "98765432109876543210",
    "0.1",
    "-7",
)
def test_numbers_of_json_keep_their_digits(tmp_path: Path, digits: str) -> None:
    """Numbers of JSON keep their digits from the file to the topic."""
    (tmp_path / "a").write_text(f'{{"n":[{digits}]}}\n')
    (record,) = started(tmp_path).run(1)
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"}, is_key=False)
    data = converter.from_connect_data("t", [], None, record.value)
    assert data == f'{{"n":[{digits}]}}'.encode()


def test_a_policy_that_is_not_known_is_refused(tmp_path: Path) -> None:
    """Validation refuses a policy that is not known."""
    config = LakeSourceConnector().validate(props(tmp_path, {"values.out.of.range": "zero"}))
    (wrong,) = [value.name for value in config.config_values if value.error_messages]
    assert wrong == "values.out.of.range"


def test_a_page_whose_checksum_is_wrong_is_not_read(tmp_path: Path) -> None:
    """A Parquet page with a wrong checksum fails: without compression its values would be wrong."""
    file = tmp_path / "a.parquet"
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(pa.table({"v": ["before", "behind"]}), file, **options)
    file.write_bytes(file.read_bytes().replace(b"before", b"afters"))
    source = started(tmp_path, {"format.class": "parquet", "max.retries": "0"})
    with pytest.raises(ConnectException, match=r"Cannot read a\.parquet: .*checksum"):
        source.run(1)
