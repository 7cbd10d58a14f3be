"""Compares by type and value: a value that a sink lost, rounded or converted is a difference."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyconnect_reconcile.findings import Verdict
from tests.support.audits.audits import Answer
from tests.support.audits.recorded_audits import (
    LEFT,
    RIGHT,
    Given,
    RecordedAudit,
    given,
    offsets,
    topic,
)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

AGREE, DIFFER, UNKNOWN = Verdict.AGREE, Verdict.DIFFER, Verdict.UNKNOWN


@pytest.fixture
def audit(spark: SparkSession, tmp_path: Path) -> RecordedAudit:
    return RecordedAudit(spark, tmp_path)


def beside_parquet(
    audit: RecordedAudit, values: Sequence[str | bytes | None], query: str, **members: object
) -> Answer:
    """Compare values of a topic with the rows of a query in Parquet files."""
    sides = {"left": topic(LEFT), "right": audit.parquet(query)}
    return audit.run("topic-sink", {LEFT: given(*values)}, **sides, **members)


LOSSES = [
    (1, "abc", '"abc"', "CAST(NULL AS BIGINT)"),
    (2, "beyond 64 bits", "99999999999999999999", "CAST(NULL AS BIGINT)"),
    (3, "fraction", "7.75", "7L"),
    (4, "text of a number", '"7"', "7L"),
    (5, "rounded", "10.129", "CAST(10.13 AS DECIMAL(10,2))"),
    (6, "digits of a double", "9007199254740993", "9007199254740992D"),
    (7, "infinity", "1e400", "CAST('Infinity' AS DOUBLE)"),
    (8, "text in a date", '"soon"', "CAST(NULL AS DATE)"),
    (9, "text in a boolean", '"true"', "true"),
    (10, "number in a boolean", "1", "true"),
    (11, "number in a text", "1", "'1'"),
    (12, "object in a text", '{"a":1}', "'{\"a\":1}'"),
    (
        "13",
        "microseconds",
        '"2024-01-01T00:00:00.1234567Z"',
        "TIMESTAMP'2024-01-01 00:00:00.123456'",
    ),
    (14, "text in a timestamp", '"2024-02-30T00:00:00Z"', "CAST(NULL AS TIMESTAMP)"),
]


def test_a_value_that_the_column_cannot_hold_is_a_finding(audit: RecordedAudit) -> None:
    """Each lossy conversion is a finding with the field, the count and the place."""
    names = [f"n{number}" for number, *_ in LOSSES]
    values = ["{}", *(f'{{"n{number}":{value}}}' for number, _, value, _ in LOSSES)]
    stored = [f"{each} AS {name}" for name, (*_, each) in zip(names, LOSSES, strict=True)]
    nulls = [f"if(id = {number}, s.n{number}, NULL) AS n{number}" for number, *_ in LOSSES]
    query = (
        f"SELECT {', '.join(nulls)} FROM range({len(LOSSES) + 1}) JOIN"
        f" (SELECT {', '.join(stored)}) AS s"
    )
    answer = beside_parquet(audit, values, query)
    found = {each.group: each.count for each in answer.of("not-representable")}
    assert found == dict.fromkeys(names, 1)
    assert {next(iter(each)) for each in answer.places("not-representable")} == {
        (0, number) for number in range(1, len(LOSSES) + 1)
    }
    assert answer.verdict is DIFFER
    totals = answer.outcome.totals
    assert totals["missing"] == len(LOSSES)
    assert totals["extra"] + totals["repeated"] == len(LOSSES)


def test_the_example_of_a_narrowing_sink(audit: RecordedAudit) -> None:
    """Texts, large numbers and fractions in an integer column are findings with counts."""
    values = [
        '{"id":7,"n":"abc","extra":"x"}',
        '{"id":8,"n":99999999999999999999}',
        '{"id":9,"n":18.75}',
    ]
    query = "SELECT * FROM VALUES (7L, NULL), (8L, NULL), (9L, 18L) AS t(id, n)"
    answer = beside_parquet(audit, values, query)
    found = {each.group: each.count for each in answer.of("not-representable")}
    assert (answer.verdict, found) == (DIFFER, {"n": 3, "extra": 1})
    assert answer.outcome.totals["not-representable"] == 4


def test_values_that_columns_hold_agree(audit: RecordedAudit) -> None:
    """Numbers and instants agree in any notation, and null and absent are equal in a column."""
    values = [
        '{"a":1.0,"b":1e2,"c":0.1,"d":"2024-01-01T01:00:00+01:00","e":"2024-01-02","f":true}',
        '{"g":"x","h":1.50,"i":{"y":[1,2.0,null],"x":null},"j":{"k":"v"},"k":"AP8="}',
        '{"a":null}',
        "{}",
        '{"g":"{\\"a\\": 1}", "c": 1E-1, "h": 1000e-3, "d": 1704067200000, "b": -0}',
    ]
    query = (
        "SELECT NULL AS a, NULL AS b, NULL AS c, NULL AS d,"
        " NULL AS e, NULL AS f, 'x' AS g, CAST(1.5 AS DECIMAL(9,3)) AS h,"
        " named_struct('x', CAST(NULL AS INT), 'y', array(1.0D, 2D, NULL)) AS i,"
        " map('k', 'v') AS j, X'00ff' AS k UNION ALL"
        " SELECT 1L, 100D, 0.1D, TIMESTAMP'2024-01-01 00:00:00', DATE'2024-01-02', true,"
        " NULL, NULL, NULL, NULL, NULL UNION ALL"
        " SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL UNION ALL"
        " SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL UNION ALL"
        " SELECT NULL, 0D, 0.1D, TIMESTAMP'2024-01-01 00:00:00', NULL, NULL, '{\"a\": 1}', 1,"
        " NULL, NULL, NULL"
    )
    answer = beside_parquet(audit, values, query)
    assert (answer.verdict, answer.outcome.findings) == (AGREE, ())


def test_changes_inside_lists_and_structs_are_seen(audit: RecordedAudit) -> None:
    """A null, a swap and another type in nested values are differences."""
    values = ['{"x":1,"y":[1,2]}', '{"x":null,"y":[1,2]}', '{"x":1,"y":[2,1]}',
              '{"x":1,"y":[1,"2"]}', '{"x":1,"y":[1,2],"z":0}', '{"y":[1,2]}',
              '{"x":"1","y":[1,2]}']  # fmt: skip
    query = f"SELECT id, named_struct('x', 1, 'y', array(1, 2)) AS v FROM range({len(values)})"
    records = [f'{{"id":{n},"v":{value}}}' for n, value in enumerate(values)]
    answer = beside_parquet(audit, records, query)
    assert offsets(answer, "missing") == set(range(1, len(values)))
    assert answer.verdict is DIFFER


def test_names_with_points_and_other_cases_are_names(audit: RecordedAudit) -> None:
    """`a.b` is a whole name or a path, and `A` and `a` are two columns."""
    values = ['{"a.b":1,"A":2,"a":3,"b`c":4}']
    query = "SELECT 1L AS `a.b`, 2L AS A, 3L AS a, 4L AS `b``c`"
    assert beside_parquet(audit, values, query).verdict is AGREE
    values = ['{"s":{"t":{"u":5}}}']
    query = "SELECT 5L AS u"
    columns = [{"name": "u", "path": "s.t.u"}]
    assert beside_parquet(audit, values, query, columns=columns).verdict is AGREE
    query = "SELECT 7L AS userid, 'x' AS note"
    values = ['{"userId":7,"note":"x"}']
    assert beside_parquet(audit, values, query).verdict is AGREE
    values = ['{"userId":8,"note":"x"}']
    assert beside_parquet(audit, values, query).verdict is DIFFER


def test_a_load_time_is_left_out_by_name_or_leaves_the_answer_open(
    audit: RecordedAudit, tmp_path: Path
) -> None:
    """A column that no record has leaves the answer open, unless the compared columns are named."""
    values = ['{"id":1,"at":1704067200123}']
    query = "SELECT 1L AS id, TIMESTAMP'2024-01-01 00:00:00.123' AS at, now() AS loaded_at"
    answer = beside_parquet(audit, values, query)
    assert (answer.verdict, answer.kinds()) == (UNKNOWN, {"not-compared"})
    assert "loaded_at" in answer.of("not-compared")[0].message
    for columns in (["id", "at"], ["id:bigint", "at:timestamp_ms"]):
        answer = beside_parquet(audit, values, query, columns=columns)
        assert answer.verdict is AGREE
        assert "id, at" in " ".join(answer.outcome.not_compared)
    values = ['{"id":2,"at":1704067200123}']
    assert beside_parquet(audit, values, query).verdict is DIFFER


def test_a_type_in_the_spec_narrows_nothing(audit: RecordedAudit) -> None:
    """A type in the spec says how to read a value; a rounded or cut one is a difference."""
    values = ['{"id":1,"p":10.13,"at":1704067200123}', '{"id":2,"p":10.129,"at":1704067200123}',
              '{"id":3,"p":"x","at":1704067200123}',
              '{"id":4,"p":1,"at":"2024-01-01T00:00:00.123456Z"}']  # fmt: skip
    query = (
        "SELECT id, CAST(p AS DECIMAL(10,2)) AS p, TIMESTAMP'2024-01-01 00:00:00.123' AS at"
        " FROM VALUES (1L, 10.13), (2L, 10.13), (3L, NULL), (4L, 1) AS t(id, p)"
    )
    columns = ["id:bigint", "p:decimal(10,2)", "at:timestamp_ms"]
    answer = beside_parquet(audit, values, query, columns=columns)
    assert offsets(answer, "missing") == {1, 2, 3}
    assert answer.verdict is DIFFER


EQUAL = [
    ("1.0", "1"), ("100", "1e2"), ("0.1", "1e-1"), ("100e-2", "1"), ("-0.0", "0"),
    ('{"a":1,"b":[2]}', ' {"b" : [2.0], "a": 10e-1} '), ("1e400", "10e399"),
    ('"\\u00e9"', '"é"'), ('"\\ud83d\\ude00"', '"😀"'), ("1E5000", "10e4999"),
]  # fmt: skip
DIFFERENT = [
    ('"{\\"a\\":1}"', '{"a":1}'), ("1", '"1"'), ("true", '"true"'), ("null", '"null"'),
    ("null", None), ('"[1]"', "[1]"), ("1e400", "2e400"),
    ("1" * 40, "1" * 39 + "2"), ('"\\ud800"', '"\\udfff"'), ('"\\ud800"', '"?"'),
    (b'"\xff"', b'"\xfe"'), ("[" * 1200 + "1" + "]" * 1200, "[" * 1200 + "2" + "]" * 1200),
    ('{"a":{"b":null}}', '{"a":{}}'), ("[1,2]", "[2,1]"), ('{"a":1}', '{"a":1} x'),
    ("NaN", '"NaN"'), ("Infinity", "-Infinity"), ("0.30000000000000004", "0.3"),
    ('"\\u0001t"', "true"), ('{"a":1,"a":2}', '{"a":2}'), ('{"a":1e400}', '{"a":2e400}'),
    ("no json", "other"), ('{"a": "b}', '{"a": "c}'),
]  # fmt: skip


def test_documents_are_equal_by_type_and_value(audit: RecordedAudit) -> None:
    """Numbers are equal by exact decimal, and objects in any order of members; nothing else is."""
    pairs = [*EQUAL, *DIFFERENT]
    topics = {
        name: [
            Given(v.encode() if isinstance(v, str) else v, key=b"%d" % number)
            for number, v in enumerate(values)
        ]
        for name, values in zip((LEFT, RIGHT), zip(*pairs, strict=True), strict=True)
    }
    answer = audit.run("topic-topic", topics, left=topic(LEFT), right=topic(RIGHT))
    for kind in ("missing", "extra"):
        assert offsets(answer, kind) == set(range(len(EQUAL), len(pairs))), kind
    assert answer.verdict is DIFFER


def test_records_that_do_not_parse_are_compared_by_their_bytes(
    audit: RecordedAudit, tmp_path: Path
) -> None:
    """Records that do not parse are missing from a sink unless it has their bytes."""
    values: list[str | bytes | None] = [
        '{"id":1}', "not json", '{"id":', b"\xff\xfe", "{'id':1}", '{"id":1} x'
    ]  # fmt: skip
    answer = beside_parquet(audit, values, "SELECT 1L AS id")
    assert (answer.verdict, answer.outcome.totals["missing"]) == (DIFFER, 5)
    assert [each.count for each in answer.of("unparsable")] == [5]
    sink = tmp_path / "sink.jsonl"
    sink.write_bytes(b'{"id":1}\nnot json\n{"id":\n\xff\xfe\n{\'id\':1}\n{"id":1} x\n')
    lines = {"kind": "files", "paths": [str(sink)], "format": "json"}
    topics = {LEFT: given(*values)}
    answer = audit.run("topic-sink", topics, left=topic(LEFT), right=lines)
    assert answer.verdict is AGREE


def test_upsert_means_one_row_for_each_key(audit: RecordedAudit, tmp_path: Path) -> None:
    """A second row of a key is found in files, and in a table without a primary key."""
    values = ['{"id":1,"n":1}', '{"id":2,"n":1}', '{"id":1,"n":2}']
    members = {"mode": "upsert", "key": "json:id"}
    twice = "SELECT * FROM VALUES (1L, 2L), (2L, 1L), (2L, 1L), (2L, 1L) AS t(id, n)"
    answer = beside_parquet(audit, values, twice, **members)
    assert answer.outcome.totals == {"repeated": 2}
    database = tmp_path / "a.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE t (id INTEGER, n INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, 2), (1, 2), (2, 1)])
    table = {"kind": "table", "url": f"jdbc:sqlite:{database}", "table": "t"}
    sides = {"left": topic(LEFT), "right": table}
    topics = {LEFT: given(*values)}
    answer = audit.run("topic-sink", topics, **sides, **members)
    assert (answer.verdict, answer.outcome.totals["repeated"]) == (DIFFER, 1)


def test_members_of_keys_keep_their_types(audit: RecordedAudit) -> None:
    """Key 1 differs from key "1", and a text of a date equals a date in its column."""
    left = [Given(b'{"v":1}', b'{"id":1}'), Given(b'{"v":2}', b'{"id":"1"}')]
    members = {"mode": "upsert", "key": "key.json:id"}
    topics = {LEFT: left, RIGHT: left[1:]}
    answer = audit.run("topic-topic", topics, left=topic(LEFT), right=topic(RIGHT), **members)
    assert (answer.verdict, answer.outcome.totals) == (DIFFER, {"missing": 1})
    dated = [Given(b'{"id":"2026-01-02","v":%d}' % n, b'{"id":"2026-01-02"}') for n in (1, 2)]
    sink = audit.parquet("SELECT DATE'2026-01-02' AS id, 2L AS v")
    answer = audit.run("topic-sink", {LEFT: dated}, left=topic(LEFT), right=sink, **members)
    assert answer.verdict is AGREE


def test_a_key_may_have_moved_to_another_partition(audit: RecordedAudit) -> None:
    """The later record of a key counts, even if its offset in another partition is lower."""
    left = [Given(b"%d" % n, b"k%d" % n, timestamp_ms=1000 + n) for n in range(20)]
    moved = [Given(b"99", b"k7", partition=1, offset=0, timestamp_ms=9000)]
    right = [Given(b"%d" % (99 if n == 7 else n), b"k%d" % n) for n in range(20)]
    sides = {"left": topic(LEFT), "right": topic(RIGHT), "mode": "upsert"}
    answer = audit.run("topic-topic", {LEFT: [*left, *moved], RIGHT: right}, **sides)
    assert answer.verdict is AGREE
    # Of two last records with the same time either may be the last, also a tombstone.
    moved = [
        replace(moved[0], timestamp_ms=1007),
        Given(None, b"k8", partition=1, offset=1, timestamp_ms=1008),
    ]
    for seventh, eighth, verdict in ((b"7", None, UNKNOWN), (b"7", b"x", DIFFER)):
        right[7:9] = [Given(seventh, b"k7"), Given(eighth, b"k8")]
        answer = audit.run("topic-topic", {LEFT: [*left, *moved], RIGHT: right}, **sides)
        assert answer.verdict is verdict
        assert "unordered-keys" in answer.kinds()


def test_sqlite_keeps_what_it_stores(audit: RecordedAudit, tmp_path: Path) -> None:
    """A value of another class than the column's type is compared as it is stored."""
    changes = ["n = 'abc'", "b = 'yes'", "n = NULL", "n = 7.5", "b = 3", "r = 'x'", "n = x'00'"]
    count = len(changes) + 4
    values = [json.dumps({"id": n, "n": n, "b": bool(n % 2), "r": 0.5}) for n in range(count)]
    database = tmp_path / "a.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE t (id INTEGER, n BIGINT, b BOOLEAN, r REAL)")
        connection.executemany(
            "INSERT INTO t VALUES (?, ?, ?, ?)", [(n, n, n % 2, 0.5) for n in range(count)]
        )
        for number, change in enumerate(changes):
            connection.execute(f"UPDATE t SET {change} WHERE id = {number}")
    table = {"kind": "table", "url": f"jdbc:sqlite:{database}", "table": "t"}
    sides = {"left": topic(LEFT), "right": table}
    topics = {LEFT: given(*values)}
    answer = audit.run("topic-sink", topics, **sides)
    assert offsets(answer, "missing") == set(range(len(changes)))
    assert (answer.verdict, answer.outcome.totals["extra"]) == (DIFFER, len(changes))


