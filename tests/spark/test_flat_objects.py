"""JSON objects that one regular expression reads have the same tokens as parsed ones."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import Row, SparkSession

from pyconnect_reconcile.spec import ColumnRule
from pyconnect_reconcile.values.kinds import Compared
from pyconnect_reconcile.values.normal import MOST_FLAT, Columns, json_columns, with_flat_objects
from tests.support.seeds import LONG

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

SEEDS = range(100 if LONG else 1)
ROWS = 400 if LONG else 1200
NAMES = ("id", "n", "é", "c.d", "{x", "$1")
KINDS = ("bigint", "double", "string", "timestamp", "date", "boolean")
PLAIN = (
    "0", "7", "-7", "1.50", "1.0", "0.0", "-0.5", "-1.20", "100", "9007199254740993", "1" * 250,
    '""', '"a"', '"1"', '"null"', '"{\\"a\\":1}"', '"[1]"', '"é, \\" \\\\ \\/ \\n"', '"\\u00e9"',
    '"\\u007b"', '"\\u0001t"', '"\\u0002"', '"$1"', '"2024-01-01"', '"2024-01-01T10:00:00Z"',
    "true", "false", "null",
)  # fmt: skip
OTHERS = (
    "-0", "-0.0", "1e2", "-1.5E-3", "1" * 700, "0." + "1" * 700, "1e400", "NaN", "-Infinity", "01",
    "00", "1.", ".5", "+1", "- 1", "tru", "nul", "nullx", '"\\ud83d\\ude00"', '"\\ud800"',
    '"\\u00g0"', '"\\x"', '"a\tb"', '"\x01"', "'a'", '"\ufffd"', '"\U0001f600"', "[1]", "[]",
    '{"a":1}', "{}", '"a" "b"', "1 2", "", '"open',
)  # fmt: skip
RAW = (
    b"{}", b"{ }", b"", b"null", b"[]", b'{"id":1', b'{"id":1}}', b'{"id":1}{"id":2}', b"\x02",
    b'{"id":1,}', b'{,"id":1}', b'{"id" 1}', b'{"id":1 "n":2}', b'{"id":"\xff"}', b"{id:1}",
    b'{"i\\u0064":1}', b'{"id":1,"i\\u0064":2}', b'{"ID":1}', b'{"id":1} \n', b' {"id":1}',
    b"\x02\x022\x02", b'{"id":1}\x02', b'[{"id":1}]', b'{"id":1}, {"id":2}', b'{"\xff":1}',
)  # fmt: skip


def line(randomness: random.Random) -> bytes:
    """Return an object, most with plain members in order, some with one odd part."""
    names = [name for name in NAMES if randomness.random() < 0.8]
    values = [randomness.choice(PLAIN) for _ in names]
    odd = randomness.random()
    if names and odd < 0.2:
        values[randomness.randrange(len(names))] = randomness.choice(OTHERS)
    elif odd < 0.3:
        randomness.shuffle(names)
    elif names and odd < 0.4:
        at = randomness.randrange(len(names) + 1)
        names.insert(at, randomness.choice((*names, "other")))
        values.insert(at, randomness.choice(PLAIN))
    space = randomness.choice(("", "", " ", "\n\t ", "\r"))
    members = (
        f"{space}{json.dumps(name, ensure_ascii=False)}{space}:{space}{value}{space}"
        for name, value in zip(names, values, strict=True)
    )
    return ("{" + ",".join(members) + "}" + space).encode()


def columns_of(names: Sequence[str], *, closed: bool) -> Columns:
    found = (
        Compared(rule=ColumnRule(name=name, path=name), kind=KINDS[at % len(KINDS)])
        for at, name in enumerate(names)
    )
    return Columns(all=tuple(found), closed=closed)


def tokens(
    spark: SparkSession, file: Path, columns: Columns, *, all_marked: bool
) -> list[tuple[Row, bytes]]:
    """Return the compared columns of each value, and the value."""
    frame = spark.read.parquet(file.as_uri())
    content = json_columns(frame, "json", columns, all_marked=all_marked)
    named = [column.alias(f"c{at}") for at, column in enumerate(content.columns)]
    found = content.frame.orderBy("at").select(*named, content.unparsable.alias("wrong"), "value")
    return [(row[:-1], row[-1]) for row in found.collect()]


def written(directory: Path, values: Sequence[bytes | None]) -> Path:
    file = directory / "values.parquet"
    parquet.write_table(
        pa.table({"at": pa.array(range(len(values))), "value": pa.array(values, pa.binary())}), file
    )
    return file


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "open"])
@pytest.mark.parametrize("seed", SEEDS)
def test_flat_objects_have_the_tokens_of_the_parsers(
    spark: SparkSession, tmp_path: Path, seed: int, closed: bool
) -> None:
    """Random objects and other texts have the parsers' tokens, and most objects are not parsed."""
    randomness = random.Random(seed)
    full = {name: number for number, name in enumerate(NAMES)}
    lines = [line(randomness) for _ in range(ROWS)]
    values = [json.dumps(full, ensure_ascii=False).encode(), None, *RAW, *lines]
    columns = columns_of(NAMES if closed else NAMES[:-2], closed=closed)
    file = written(tmp_path, values)
    expected = tokens(spark, file, columns, all_marked=True)
    for one, other in zip(tokens(spark, file, columns, all_marked=False), expected, strict=True):
        assert one == other
    read, flat = with_flat_objects(spark.read.parquet(file.as_uri()), columns.known, closed=closed)
    assert read.where(flat.holds).count() > ROWS / 2


