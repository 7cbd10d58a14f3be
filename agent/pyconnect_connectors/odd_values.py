"""Values outside the range of a type: one setting and one form of error for all connectors here.

A value is odd when one side has it and the other side's type does not: PostgreSQL's `infinity` or a
year 10000 for a Timestamp, a zero date of MariaDB, NaN for a Decimal, a text in a column of numbers
of SQLite, a date of Parquet beyond the year 9999, NaN in a target that has no NaN.

How a connector uses it:

1. `define_odd_values` adds the setting `values.out.of.range`. Sources have all three policies,
   sinks `fail` and `null`.
2. The schema is decided before any row is read, by the policy and the types of the columns. It
   never depends on a value, so that it stays the same:
   - `fail`: the schema of the column's type.
   - `null`: the same, but optional where the type may hold odd values. Columns of a key keep
     their schema, and an odd value in one of them is an error: null would make two keys one.
   - `text`: each column whose type may hold odd values is an optional or required string for all
     of its rows, in the form in which the source writes them.
3. With `fail` (and for keys) an odd value raises `OddValueException`. The rows before it are
   delivered first. With `errors.tolerance=all` (`tolerates_errors`) a source leaves the row out,
   logs the error as one warning and goes on; a sink gives the record and the error to the errant
   record reporter.

The error names the table or file, the column, the row or key and the kind of the value, and never
contains the value itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from pyconnect_api import ConfigDef, DataException, Schema, SinkRecord, ValidString
from pyconnect_api.configdef import define_table

OUT_OF_RANGE = "values.out.of.range"
TOLERANCE = "errors.tolerance"

_SOURCE = """
values.out.of.range  STRING  MEDIUM  fail
    What happens to a value that the type of its field cannot hold, such as infinity, a zero date,
    a year after 9999 or NaN in a decimal. fail: the task fails with an error that names the row;
    with errors.tolerance=all the row is left out and logged. null: the value becomes null.
    text: all columns whose type may hold such values are read as texts.
"""
_SINK = """
values.out.of.range  STRING  MEDIUM  fail
    What happens to a value that the type of its column cannot hold, such as NaN in a database that
    has none. fail: the record is not deliverable; with errors.tolerance=all it goes to the dead
    letter queue, if there is one. null: the value becomes null, unless it is part of a key.
"""


class OddValues(StrEnum):
    """The policy for a value that a type cannot hold."""

    FAIL = "fail"
    NULL = "null"
    TEXT = "text"


class OddValueException(DataException):
    """A value that the type on the other side cannot hold.

    `place` is "table NAME" or "file PATH"; `row` is "id=7", "row 7" or "topic-0@7"; `kind` is a
    noun phrase such as "infinity" or "a year after 9999"; `target` names the type that cannot
    hold it, such as "Timestamp" or "DATE". None of them contains the value.
    """

    def __init__(
        self, place: str, *, column: str, row: str, kind: str, target: str, is_key: bool = False
    ) -> None:
        way_out = "correct the row, or " if is_key else f"set {OUT_OF_RANGE}=null, or "
        super().__init__(
            f"Column {column} of {place}, {row}: {kind} does not fit {target}; {way_out}"
            f"set {TOLERANCE}=all to go on without the row"
        )
        self.place = place
        self.column = column
        self.row = row
        self.kind = kind


def define_odd_values(definition: ConfigDef, *, texts: bool) -> ConfigDef:
    """Add the setting; `texts`: whether the policy `text` is offered, as sources do."""
    policies = [policy for policy in OddValues if texts or policy is not OddValues.TEXT]
    table = _SOURCE if texts else _SINK
    return define_table(definition, table, {OUT_OF_RANGE: ValidString.one_of(*policies)})


def tolerates_errors(props: Mapping[str, object]) -> bool:
    """Return whether a task goes on after a row that it cannot read (`errors.tolerance=all`)."""
    return str(props.get(TOLERANCE, "none")).lower() == "all"


def place_of(record: SinkRecord) -> str:
    """Return a record's place in Kafka as topic-partition@offset."""
    topic, partition = record.original_topic, record.original_kafka_partition
    return f"{topic}-{partition}@{record.original_kafka_offset}"


def required_default(schema: Schema) -> object:
    """Return the meaning of null in a sink: the default of a required field, else None."""
    return None if schema.optional else schema.default


class OddValue(Exception):
    """A value that the type on the other side cannot hold; `column` is the path of its field."""

    def __init__(self, column: str, kind: str, target: str) -> None:
        super().__init__()
        self.column = column
        self.kind = kind
        self.target = target

    def within(self, name: str) -> OddValue:
        """Return the same error for the value that contains this field."""
        column = f"{name}.{self.column}" if self.column else name
        return OddValue(column, self.kind, self.target)

    def of(self, record: SinkRecord, place: str) -> OddValueException:
        """Return the exception for a record; `place` is a file or table."""
        return OddValueException(
            place,
            column=self.column or "(value)",
            row=place_of(record),
            kind=self.kind,
            target=self.target,
        )