KEPT_IN_COLUMNS = [
    ('"\\u007babc"', "'{abc'"),
    ('"[1]"', "'[1]'"),
    ('{"k":null,"j":1}', "map('j', 1L, 'k', NULL)"),
    ('{"d":{"e":null,"f":[null,{"g":null}]}}',
     "named_struct('d', named_struct('f', array(NULL, named_struct('g', CAST(NULL AS INT)))))"),
    ("NaN", "CAST('NaN' AS DOUBLE)"), ("-Infinity", "CAST('-Infinity' AS FLOAT)"),
    ('"2024-01-01T05:30:00+05:30"', "TIMESTAMP'2024-01-01 00:00:00'"),
    ("-500", "TIMESTAMP'1969-12-31 23:59:59.5'"),
    ("1704067200000", "1704067200000L"), ("0.1", "CAST(0.1 AS FLOAT)"), ('"QUI="', "X'4142'"),
]  # fmt: skip
LOST_IN_COLUMNS = [
    ('{"x":1,"x":2}', "CAST(NULL AS STRUCT<x: INT>)"), ('{"x":1,"x":2}', "CAST(NULL AS STRING)"),
    ('"\\u007babc"', "CAST(NULL AS STRING)"),
    ('"\\u007B\\"a\\":\\"x\\"}"', "named_struct('a', 'x')"),
    ('"\\u005b\\"x\\"]"', "array('x')"),
    ("[" * 600 + "]" * 600, "CAST(NULL AS STRING)"),
    ('{"k":null,"j":1}', "map('j', 1L)"), ("[1,null]", "array(1L)"),
    ("[]", "CAST(NULL AS ARRAY<INT>)"), ("{}", "CAST(NULL AS STRUCT<x: INT>)"),
    ("null", "CAST('NaN' AS DOUBLE)"), ("NaN", "CAST(NULL AS DOUBLE)"),
    ('"NaN"', "CAST('NaN' AS DOUBLE)"), ("true", "1L"),
    ("1704067200", "TIMESTAMP'2024-01-01 00:00:00'"),
    ('"2024-01-01T00:00:00Z"', "'2024-01-01 00:00:00'"),
    ('""', "CAST(NULL AS STRING)"), ("null", "''"), ("0", "CAST(NULL AS INT)"),
    ("null", "false"), ('"QUJ="', "X'4142'"),
]  # fmt: skip


