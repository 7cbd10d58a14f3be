"""Compares by type and value with files: what their formats, writers and encodings do to values."""

import gzip
import itertools
import json
import struct
from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc, parquet
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, TimestampType
from pyspark.sql import SparkSession

from pyconnect_reconcile.findings import Verdict
from tests.support.audits.recorded_audits import LEFT, RecordedAudit, given, offsets, topic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

AGREE, DIFFER, UNKNOWN = Verdict.AGREE, Verdict.DIFFER, Verdict.UNKNOWN


@pytest.fixture
def audit(spark: SparkSession, tmp_path: Path) -> RecordedAudit:
    return RecordedAudit(spark, tmp_path)


def test_rows_of_csv_are_whole(audit: RecordedAudit, tmp_path: Path) -> None:
    """CSV keeps newlines, quotes and backslashes; a row with too many or too few values differs."""
    texts = ["x", "a\nb", 'a"b', 'a",b"c', "a\\b", "a\\", "", None, " x"]
    values = [json.dumps({"id": n, "s": text, "t": "z"}) for n, text in enumerate(texts)]
    kept = '0,x,z\n1,"a\nb",z\n2,"a""b",z\n3,"a"",b""c",z\n4,"a\\b",z\n5,"a\\",z\n6,"",z\n7,,z\n'
    lost = ["8,x,z", "8, x,z,more", "8, x", "8,,z"]
    file = tmp_path / "sink.csv"
    files = {"kind": "files", "paths": [str(file)], "format": "csv"}
    file.write_text("\n".join(("id,s,t", kept + lost[0], *lost[1:], "")))
    topics = {LEFT: given(*values, *[values[8]] * (len(lost) - 1))}
    answer = audit.run("topic-sink", topics, left=topic(LEFT), right=files)
    assert offsets(answer, "missing") == {8, 9, 10, 11}
    topics = {LEFT: given(*values)}
    file.write_text("id,s,t\n" + kept.replace('6,"",z', "6,,z") + "8, x,z\n")
    answer = audit.run("topic-sink", topics, left=topic(LEFT), right=files)
    assert offsets(answer, "missing") == {6}


def test_a_null_in_the_only_column_of_csv_is_no_empty_text(
    audit: RecordedAudit, tmp_path: Path
) -> None:
    """A null in the only column is LakeSink's comma, and not an empty text."""
    file = tmp_path / "sink.csv"
    files = {"kind": "files", "paths": [str(file)], "format": "csv"}
    for only, empty, found in ((",", '""', set()), ('""', '""', {1}), (',"x"', '""', {1})):
        file.write_text(f'"s"\n"x"\n{only}\n{empty}\n"y"\n')
        topics = {LEFT: given('{"s":"x"}', '{"s":null}', '{"s":""}', '{"s":"y"}')}
        answer = audit.run("topic-sink", topics, left=topic(LEFT), right=files)
        assert offsets(answer, "missing") == found, (only, empty)
        assert answer.verdict is (DIFFER if found else AGREE)
    file.write_text('"s"\n,\n')
    [row] = audit.spark.read.csv(file.as_uri(), header=True).collect()
    assert row.s is None


def test_a_column_of_one_file_is_one_of_the_sink(audit: RecordedAudit, tmp_path: Path) -> None:
    """A column of only some Parquet files, or a wider one, is compared."""
    for number, query in enumerate(("SELECT 1 AS id", "SELECT 2L AS id, 5L AS x")):
        audit.spark.sql(query).write.parquet((tmp_path / "sink" / f"{number}").as_uri())
    paths = [str(tmp_path / "sink" / each) for each in ("0", "1")]
    right = {"kind": "files", "paths": paths, "format": "parquet"}
    for second, verdict in (('{"id":2,"x":5}', AGREE), ('{"id":2}', UNKNOWN)):
        topics = {LEFT: given('{"id":1}', second)}
        answer = audit.run("topic-sink", topics, left=topic(LEFT), right=right)
        assert answer.verdict is verdict, second


