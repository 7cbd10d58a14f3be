"""The columns of a compare: which side has them, where records have them, and their types."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, MapType, StructType

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.compares.loading import JSON_FORMS, require_microseconds
from pyconnect_reconcile.compares.sides import Rows, content_of, frame_of, records_of
from pyconnect_reconcile.data_sides import CORRUPT, DIRECTORY, HELD, TOKENS, FileSide
from pyconnect_reconcile.spec import AVRO, ColumnRule, TopicSide
from pyconnect_reconcile.values.canonical import token, token_names
from pyconnect_reconcile.values.kinds import NUMBER_TYPES, Compared, leaves_to_read
from pyconnect_reconcile.values.normal import (
    Columns,
    field_of,
    held_type,
    member_kinds,
    with_column_tokens,
)


def compared_columns(bench: Bench) -> Columns:
    """Return the columns that are compared: those of the spec, else those of the side with types.

    ReconcileError for a column that its side does not have, or of a type that is not comparable.
    """
    spec = bench.spec
    sides = [side for side in (spec.left, spec.right) if side is not None]
    wanted = {name for rule in spec.columns for name in (rule.name, rule.name.partition(".")[0])}
    frames = []
    for side in sides:
        if (frame := frame_of(bench, side)) is None:
            continue
        frames.append(frame)
        if isinstance(side, FileSide):
            fields = (each for each in frame.schema if not wanted or each.name in wanted)
            require_microseconds(bench, side, fields)
    untyped = any(isinstance(side, FileSide) and side.format == "csv" for side in sides)
    untold = not spec.columns or any(rule.type is None for rule in spec.columns)
    texts = untyped or any(
        field.metadata.get(HELD) == DIRECTORY for frame in frames for field in frame.schema
    )
    # The kinds that texts of files stand for, such as numbers where each record has a number.
    kinds = {
        name: next(iter(seen)) if len(seen) == 1 else "string"
        for side in sides
        if texts and untold and isinstance(side, TopicSide) and side.row is None
        for name, seen in members_of(bench, side).items()
    }
    return columns_of(frames, spec.columns, kinds, untyped=untyped)


def columns_of(
    frames: Sequence[DataFrame],
    rules: Sequence[ColumnRule] = (),
    kinds: Mapping[str, str] | None = None,
    *,
    untyped: bool = False,
) -> Columns:
    """Return the columns that rules name, else those of all frames; each frame must have them.

    `kinds` are the kinds that texts stand for: of all columns with `untyped`, else of the columns
    that are names of directories.
    """
    if not rules and frames:
        every = dict.fromkeys(name for frame in frames for name in frame.schema.names)
        names = [name for name in every if name not in {TOKENS, CORRUPT}]
        named: Sequence[ColumnRule] = [ColumnRule(name=name, path=name) for name in names]
    else:
        named = rules
    found = []
    for rule in named:
        held = None
        inside = None
        for frame in frames:
            column, type_ = field_of(frame, rule.name)
            token(column, type_)
            held = held_type(frame, rule.name)
            nests = isinstance(type_, ArrayType | MapType | StructType)
            inside = type_ if nests and leaves_to_read(type_) else None
        text = untyped or held == DIRECTORY
        known = (kinds or {}).get(rule.path) if text else held
        kind = rule.type or known or "string"
        found.append(
            Compared(
                rule=rule,
                kind="timestamp" if kind == "timestamp_ntz" else kind,
                untyped=text,
                held=None if text else held,
                nested=inside,
            )
        )
    return Columns(all=tuple(found), closed=not rules)


def members_of(bench: Bench, side: TopicSide) -> dict[str, frozenset[str]]:
    """Return the members of a topic's objects with the kinds of their values."""
    if side.value == AVRO:
        schemas = bench.schemas.of(side.topics, side.cluster)
        found: dict[str, frozenset[str]] = {}
        for kind in schemas.types.values():
            for field in kind if isinstance(kind, StructType) else ():
                name = field.dataType.simpleString()
                # The kind of a text that is compared with values of this type.
                others = {"boolean", "date", "timestamp", "timestamp_ntz"}
                stands = name if name in others else "string"
                if NUMBER_TYPES.fullmatch(name):
                    stands = "number"
                found[field.name] = found.get(field.name, frozenset()) | {stands}
        return found
    if side.value not in JSON_FORMS:
        return {}
    ranges = bench.snapshot(side.topics, side.cluster).partitions
    records = records_of(bench, side, ranges, with_tail=True)
    return member_kinds(content_of(bench, records, side, Columns()).frame)


def columns_of_records(bench: Bench, columns: Columns) -> tuple[Columns, tuple[str, ...]]:
    """Return the columns with the members that records have for them, and the names left out.

    A member may be written in another case than its column. A sink's column that no record has is
    left out; its name is returned if some row has a value in it.
    """
    spec = bench.spec
    topic = next((side for side in (spec.left, spec.right) if isinstance(side, TopicSide)), None)
    members = members_of(bench, topic) if topic is not None else {}
    if not members:
        return columns, ()
    known = {column.rule.path for column in columns.all}
    others: dict[str, list[str]] = {}
    for name in members.keys() - known:
        others.setdefault(name.lower(), []).append(name)
    fitted, absent = [], []
    for column in columns.all:
        similar = others.get(column.rule.path.lower(), [])
        if column.rule.path in members:
            fitted.append(column)
        elif len(similar) == 1:
            fitted.append(replace(column, rule=replace(column.rule, path=similar[0])))
        elif spec.job == "topic-sink" and columns.closed:
            absent.append(column.rule.name)
        else:
            fitted.append(column)
    if not fitted:
        return columns, ()
    return replace(columns, all=tuple(fitted)), with_values(bench, absent)


def columns_without_values(
    bench: Bench, left: Rows, right: Rows, columns: Columns
) -> tuple[str, ...]:
    """Return the paths of columns that no record has: both sides would agree, with only nulls."""
    rows = left if frame_of(bench, left.side) is None else right
    tokens = token_names(len(columns.all))
    if not {*tokens} <= {*rows.rows.columns}:
        return ()
    held = [f"{token} IS NOT NULL" for token in tokens]
    # Most often the first row has a value in each column.
    if not rows.rows.where(" AND ".join(held)).isEmpty():
        return ()
    counts = rows.rows.agg(*map(sql.count, tokens)).collect()[0]
    pairs = zip(columns.all, counts, strict=True)
    empty = [column.rule.path for column, count in pairs if not count]
    topic = next(each.side for each in (left, right) if isinstance(each.side, TopicSide))
    members = members_of(bench, topic) if empty else {}
    return tuple(path for path in empty if path not in members)


def with_values(bench: Bench, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns, among `names`, that have a value in some row of the side with types."""
    sides = (bench.spec.left, bench.spec.right)
    frames = [frame_of(bench, side) for side in sides if side is not None]
    frame = next((each for each in frames if each is not None), None)
    if not names or frame is None:
        return ()
    columns = [Compared(rule=ColumnRule(name=name, path=name), kind="string") for name in names]
    frame, tokens = with_column_tokens(frame, columns)
    [row] = frame.agg(*map(sql.count, tokens)).collect()
    return tuple(name for name, count in zip(names, row, strict=True) if count)