def test_rows_of_columns_of_every_kind_are_told_apart(audit: RecordedAudit) -> None:
    """Exactly those rows are missing whose column has lost the value."""
    pairs = [*KEPT_IN_COLUMNS, *LOST_IN_COLUMNS]
    values = [f'{{"id":{n},"c{n}":{value}}}' for n, (value, _) in enumerate(pairs)]
    stored = ", ".join(f"{each} AS c{n}" for n, (_, each) in enumerate(pairs))
    columns = ", ".join(f"if(id = {n}, c{n}, NULL) AS c{n}" for n in range(len(pairs)))
    query = f"SELECT id, {columns} FROM range({len(pairs)}) JOIN (SELECT {stored})"
    answer = beside_parquet(audit, values, query)
    lost = set(range(len(KEPT_IN_COLUMNS), len(pairs)))
    assert offsets(answer, "missing") == lost
    assert answer.outcome.totals["extra"] == len(lost)


def test_members_of_json_on_both_sides_keep_their_nulls(
    audit: RecordedAudit, tmp_path: Path
) -> None:
    """Nulls of nested members differ from absent ones, and repeated members are kept."""
    values = ['{"a":0,"s":{"x":null}}', '{"a":1,"s":{"x":1,"x":2}}', '{"a":2,"s":{"x":1,"x":2}}',
              '{"a":3}', '{"a":4,"s":{"x":[null]}}', '{"a":5,"s":"\\u007b}"}']  # fmt: skip
    sink = tmp_path / "sink.jsonl"
    sink.write_text(
        '{"a":0,"s":{}}\n{"a":1,"s":null}\n{"a":2,"s":{"x":1,"x":3}}\n{"a":"3"}\n'
        '{"a":4,"s":{"x":[null]}}\n{"a":5,"s":{}}\n'
    )
    right = {"kind": "files", "paths": [str(sink)], "format": "json"}
    topics = {LEFT: given(*values)}
    answer = audit.run("topic-sink", topics, left=topic(LEFT), right=right, columns=["a", "s"])
    assert offsets(answer, "missing") == {0, 1, 2, 3, 5}


