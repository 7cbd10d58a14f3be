"""One audit of each kind, on seeded faults, for tests of places and releases that run audits."""

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from pyconnect_agent.builtin.converters.avro.converter import AvroConverter
from pyconnect_api import INT64_SCHEMA, SchemaBuilder, Struct
from tests.support.audits.seeding import Record, Seed, seed_topic
from tests.support.commands.reconcile_command import Ended

ORDER = SchemaBuilder.struct().name("com.example.Order").field("id", INT64_SCHEMA).build()
HOUR_MS = 3_600_000
NUMBER = r"regex:n=(\d+)"
Found = list[tuple[str, list[tuple[str | int, int]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededAudit:
    """The members of a spec, and the findings that the audit must report."""

    asked: Mapping[str, object]
    found: Found


def specs(
    audits: Sequence[SeededAudit], bootstrap: str, spark: Mapping[str, object]
) -> list[dict[str, object]]:
    """Return whole specs, which share a session of Spark."""
    where = {"version": 1, "clusters": {"main": {"bootstrap": bootstrap}}, "spark": dict(spark)}
    return [{**audit.asked, **where} for audit in audits]


def check(audits: Sequence[SeededAudit], runs: Sequence[Ended]) -> None:
    """Assert that each audit has a report with exactly its findings."""
    assert runs[0].code == 1, runs[0].err
    for audit, run in zip(audits, runs, strict=True):
        assert sorted(run.found) == sorted(audit.found), (audit.asked["job"], run.report)
        if audit.asked["job"] != "ranges":
            rows = parquet.read_table(run.directory / "findings" / "findings.parquet")
            assert run.report is not None
            assert rows.num_rows == run.report["findings_kept"]


def every_audit(bootstrap: str, registry_url: str, directory: Path) -> list[SeededAudit]:
    """Seed topics, files below `directory`, and a table; return an audit of each kind."""
    return [
        *_of_lines(bootstrap, directory),
        *_of_keys(bootstrap),
        _of_offsets(bootstrap),
        *_of_rows(bootstrap, directory),
        _of_avro(bootstrap, registry_url),
    ]


def topic_side(seed: Seed, **members: object) -> dict[str, object]:
    return {"kind": "topic", "topics": [seed.topic], **members}


def _files(file: Path, form: str = "text") -> dict[str, object]:
    return {"kind": "files", "paths": [str(file)], "format": form}


def _lines(texts: Sequence[str]) -> list[Record]:
    return [Record(text.encode()) for text in texts]


def _of_lines(bootstrap: str, directory: Path) -> list[SeededAudit]:
    """Seed a gap, an aborted transaction, a repetition, a lost and a foreign line."""
    seed = seed_topic(bootstrap, partitions=2)
    texts = [f"n={n}" for n in range(40) if n not in {7, 8}]
    seed.write(_lines(texts[:20]), outcome="commit")
    seed.write(_lines(["n=20", "n=21"]), outcome="abort")
    [again] = seed.write(_lines(["n=3"]))
    seed.write(_lines(texts[20:]), outcome="commit")
    source, sink = directory / "source.txt", directory / "sink.txt"
    source.write_text("".join(f"{text}\n" for text in [*texts, "n=40", "n=3"]))
    written = [text for text in [*texts, "n=3"] if text != "n=11"]
    sink.write_text("".join(f"{text}\n" for text in [*written, "foreign"]))
    topics, topic = [seed.topic], topic_side(seed)
    twice: list[tuple[str | int, int]] = [(0, texts.index("n=3")), again]
    return [
        SeededAudit(
            asked={"job": "sequence", "topics": topics, "sequence": NUMBER, "ordered": False},
            found=[("missing", []), ("repeated", twice)],
        ),
        SeededAudit(asked={"job": "duplicates", "topics": topics}, found=[("duplicate", twice)]),
        SeededAudit(asked={"job": "transactions", "topics": topics}, found=[]),
        SeededAudit(asked={"job": "ranges", "topics": topics}, found=[]),
        SeededAudit(
            asked={"job": "source-topic", "left": _files(source), "right": topic},
            found=[("missing", [("source.txt", len(texts) + 1)])],
        ),
        SeededAudit(
            asked={"job": "topic-sink", "left": topic, "right": _files(sink)},
            found=[
                ("extra", [("sink.txt", len(written) + 1)]),
                ("missing", [(0, texts.index("n=11"))]),
            ],
        ),
    ]


def _of_keys(bootstrap: str) -> list[SeededAudit]:
    """Seed a changed version, two records in another order, and a span without a record."""
    keyed, other, origin, copy, all_of, fewer = (seed_topic(bootstrap) for _ in range(6))
    keyed.write([Record(b"1", key=b"a"), Record(b"2", key=b"b")])
    other.write([Record(b"1", key=b"a"), Record(b"3", key=b"b")])
    for seed, order in ((origin, b"1235"), (copy, b"1325")):
        seed.write([Record(bytes([digit]), key=b"k") for digit in order])
    ended_ms = int(time.time() * 1000) - 2 * HOUR_MS
    for seed, count in ((all_of, 3), (fewer, 2)):
        seed.write([Record(b"x", timestamp_ms=ended_ms) for _ in range(count)])
    tiers = [{"name": side.topic, "side": topic_side(side)} for side in (all_of, fewer)]
    return [
        SeededAudit(
            asked={
                "job": "topic-topic",
                "left": topic_side(keyed),
                "right": topic_side(other),
                "mode": "upsert",
            },
            found=[("different", [(0, 1), (0, 1)])],
        ),
        SeededAudit(
            asked={
                "job": "topic-topic",
                "left": topic_side(origin),
                "right": topic_side(copy),
                "ordered": True,
            },
            found=[("disorder", [(0, 1), (0, 2)])],
        ),
        SeededAudit(asked={"job": "completeness", "tiers": tiers}, found=[("difference", [])]),
    ]


def _of_offsets(bootstrap: str) -> SeededAudit:
    """Seed an offset that went back."""
    worker = seed_topic(bootstrap, config={"cleanup.policy": "compact"})
    key = json.dumps(["c", {"file": "a"}]).encode()
    back = worker.write([Record(b'{"position":%d}' % n, key=key) for n in (90, 40)])
    asked = {"job": "offsets", "offsets": {"worker": worker.topic, "known": ["c"]}}
    return SeededAudit(asked=asked, found=[("regression", list(back))])


def _of_rows(bootstrap: str, directory: Path) -> list[SeededAudit]:
    """Seed nested JSON, members in any order, beside Parquet; and keys beside a SQLite table."""
    seed = seed_topic(bootstrap)
    rows = [{"id": n, "at": {"b": [n, None], "a": f"é{n}"}, "x": n / 4} for n in range(30)]
    seed.write(
        [Record(json.dumps(dict(reversed(row.items())), indent=n % 2).encode())
         for n, row in enumerate(rows)]
    )  # fmt: skip
    files, database = directory / "rows.parquet", directory / "rows.db"
    rows[4]["at"] = {"b": [4, None], "a": "e4"}
    parquet.write_table(pa.Table.from_pylist([*rows[:9], *rows[10:]]), files)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE rows (id INTEGER, x REAL)")
        kept = [(row["id"], row["x"]) for row in rows if row["id"] != 20]
        connection.executemany("INSERT INTO rows VALUES (?, ?)", [*kept[:7], (7, 9.5), *kept[8:]])
    left = topic_side(seed, value="json")
    table = {"kind": "table", "url": f"jdbc:sqlite:{database}", "table": "rows"}
    columns = [{"name": "id"}, {"name": "x"}]
    return [
        SeededAudit(
            asked={"job": "topic-sink", "left": left, "right": _files(files, "parquet")},
            found=[("extra", []), ("missing", [(0, 4)]), ("missing", [(0, 9)])],
        ),
        SeededAudit(
            asked={
                "job": "topic-sink",
                "left": left,
                "right": table,
                "mode": "upsert",
                "key": "json:id",
                "columns": columns,
            },
            found=[("different", [(0, 7)]), ("missing", [(0, 20)])],
        ),
    ]


def _of_avro(bootstrap: str, registry_url: str) -> SeededAudit:
    seed, avro = seed_topic(bootstrap), AvroConverter()
    avro.configure({"schema.registry.url": registry_url}, False)
    values = [Struct(ORDER).put("id", n) for n in (1, 2, 3, 5)]
    seed.write([Record(avro.from_connect_data(seed.topic, [], ORDER, each)) for each in values])
    avro.close()
    return SeededAudit(
        asked={
            "job": "sequence",
            "topics": [seed.topic],
            "sequence": "avro:id",
            "registries": {"main": {"url": registry_url}},
        },
        found=[("missing", [])],
    )
