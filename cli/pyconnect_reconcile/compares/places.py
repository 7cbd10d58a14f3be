"""The places of a compare's rows: offsets of topics, lines of files, keys of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.compares.sides import KEY_HASHES, LANE_BITS, Rows, line_of
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.file_side import FileSide
from pyconnect_reconcile.files import local_files, rows_of_lines
from pyconnect_reconcile.findings import Place
from pyconnect_reconcile.lookup import AT, places
from pyconnect_reconcile.spec import Side, TopicSide
from pyconnect_reconcile.table_side import TableSide
from pyconnect_reconcile.unparsable import SAMPLES, places_of_records
from pyconnect_reconcile.values.hashes import HASHES

Places = Mapping[tuple[object, ...], Sequence[Place]]


def identity_of(row: Row, names: Sequence[str]) -> tuple[object, ...]:
    return tuple(row[name] for name in names)


def copies_of(bench: Bench, rows: Rows, found: list[Row], name: str) -> Places:
    """Return the first places of rows that differ, by their HASHES."""
    if not found:
        return {}
    several = ("committed", "uncommitted") if name == "left" else ("there", "unsettled")
    if isinstance(rows.side, TopicSide) and all(
        sum(row[each] for each in several) == 1 and row[f"{name}_lane"] is not None for row in found
    ):
        places = places_in_topic(bench, rows.side, found, name)
        return {identity_of(row, HASHES): [place] for row, place in zip(found, places, strict=True)}
    wanted = bench.spark.createDataFrame(
        [identity_of(row, HASHES) for row in found], ", ".join(f"{name} bigint" for name in HASHES)
    )
    return places_of(rows, wanted, HASHES, bench.spec.findings)


def places_in_topic(bench: Bench, side: Side, rows: Sequence[Row], name: str) -> list[Place]:
    """Return the places in the columns NAME_lane and NAME_offset, with keys and times.

    Reads only the offsets from the first to the last place of each partition.
    """
    assert isinstance(side, TopicSide)
    wanted = [
        (
            side.topics[row[f"{name}_lane"] >> LANE_BITS],
            row[f"{name}_lane"] & (1 << LANE_BITS) - 1,
            row[f"{name}_offset"],
        )
        for row in rows
    ]
    if not wanted:
        return []
    offsets: dict[tuple[str, int], list[int]] = {}
    for topic, partition, offset in wanted:
        offsets.setdefault((topic, partition), []).append(offset)
    ranges = [
        replace(part, start=min(among), end=max(among) + 1)
        for part in bench.snapshot(side.topics, side.cluster).partitions
        if (among := offsets.get((part.topic, part.partition)))
    ]
    records = bench.records(ranges, isolation=side.isolation, cluster=side.cluster)
    frame = bench.spark.createDataFrame(wanted, "topic string, partition int, offset bigint")
    found = places(records, frame, AT)
    return [found[at][0] for at in wanted]


def places_of_strange(rows: Rows, strange: DataFrame) -> list[Place]:
    match rows.side:
        case TopicSide():
            return places_of_records(strange)
        case FileSide(format="text" | "json") as side:
            lines = strange.select(line_of(side).alias("line")).distinct().collect()
            found = _places_of_lines(rows, side, {bytes(row.line) for row in lines})
            return [place for places in found.values() for place in places][:SAMPLES]
        case FileSide() | TableSide():
            return []
    raise ReconcileError(f"a side of an unknown kind: {rows.side}")


def places_of(rows: Rows, wanted: DataFrame, on: Sequence[str], limit: int) -> Places:
    match rows.side:
        case TopicSide():
            return places(rows.rows, wanted, on, last=on is KEY_HASHES)
        case FileSide(format="text" | "json") as side:
            return _lines(rows, side, wanted, on, limit)
        case TableSide():
            named = rows.rows.where("NOT tail AND key IS NOT NULL")
            found = places(named, wanted, on, last=on is KEY_HASHES)
            return {
                row: [replace(place, table=rows.name) for place in where]
                for row, where in found.items()
            }
        case FileSide():
            return {}
    raise ReconcileError(f"a side of an unknown kind: {rows.side}")


def _lines(rows: Rows, side: FileSide, wanted: DataFrame, on: Sequence[str], limit: int) -> Places:
    """Find lines again in local files; their text stays here."""
    found = (
        rows.rows.join(sql.broadcast(wanted.select(*on).distinct()), list(on), "left_semi")
        .select(*on, line_of(side).alias("line"))
        .distinct()
        .limit(limit)
        .collect()
    )
    places = _places_of_lines(rows, side, {bytes(row.line) for row in found})
    return {identity_of(row, on): places[bytes(row.line)] for row in found}


def _places_of_lines(rows: Rows, side: FileSide, lines: set[bytes]) -> Mapping[bytes, list[Place]]:
    """Find lines in the files; what follows a committed part is not looked at."""
    copies = {str(copy): name for copy, name in rows.files.copies.items()}
    found = rows_of_lines(
        list(rows.files.copies) or local_files(rows.files.listed or side.paths), lines
    )
    return {
        line: [Place(file=copies.get(file, file), row=row) for file, row in where]
        for line, where in found.items()
    }