def test_identities_are_equal_by_type_and_value(audit: RecordedAudit) -> None:
    """Identities are equal if their numbers, texts or objects are equal as JSON."""
    ids = ["1", "1.0", '"1"', "true", '"true"', '{"a":1,"b":2}', '{"b":2,"a":1e0}', '"é"',
           '"\\u00e9"', "1.12345678901234567891", "1.12345678901234567892"]  # fmt: skip
    topics = {LEFT: given(*(f'{{"id":{each},"n":{n}}}' for n, each in enumerate(ids)))}
    answer = audit.run("duplicates", topics, topics=[LEFT], identity="json:id")
    pairs = {frozenset({(0, n), (0, n + 1)}) for n in (0, 5, 7)}
    assert (answer.verdict, answer.places("duplicate")) == (DIFFER, pairs)


WHOLE = ("%d", '"%d"', "%d.0", "%d.000", '"%d.0"', "%d0e-1", '"00%d"', '" %d "')
NO_NUMBER = ("%d.0000000000000000000001", "%d1e-1", '"%d.0000000000000000000001"', '"%de0"',
             "-%de-2", "true", "null", "[%d]", "NaN")  # fmt: skip
NO_MEMBER = ('{"n":%d} x', '{"n":%d}{"n":1}', "{'n':%d}", '{"n":1,"n":%d}', '{"\\u006e":1,"n":%d}',
             '[{"n":%d}]', '{"N":%d}', '{"n":%d', '"{\\"n\\":%d}"')  # fmt: skip


