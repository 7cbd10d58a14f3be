"""Batches of records between this process and a Java process."""

import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.java_processes.frames import (
    JavaSourceRecords,
    decode_source,
    encode_sink,
    json_bytes,
    pack_headers,
    unpack_headers,
)

HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=4)
BYTES = st.none() | st.binary(max_size=8)


@given(HEADERS)
def test_headers_survive(headers: list[tuple[str, bytes | None]]) -> None:
    assert unpack_headers(pack_headers(headers)) == headers


@given(st.lists(st.tuples(st.integers(0, 2), BYTES, BYTES, BYTES), min_size=1, max_size=20))
def test_columns_of_a_source(
    rows: list[tuple[int, bytes | None, bytes | None, bytes | None]],
) -> None:
    """Columns written in the form of the Java process are read back equal."""
    batch = decode_source(memoryview(payload(rows)))
    assert batch.topics == [f"t{place}" for place, *_ in rows]
    assert batch.places == [place for place, *_ in rows]
    offsets = [offset for _, offset, _, _ in rows]
    assert (list(batch.offsets), batch.offsets[-1]) == (offsets, offsets[-1])
    assert batch.offsets[1:5] == offsets[1:5]
    assert batch.keys == [key for _, _, key, _ in rows]
    assert batch.values == [value for *_, value in rows]
    assert batch.timestamps == list(range(len(rows)))
    assert batch.headers is None


def test_columns_for_a_sink() -> None:
    """The columns are the bytes that the Java process reads, in its order."""
    batch = encode_sink(
        names=["b", "a"],
        topics=["b", "a", "b"],
        partitions=[1, 2, 3],
        offsets=[10, 20, 30],
        timestamps=[100, -1, 300],
        types=[1, 0, 2],
        keys=[None, None, None],
        values=[b"ab", None, b"c"],
        headers=[None, None, None],
    )
    (length,) = struct.unpack_from("<I", data := b"".join(batch.payload(first=7, kept=[])))
    columns = data[4 + length :]
    assert columns == (
        struct.pack("<3i3i", 0, 1, 0, 1, 2, 3)
        + struct.pack("<3q3q", 10, 20, 30, 100, -1, 300)
        + bytes([1, 0, 2])
        + struct.pack("<3i", 2, -1, 1)
        + b"abc"
    )
    assert b'"keys":null' in data
    assert b'"values":3' in data


def test_slices_of_records() -> None:
    """A part of a poll has the same record objects as the whole."""
    rows: list[Any] = [(0, b'{"n":%d}' % n, b"k", b"v") for n in range(4)]
    facts = {"dropped": [1], "failures": [{"row": 2}], "first": 10}
    records = JavaSourceRecords.of(decode_source(memoryview(payload(rows, **facts))))
    third = records[2]
    part = records[1:]
    assert part[1] is third
    assert (part.dropped, part.failures) == (frozenset({0}), {1: {"row": 2}})
    numbers = [record.number for record in part]  # type: ignore[attr-defined]  # a JavaSourceRecord
    assert numbers == [11, 12, 13]
    assert part.by_partition() == [({"place": 0}, {"n": 3}, range(3))]
    assert list(records.at([0, 3]).numbers) == [10, 13]


def test_a_failed_record_is_shown_as_java_shows_it() -> None:
    """A failed record is shown with Java's text, as Python does not have its key and value."""
    failures = [{"row": 0, "record": "SourceRecord{value=bad}"}, {"row": 1}]
    rows: list[Any] = [(0, b'{"n":%d}' % n, None, None) for n in range(2)]
    records = JavaSourceRecords.of(decode_source(memoryview(payload(rows, failures=failures))))
    assert str(records[0]) == "SourceRecord{value=bad}"
    assert "'n': 1" in str(records[1])


def test_records_by_their_source_partitions() -> None:
    rows: list[Any] = [
        (place, b'{"n":%d}' % n, None, b"") for n, place in enumerate([2, 0, 2, 0, 0])
    ]
    records = JavaSourceRecords.of(decode_source(memoryview(payload(rows))))
    expected = [({"place": 2}, {"n": 2}, [0, 2]), ({"place": 0}, {"n": 4}, [1, 3, 4])]
    assert records.by_partition() == expected


def payload(rows: list[tuple[int, bytes | None, bytes | None, bytes | None]], **more: Any) -> bytes:
    """Write records as the Java process does."""
    offsets, keys, values = ([row[column] for row in rows] for column in (1, 2, 3))
    blobs = {"offsets": offsets, "keys": keys, "values": values}
    facts = json_bytes(
        {
            "count": len(rows),
            "topics": ["t0", "t1", "t2"],
            "places": [{"place": place} for place in range(3)],
            "headers": False,
            **{name: any(value is not None for value in blob) for name, blob in blobs.items()},
            **more,
        }
    )
    parts = [struct.pack("<I", len(facts)), facts]
    parts += [struct.pack("<3i", place, place, -1) for place, *_ in rows]
    parts += [struct.pack("<q", number) for number in range(len(rows))]
    return b"".join([*parts, *(blob_of(blob) for blob in blobs.values())])


def blob_of(values: list[bytes | None]) -> bytes:
    if all(value is None for value in values):
        return b""
    ends, end = [], 0
    for value in values:
        end += len(value or b"")
        ends.append(~end if value is None else end)
    return struct.pack(f"<{len(ends)}i", *ends) + b"".join(value or b"" for value in values)
