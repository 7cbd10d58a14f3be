"""The image of an offset topic."""

import json
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.internal_topics.offsetlog import OffsetLog
from tests.support.cases import cases

DB_TABLE = b'["c",{"db":"d","table":"t"}]'
TABLE_DB = b'["c",{"table":"t","db":"d"}]'


@pytest.fixture
def log() -> OffsetLog:
    return OffsetLog()


def test_a_tombstone_removes_by_raw_key(log: OffsetLog) -> None:
    """As in compaction, a tombstone leaves an equal partition with other bytes."""
    log.apply(DB_TABLE, b"1")
    log.apply(TABLE_DB, b"2")
    log.apply(DB_TABLE, None)
    assert log.entries() == {TABLE_DB: b"2"}
    assert log.connector_entries("c") == {TABLE_DB: b"2"}
    log.apply(TABLE_DB, None)
    assert log.connector_entries("c") == {}


def test_a_lookup_prefers_the_exact_bytes_then_the_newest(log: OffsetLog) -> None:
    """Without the exact key the newest value by timestamp counts, as partitions have no order."""
    log.apply(DB_TABLE, b"exact", 1)
    log.apply(TABLE_DB, b"newer", 2)
    assert log.lookup(DB_TABLE) == b"exact"
    log.apply(b'["c",{"b":1,"a":2,"x":null}]', b"new", 20)
    log.apply(b'["c",{"x":null,"a":2,"b":1}]', b"old", 10)
    assert log.lookup(b'["c",{"a":2,"b":1,"x":null}]') == b"new"
    assert log.lookup(b'["d",{"a":2,"b":1,"x":null}]') is None


@cases("other", b'["c",{"a":1.0}]', b'["c",{"a":true}]', b'["c",{"a":"1"}]')
def test_values_of_other_types_are_other_partitions(log: OffsetLog, other: bytes) -> None:
    """1, 1.0, true and "1" are different values, as in Java's maps."""
    log.apply(b'["c",{"a":1}]', b"v")
    assert log.lookup(other) is None


def test_writes_leave_one_live_key_that_is_in_use(log: OffsetLog) -> None:
    """The newest key in use gets the last value, so that a Java connector finds its own bytes."""
    assert log.plan_write([(DB_TABLE, b"1"), (TABLE_DB, b"2")]) == ((DB_TABLE, b"2"),)
    log.apply(TABLE_DB, b"1")
    assert log.plan_write([(DB_TABLE, b"2")]) == ((TABLE_DB, b"2"),)
    assert log.plan_write([(DB_TABLE, None)]) == ((TABLE_DB, None),)
    log.apply(TABLE_DB, b"1", 10)
    log.apply(DB_TABLE, b"2", 20)
    assert set(log.plan_write([(TABLE_DB, b"3")])) == {(DB_TABLE, b"3"), (TABLE_DB, None)}
    assert set(log.plan_write([(TABLE_DB, None)])) == {(DB_TABLE, None), (TABLE_DB, None)}


def test_a_null_partition_is_an_entry_of_its_connector(log: OffsetLog) -> None:
    """Sources without partitions have a null partition."""
    assert log.apply(b'["c",null]', b"1") == ()
    assert log.lookup(b'["c", null]') == b"1"
    assert log.connector_entries("c") == {b'["c",null]': b"1"}


@cases("key", b"{", b"\xff", b"{}", b'["c"]', b'["c",{},1]', b"[1,{}]", b'["c",[]]', b'["c","x"]')
def test_a_foreign_key_is_kept_by_its_bytes_and_noticed(log: OffsetLog, key: bytes) -> None:
    """A key that cannot be read belongs to no connector, and its bytes still find the value."""
    (notice,) = log.apply(key, b"1")
    assert notice.detail
    assert log.lookup(key) == b"1"
    assert log.connector_entries("c") == {}
    assert log.plan_write([(key, b"2")]) == ((key, b"2"),)


def test_a_null_key_is_noticed(log: OffsetLog) -> None:
    """A record without a key is ignored with a notice."""
    assert len(log.apply(None, b"1")) == 1
    assert log.entries() == {}


@given(st.text(), st.text(), st.text())
def test_whitespace_and_escapes_in_a_key_mean_nothing(connector: str, name: str, text: str) -> None:
    """An entry is found under any JSON form of its key, cut or parsed."""
    key = [connector, {name: text}]
    log = OffsetLog()
    log.apply(json.dumps(key, separators=(",", ":"), ensure_ascii=False).encode(), b"1")
    assert log.lookup(json.dumps(key).encode()) == b"1"
    assert len(log.connector_entries(connector)) == 1


def test_a_key_is_live_once_however_often_it_is_written(log: OffsetLog) -> None:
    """Among keys of equal content, the newest value decides the order."""
    for number, key in enumerate((DB_TABLE, TABLE_DB, DB_TABLE, TABLE_DB, DB_TABLE)):
        log.apply(key, b"%d" % number, number)
    assert log.keys_in_use(b'["c", {"db":"d","table":"t"}]') == (DB_TABLE, TABLE_DB)
    log.apply(DB_TABLE, None)
    assert log.keys_in_use(DB_TABLE) == (TABLE_DB,)


partitions = st.dictionaries(
    st.sampled_from("abc"), st.sampled_from([None, 0, 1, 1.0, True, "1", "x"]), max_size=3
)


@st.composite
def raw_keys(draw: st.DrawFn) -> bytes:
    members = draw(st.permutations(list(draw(partitions).items())))
    connector = draw(st.sampled_from(["c", "d"]))
    return json.dumps([connector, dict(members)], separators=(",", ":")).encode()


@given(
    st.lists(
        st.tuples(
            raw_keys(), st.one_of(st.none(), st.binary(min_size=1, max_size=2)), st.integers(0, 5)
        ),
        max_size=25,
    ),
    raw_keys(),
    st.one_of(st.none(), st.just(b"written")),
)
def test_after_a_write_every_order_finds_it_under_one_live_key(
    history: list[tuple[bytes, bytes | None, int]], key: bytes, value: bytes | None
) -> None:
    """A written offset is found under any order of members, whatever was on the topic before."""
    log = OffsetLog()
    for record in history:
        log.apply(*record)
    before = log.entries()
    plan = log.plan_write([(key, value)])
    for record in plan:
        log.apply(*record, 9)
    connector, partition = json.loads(key)
    live = [
        raw
        for raw in log.entries()
        if (found := json.loads(raw))[0] == connector
        and json.dumps(found[1], sort_keys=True) == json.dumps(partition, sort_keys=True)
    ]
    assert len(live) == (0 if value is None else 1)
    for order in permutations(partition.items()):
        reordered = json.dumps([connector, dict(order)], separators=(",", ":")).encode()
        assert log.lookup(reordered) == value
    touched = {record.key for record in plan}
    expected = {k: v for k, v in log.entries().items() if k not in touched}
    assert {k: v for k, v in before.items() if k not in touched} == expected


@given(st.lists(st.tuples(raw_keys(), st.one_of(st.none(), st.just(b"v"))), max_size=25))
def test_entries_are_what_compaction_leaves(history: list[tuple[bytes, bytes | None]]) -> None:
    """The image has the entries that compaction leaves, by key and by connector."""
    log = OffsetLog()
    for record in history:
        log.apply(*record)
    compacted = {key: value for key, value in dict(history).items() if value is not None}
    assert log.entries() == compacted
    for connector in ("c", "d"):
        assert log.connector_entries(connector) == {
            key: value for key, value in compacted.items() if json.loads(key)[0] == connector
        }