@pytest.mark.parametrize("path", ["n", "$.a.n"])
def test_a_number_of_a_sequence_is_one_as_it_is_written(audit: RecordedAudit, path: str) -> None:
    """A number counts only if no digit is cut off and its text is one JSON value."""
    good = [f'{{"n":{each}}}' for each in WHOLE]
    bad = [*(f'{{"n":{each}}}' for each in NO_NUMBER), *NO_MEMBER]
    values = [
        each % number if "%d" in each else each
        for number, each in enumerate([*good, *bad, '{"n":%d}'], 1)
    ]
    inside = values if path == "n" else [f'{{"a":{value}}}' for value in values]
    topics = {LEFT: given(*inside)}
    answer = audit.run("sequence", topics, topics=[LEFT], sequence=f"json:{path}", ordered=False)
    assert answer.intervals("missing") == {(None, len(good) + 1, len(good) + len(bad))}
    assert answer.outcome.totals["unparsable"] == len(bad)


def test_columns_that_no_side_has_prove_nothing(audit: RecordedAudit, tmp_path: Path) -> None:
    """A column that no record has is refused, because nulls on both sides would agree."""
    sink = tmp_path / "sink.jsonl"
    sink.write_text('{"a":9}\n')
    right = {"kind": "files", "paths": [str(sink)], "format": "json"}
    topics = {LEFT: given('{"a":1}')}
    answer = audit.run("topic-sink", topics, left=topic(LEFT), right=right, columns=["tpyo"])
    assert (answer.verdict, answer.kinds()) == (UNKNOWN, {"not-audited"})
    query = "SELECT 1L AS a, CAST(NULL AS BIGINT) AS b"
    for value, verdict in (('{"a":1,"x":5}', UNKNOWN), ('{"a":1,"B":5}', DIFFER),
                           ('{"a":1,"b":null}', AGREE)):  # fmt: skip
        assert beside_parquet(audit, [value], query, columns=["a", "b"]).verdict is verdict, value
    values = {name: given('{"schema":null,"payload":1}') for name in (LEFT, RIGHT)}
    sides = {"left": topic(LEFT, "connect-json"), "right": topic(RIGHT, "connect-json")}
    answer = audit.run("topic-topic", values, **sides)
    assert answer.verdict is AGREE
    assert "the schemas beside the values" in answer.outcome.not_compared