def test_nanoseconds_that_spark_cuts_are_not_audited(audit: RecordedAudit) -> None:
    """Timestamps with nanoseconds in INT96 or ORC are refused, because Spark would cut them."""
    second = 1704067200 * 10**9
    values = ['{"t":"2024-01-01T00:00:00.123456Z"}', '{"l":["2024-01-01T00:00:00Z"]}']
    topics = {LEFT: given(*values)}
    for form, more in itertools.product(("parquet", "orc"), (0, 1, 1000)):
        moments = pa.array([second + 123456000 + more % 1000, None], pa.timestamp("ns"))
        lists = pa.array([None, [second + more // 1000]], pa.list_(pa.timestamp("ns")))
        file = str(audit.directory / f"sink-{more}.{form}")
        if form == "orc":
            orc.write_table(pa.table({"t": moments, "l": lists}), file)
        else:
            table = pa.table({"t": moments, "l": lists})
            parquet.write_table(table, file, use_deprecated_int96_timestamps=True)
        right = {"kind": "files", "paths": [file], "format": form}
        answer = audit.run("topic-sink", topics, left=topic(LEFT), right=right)
        assert answer.verdict is (UNKNOWN if more else AGREE), (form, more)
        assert answer.kinds() == ({"not-audited"} if more else set())
    named = audit.run("topic-sink", topics, left=topic(LEFT), right=right, columns=["t"])
    assert named.verdict is AGREE


def test_nanoseconds_in_keys_and_beside_sparks_own_schema_are_found(audit: RecordedAudit) -> None:
    """INT96 is found in keys, and in a file that keeps Spark's schema but has another writer."""
    nanos = 1704067200 * 10**9 + 123456001
    moments = pa.array([nanos], pa.timestamp("ns"))
    [own] = Path(audit.parquet("SELECT now() AS t")["paths"][0]).glob("*.parquet")  # type: ignore[index]
    kept = pa.table({"t": moments}).replace_schema_metadata(parquet.read_schema(own).metadata)
    keys = pa.table({"t": pa.array([[(nanos, 1)]], pa.map_(pa.timestamp("ns"), pa.int64()))})
    text = '"2024-01-01T00:00:00.123456Z"'
    for form, table, value in (
        ("parquet", kept, text),
        ("parquet", keys, '{"2024-01-01 00:00:00.123456":1}'),
        ("orc", keys, '{"2024-01-01 00:00:00.123456":1}'),
    ):
        file = str(audit.directory / f"sink.{form}")
        if form == "orc":
            orc.write_table(table, file)
        else:
            parquet.write_table(table, file, use_deprecated_int96_timestamps=True)
        right = {"kind": "files", "paths": [file], "format": form}
        topics = {LEFT: given(f'{{"t":{value}}}')}
        answer = audit.run("topic-sink", topics, left=topic(LEFT), right=right)
        assert (answer.verdict, answer.kinds()) == (UNKNOWN, {"not-audited"}), (form, value)


def test_nanoseconds_in_files_that_were_added_to_an_iceberg_table_are_not_audited(
    audit: RecordedAudit, tmp_path: Path
) -> None:
    """An Iceberg table with INT96 in an added file is refused, because Iceberg would cut it."""
    url = f"sqlite:///{tmp_path}/catalog.db"
    catalog = SqlCatalog("iceberg", uri=url, warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("db")
    columns = (NestedField(1, "id", LongType()), NestedField(2, "t", TimestampType()))
    table = catalog.create_table("db.events", Schema(*columns))
    file = tmp_path / "data.parquet"
    rows = pa.table({"id": [1], "t": pa.array([1704067200123456], pa.timestamp("us"))})
    parquet.write_table(rows, file)
    table.add_files([f"file://{file}"])
    right = {
        "kind": "files",
        "paths": ["db.events"],
        "format": "iceberg",
        "catalog": {"kind": "sql", "url": f"jdbc:sqlite:{tmp_path}/catalog.db"},
    }
    sides = {"left": topic(LEFT), "right": right}
    topics = {LEFT: given('{"id":1,"t":"2024-01-01T00:00:00.123456Z"}')}
    assert audit.run("topic-sink", topics, **sides).verdict is AGREE
    moments = pa.array([1704067200123456001], pa.timestamp("ns"))
    rows = rows.set_column(1, "t", moments)
    parquet.write_table(rows, file, use_deprecated_int96_timestamps=True)
    answer = audit.run("topic-sink", topics, **sides)
    assert (answer.verdict, answer.kinds()) == (UNKNOWN, {"not-audited"})
    assert audit.run("topic-sink", topics, **sides, columns=["id"]).verdict is AGREE


def test_times_of_files_beyond_a_day_are_no_times(audit: RecordedAudit) -> None:
    """A time beyond a day does not equal the time on the next day."""
    hour = 3_600_000_000
    times = pa.array([hour, 25 * hour, -23 * hour, 24 * hour - 1], pa.time64("us"))
    file = str(audit.directory / "sink.parquet")
    parquet.write_table(pa.table({"t": times}), file)
    right = {"kind": "files", "paths": [file], "format": "parquet"}
    topics = {LEFT: given(*['{"t":"01:00:00"}'] * 3, '{"t":"23:59:59.999999"}')}
    answer = audit.run("topic-sink", topics, left=topic(LEFT), right=right)
    assert answer.outcome.totals == {"missing": 2, "extra": 2, "repeated": 0}


def test_bytes_that_are_no_text_are_kept_in_files(audit: RecordedAudit, tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are compared, although Spark would replace them all alike."""

    def texts(held: bytes) -> pa.Array:
        ends = pa.py_buffer(struct.pack("<ii", 0, len(held)))
        return pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(held)])

    bounds, one = pa.array([0, 1], pa.int32()), pa.array([1], pa.int64())
    wraps: list[Callable[[pa.Array], pa.Array]] = [
        lambda each: pa.StructArray.from_arrays([each], ["s"]),
        lambda each: pa.ListArray.from_arrays(bounds, each),
        lambda each: pa.MapArray.from_arrays(bounds, each, one),
    ]
    for other in (b"\xfe", "\ufffd".encode(), b"\xff"):
        for at, held in enumerate((b"\xff", other)):
            values = [wrap(texts(held)) for wrap in wraps]
            rows = [pa.table({f"c{n}": value}) for n, value in enumerate(values)]
            parquet.write_table(
                pa.concat_tables(rows, promote_options="default"), f"{tmp_path}/{at}.parquet"
            )
            (tmp_path / f"{at}.csv").write_bytes('tä,"ü;"\n'.encode() + held + ',ö"\n'.encode())
        for kind, count in (("parquet", len(wraps)), ("csv", 1)):
            left, right = (
                {"kind": "files", "paths": [f"{tmp_path}/{at}.{kind}"], "format": kind}
                for at in (0, 1)
            )
            answer = audit.run("topic-topic", {}, left=left, right=right)
            lost = 0 if other == b"\xff" else count
            assert answer.outcome.totals.get("missing", 0) == lost, (kind, other)
            assert answer.verdict is (DIFFER if lost else AGREE)


def test_csv_is_read_in_its_encoding(audit: RecordedAudit, tmp_path: Path) -> None:
    """CSV is read as UTF-8, also with a byte order mark, or in the encoding of its options."""
    text = 'tä§u\n"ö§ü"§€\n'
    values = given('{"tä":"ö§ü","u":"€"}')
    for number, (content, encoding) in enumerate(
        ((text.encode(), ""), (text.encode("utf-8-sig"), ""), (text.encode("utf-16"), "UTF-16"))
    ):
        file = tmp_path / f"{number}.csv"
        file.write_bytes(content)
        options = {"sep": "§", **({"encoding": encoding} if encoding else {})}
        right = {"kind": "files", "paths": [str(file)], "format": "csv", "options": options}
        answer = audit.run("topic-sink", {LEFT: values}, left=topic(LEFT), right=right)
        assert answer.verdict is AGREE, (number, answer.outcome.findings)


def test_lines_are_read_from_their_first_byte_in_every_directory(audit: RecordedAudit) -> None:
    """A byte order mark belongs to the first line, and directories without `=` are read."""
    sink = audit.directory / "sink"
    (sink / "p").mkdir(parents=True)
    (sink / "p" / "b.gz").write_bytes(gzip.compress(BOM_UTF8 + b"two\n"))
    (sink / "a").write_bytes(BOM_UTF8 + b"one\n")
    right = {"kind": "files", "paths": [str(sink)], "format": "text"}
    topics = {LEFT: given("one", "two", "\ufeffone", "\ufefftwo")}
    answer = audit.run("topic-sink", topics, left=topic(LEFT, "text"), right=right)
    assert offsets(answer, "missing") == {0, 1}
    assert answer.outcome.totals["extra"] == 0


def test_texts_of_csv_stand_for_what_the_records_have(audit: RecordedAudit, tmp_path: Path) -> None:
    """CSV texts are numbers if the records have numbers, and texts if they have texts."""
    values = [
        '{"id":1,"zip":"007","price":1.50,"ok":true}', '{"id":2,"zip":"7","price":1e2,"ok":false}',
    ]  # fmt: skip
    file = tmp_path / "sink.csv"
    files = {"kind": "files", "paths": [str(file)], "format": "csv"}
    kept = ("1,007,1.5,true", "2,7,100.0,false")
    changed = ("1,7,1.5,true", "1,007,1.51,true", "1,007,1.5,1", "1,,1.5,true")
    topics = {LEFT: given(*values, *[values[0]] * len(changed))}
    file.write_text("\n".join(("id,zip,price,ok", *kept, *changed, "")))
    answer = audit.run("topic-sink", topics, left=topic(LEFT), right=files)
    assert answer.outcome.totals == {"missing": 4, "extra": 4, "repeated": 0}


def test_a_column_of_files_counts_more_than_their_directories(
    audit: RecordedAudit, tmp_path: Path
) -> None:
    """A column in a file wins over the directory of its name, whose value is a text."""
    for columns, path, ids, lost in (
        ("'007' AS id, id AS n", "both", ("8", '"007"'), {0}),
        ("id AS n", "names", ("8", '"8"', '"08"'), {2}),
    ):
        rows = audit.spark.range(len(ids)).selectExpr(*columns.split(", "))
        rows.write.parquet(f"file://{tmp_path / path}/id=8")
        values = [f'{{"id":{each},"n":{n}}}' for n, each in enumerate(ids)]
        right = {"kind": "files", "paths": [str(tmp_path / path)], "format": "parquet"}
        answer = audit.run("topic-sink", {LEFT: given(*values)}, left=topic(LEFT), right=right)
        assert offsets(answer, "missing") == lost, path
        assert answer.outcome.totals["extra"] == 1
