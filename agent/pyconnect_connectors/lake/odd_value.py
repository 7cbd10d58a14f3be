"""A value that the type on the other side cannot hold, before its file and row are known."""

from __future__ import annotations

from pyconnect_api import SinkRecord
from pyconnect_connectors.odd_values import OddValueException, place_of


class OddValue(Exception):
    """A value that the type on the other side cannot hold; `column` is the path of its field."""

    def __init__(self, column: str, kind: str, target: str) -> None:
        super().__init__()
        self.column = column
        self.kind = kind
        self.target = target

    def within(self, name: str) -> OddValue:
        """Return the same for the value that holds the one of this field."""
        column = f"{name}.{self.column}" if self.column else name
        return OddValue(column, self.kind, self.target)

    def of(self, record: SinkRecord, place: str) -> OddValueException:
        """Return the error of a record; `place` is a file or table."""
        return OddValueException(
            place,
            column=self.column or "(value)",
            row=place_of(record),
            kind=self.kind,
            target=self.target,
        )