def test_a_record_without_a_value_is_no_row_of_nulls(audit: RecordedAudit, tmp_path: Path) -> None:
    """A record without a value differs from a row of nulls."""
    file = tmp_path / "sink.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
        connection.execute("INSERT INTO t VALUES (1), (NULL)")
    left = {**topic(LEFT), "row": {"of": "value"}}
    right = {"kind": "table", "url": f"jdbc:sqlite:{file}", "table": "t"}
    for value, verdict in ((None, DIFFER), ('{"a":null}', AGREE)):
        topics = {LEFT: given('{"a":1}', value)}
        assert audit.run("topic-sink", topics, left=left, right=right).verdict is verdict, value


def test_times_of_a_table_are_those_of_its_zone(audit: RecordedAudit, tmp_path: Path) -> None:
    """Times without a zone are in the table's zone, also with named columns."""
    file = tmp_path / "sink.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE t (at TIMESTAMP)")
        connection.execute("INSERT INTO t VALUES ('2026-01-01 01:30:00')")
    table = {"kind": "table", "url": f"jdbc:sqlite:{file}", "table": "t", "zone": "Europe/Berlin"}
    topics = {LEFT: given(*(f'{{"at":"2026-01-01T{hour}:30:00Z"}}' for hour in ("00", "01")))}
    answer = audit.run("topic-sink", topics, left=topic(LEFT), right=table, columns=["at"])
    assert offsets(answer, "missing") == {1}