def test_objects_within_an_envelope_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """A value is flat only if all text before its object is that of the first value."""
    schema = b'{"schema":{"type":"struct","fields":[{"field":"payload"}]},"payload":'
    flat = [schema + each for each in (b'{"a":1,"b":"x"}}', b'{"b":"y"} } ', b"{}}")]
    others = [
        schema + b'{"a":1}', schema + b'{"a":1}}}', schema + b'{"a":1},"payload":{"a":2}}',
        schema + b"null}", schema + b'{"a":{}}}', b'{"a":1,"b":"x"}', b'{"payload":{"a":1}}',
        schema.replace(b"struct", b"map") + b'{"a":1}}',
    ]  # fmt: skip
    frame = spark.read.parquet(written(tmp_path, [*flat, *others]).as_uri())
    read, found = with_flat_objects(frame, ["a", "b"], closed=True, within="payload")
    tokens = (found.token(name) for name in ("a", "b"))
    rows = [tuple(row) for row in read.where(found.holds).orderBy("at").select(*tokens).collect()]
    assert rows == [("\x011", "x"), (None, "y"), (None, None)]


@pytest.mark.parametrize("first", [b'{"payload":1,"payload":{"a":1}}', b'{"payload":{"a":1}}'])
def test_an_object_in_another_envelope_is_parsed(
    spark: SparkSession, tmp_path: Path, first: bytes
) -> None:
    """Values are parsed if the first envelope has a repeated member or no schema."""
    frame = spark.read.parquet(written(tmp_path, [first]).as_uri())
    _, found = with_flat_objects(frame, ["a"], closed=True, within="payload")
    assert found.names == ()


def test_plain_values_are_not_parsed(spark: SparkSession, tmp_path: Path) -> None:
    """An object with any plain value is flat."""
    values = [f'{{"a":{value}}}'.encode() for value in PLAIN if value != "null"]
    read, flat = with_flat_objects(
        spark.read.parquet(written(tmp_path, values).as_uri()), ["a"], closed=True
    )
    assert {bytes(row.value) for row in read.where(flat.holds).collect()} == set(values)


def test_many_members_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """The expression reads up to MOST_FLAT members; parsers read objects with more."""
    for count in (MOST_FLAT, MOST_FLAT + 1):
        names = [f"column_{number}" for number in range(count)]
        text = json.dumps({name: f"{name}, é" for name in names}).encode()
        read, flat = with_flat_objects(
            spark.read.parquet(written(tmp_path, [text]).as_uri()), names, closed=True
        )
        assert read.where(flat.holds).count() == (count == MOST_FLAT)


def test_members_that_the_first_object_lacks_have_a_place(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A known member that the first object lacks is read after the known one before it."""
    values = [b'{"a":1,"c":3}', b'{"a":1,"b":2,"c":3,"d":4}']
    frame = spark.read.parquet(written(tmp_path, values).as_uri())
    read, flat = with_flat_objects(frame, ["a", "b", "c", "d"], closed=True)
    assert read.where(flat.holds).count() == 2
