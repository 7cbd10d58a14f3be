"""Rows that a reader of one format hands on, and the errors of rows and of whole files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyconnect_api import DataException, Schema
from pyconnect_connectors.odd_values import TOLERANCE, OddValueException, OddValues


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Consecutive rows of one schema; `bad`: errors by index, in whose place a value is no row."""

    schema: Schema | None
    values: Sequence[object]
    bad: Mapping[int, DataException] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The file that is read, and how.

    `begin` is the number of the first row to read. Rows are numbered from 0; texts call the first
    one "row 1", so that the number is that of the offset behind it.
    """

    path: str
    begin: int
    topic: str
    batch_rows: int
    odd_values: OddValues

    def odd(self, column: str, row: int, kind: str, target: str) -> OddValueException:
        return OddValueException(
            f"file {self.path}", column=column, row=f"row {row + 1}", kind=kind, target=target
        )

    def bad_row(self, row: int, problem: str) -> DataException:
        return DataException(
            f"Row {row + 1} of file {self.path} {problem}; "
            f"set {TOLERANCE}=all to go on without the row"
        )

    def check_length(self, rows: int) -> None:
        """Raise DataException for a file with fewer rows than were read of it."""
        if rows < self.begin:
            raise self.broken(
                f"it has {rows} rows, and {self.begin} were read of it before: a file that was "
                "replaced is read again after a reset of its offset"
            )

    def broken(self, problem: str, row: int | None = None) -> DataException:
        """Return the error of a file of which no further row can be read."""
        place = "" if row is None else f", row {row + 1}"
        return DataException(f"File {self.path}{place}: {problem}")