def test_repetitions_that_are_allowed_hide_no_foreign_row(
    audit: RecordedAudit, tmp_path: Path
) -> None:
    """Allowed repetitions do not push an extra row out of the kept findings."""
    sink, numbers = tmp_path / "sink.jsonl", range(30)
    lines = [f'{{"n":{n}}}' for n in numbers]
    sink.write_text("\n".join([*lines, *lines, '{"n":-1}']))
    right = {"kind": "files", "paths": [str(sink)], "format": "json"}
    members = {"left": topic(LEFT), "right": right, "duplicates_allowed": True, "findings": 1}
    answer = audit.run("topic-sink", {LEFT: given(*lines)}, **members)
    assert (answer.verdict, answer.rows("extra")) == (DIFFER, {61})


def test_rows_without_a_key_are_not_versions_of_one_key(audit: RecordedAudit) -> None:
    """Each different row without a key must exist, but how often is unknown."""
    sides = {"left": topic(LEFT), "right": topic(RIGHT), "mode": "upsert"}
    one, two, bad = Given(b'{"n":1}'), Given(b'{"n":2}'), Given(b"bad")
    for key in ("key", "json:id"):
        answer = audit.run("topic-topic", {LEFT: [one, two, bad], RIGHT: [two]}, **sides, key=key)
        assert (answer.verdict, answer.outcome.totals["missing"]) == (DIFFER, 2)
        answer = audit.run("topic-topic", {LEFT: [one, two], RIGHT: [two, one]}, **sides, key=key)
        assert (answer.verdict, answer.kinds()) == (UNKNOWN, {"keyless"})


def test_tombstones_whose_key_is_not_read_leave_the_answer_open(audit: RecordedAudit) -> None:
    """Tombstones are unknown with a key in values, because the removed key cannot be read."""
    records = [Given(b'{"id":1}', b'{"id":1}'), Given(None, b'{"id":1}'), Given(b'{"id":2}')]
    sides = {"left": topic(LEFT), "right": audit.parquet("SELECT id + 1 AS id FROM range(2)")}
    answer = audit.run("topic-sink", {LEFT: records}, **sides, mode="upsert", key="json:id")
    assert (answer.verdict, answer.kinds()) == (UNKNOWN, {"keyless"})


def test_keys_of_any_type_are_keys(audit: RecordedAudit) -> None:
    """A key is compared with the type of its column, also if its name has another case."""
    values = ['{"Id":"2024-01-02","n":1}', '{"Id":19725,"n":1}']
    query = "SELECT DATE'2024-01-02' AS id, 1L AS n UNION ALL SELECT DATE'2024-01-03', 2L"
    members = {"mode": "upsert", "key": "json:Id"}
    answer = beside_parquet(audit, values, query.replace("2L", "1L"), **members)
    assert (answer.verdict, answer.outcome.findings) == (AGREE, ())
    answer = beside_parquet(audit, values, query, **members)
    assert (answer.verdict, answer.kinds()) == (DIFFER, {"different"})
