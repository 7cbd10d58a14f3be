"""The outcome of each cell on a path: equal, refused, or a fault."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyconnect_api import DataException
from tests.connectors.matrix.columns import Cell
from tests.connectors.matrix.databases import grid
from tests.connectors.matrix.meanings import Kind, equal, to_milliseconds, without_schema
from tests.connectors.matrix.paths import (
    Message,
    MisstatedError,
    Source,
    Target,
    UnreadableError,
    own_meaning,
)
from tests.connectors.matrix.rules import SAME_TYPES, WITHOUT_SIGN_OF_ZERO, omitted, refusal
from tests.connectors.matrix.topics import TOPIC, Topic, through

_ROW = re.compile(r"\b(id=\d+|row \d+|matrix-0@\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`word` is equal, refused, unclear (an error without a place) or wrong (another value)."""

    word: str
    detail: str = ""


EQUAL = Outcome(word="equal")
Outcomes = dict[Cell, Outcome]


class Path:
    """A source, a topic and a target.

    `refused` keeps the values that the source refuses, which are not read for each target again.
    """

    def __init__(
        self, source: Source, topic: Topic, target: Target, refused: dict[Cell, Outcome]
    ) -> None:
        self.source = source
        self.topic = topic
        self.target = target
        self._refused = refused

    @property
    def name(self) -> str:
        return f"{self.source.name} -> {self.topic} -> {self.target.name}"

    def run(self, cells: Sequence[Cell]) -> Outcomes:
        """Return the outcome of each cell; cells that are likely to be equal run together."""
        tried = [c for c in cells if not omitted(c.column, self.topic, self.target.name)]
        found = {cell: self._refused[cell] for cell in tried if cell in self._refused}
        left = [cell for cell in tried if cell not in found]
        alone = [cell for cell in left if refusal(cell, self.topic, self.target.name)]
        alone += [cell for cell in left if cell.value.is_odd and cell not in alone]
        together = [cell for cell in left if cell not in alone]
        if together:
            found.update(self._split(together))
        for cell in alone:
            found.update(self._split([cell]))
        return found

    def faults(self, cells: Sequence[Cell]) -> list[str]:
        """Return a line for each cell whose outcome is not the promised one."""
        found = []
        for cell, outcome in self.run(cells).items():
            promised = refusal(cell, self.topic, self.target.name)
            if outcome.word != ("equal" if promised is None else "refused"):
                expected = "equal" if promised is None else f"refused ({promised.reason})"
                found.append(
                    f"{outcome.word:8} {cell.column.type} | {cell.value.name} | "
                    f"{outcome.detail} | expected: {expected}"
                )
        return found

    def _split(self, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Outcome]]:
        """Run cells together; after an error run each half, until a cell is alone."""
        try:
            messages = None
            messages = through(self.topic, self.source.read(cells))
            yield from self._together(cells, messages)
        except MisstatedError:
            raise
        except Exception as error:
            if len(cells) > 1:
                middle = len(cells) // 2
                yield from self._split(cells[:middle])
                yield from self._split(cells[middle:])
                return
            (cell,) = cells
            outcome = _of_error(error, cell)
            if messages is None:
                self._refused[cell] = outcome
            yield cell, outcome

    def _together(
        self, cells: Sequence[Cell], messages: Sequence[Message]
    ) -> list[tuple[Cell, Outcome]]:
        kinds: dict[str, Kind] = {}
        expected = []
        for column, found in grid(cells):
            for row, cell in enumerate(found):
                kind, meaning = self._meant(cell)
                kinds[column.name] = kind
                expected.append((cell, row, kind, meaning))
        rows = self.target.write(cells, messages, kinds)
        return list(_compared(expected, rows))

    def _meant(self, cell: Cell) -> tuple[Kind, object]:
        """Return the meaning that has to arrive."""
        is_same = self.target.name.endswith(SAME_TYPES)
        stated = own_meaning(cell) if is_same else cell.value.meaning
        kind, meaning = cell.column.kind, to_milliseconds(stated)
        # Texts such as NaN are those that a column of the same type takes for the number.
        if self.topic is Topic.PLAIN and not (is_same and isinstance(meaning, float)):
            kind, meaning = without_schema(kind, meaning, cell.column.scale)
            meaning = meaning if cell.value.plain is None else cell.value.plain
        if isinstance(meaning, float) and meaning == 0:
            keeps = not self.target.name.startswith(WITHOUT_SIGN_OF_ZERO)
            meaning = meaning if keeps else abs(meaning)
        return kind, meaning


def _compared(
    expected: Sequence[tuple[Cell, int, Kind, object]], rows: Sequence[Mapping[str, object]]
) -> Iterator[tuple[Cell, Outcome]]:
    for cell, row, kind, meaning in expected:
        if row >= len(rows):
            yield cell, Outcome(word="wrong", detail="the row is missing")
            continue
        found = rows[row][cell.column.name]
        if equal(kind, meaning, found):
            yield cell, EQUAL
        else:
            detail = f"{_short(found)} instead of {_short(meaning)}"
            yield cell, Outcome(word="wrong", detail=detail)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:100]}… ({len(text)} characters)"


def _of_error(error: BaseException, cell: Cell) -> Outcome:
    line = " ".join(f"{type(error).__name__}: {error}".split())
    if isinstance(error, UnreadableError):
        return Outcome(word="wrong", detail=line[:300])
    lacks = missing(error, cell)
    if lacks:
        return Outcome(word="unclear", detail=f"no {', '.join(lacks)} in: {line[:300]}")
    return Outcome(word="refused", detail=line[:300])


def missing(error: BaseException, cell: Cell) -> list[str]:
    """Return the parts of the one form of error that this error lacks."""
    text = str(error)
    given = str(cell.value.given).strip("'")
    lacks = []
    if not isinstance(error, DataException):
        lacks.append("DataException")
    # A database does not name the column of each value that it refuses, and a fault of JSON or CSV
    # is not in a column.
    has_column = "record matrix-0@" not in text and not re.search(
        r"is not JSON|, row \d+: (a quote|text)", text
    )
    if has_column and cell.column.name not in text:
        lacks.append("column")
    if not re.search(rf"table \S*({TOPIC}|t\d+)|[Ff]ile \S*(a\.|{TOPIC})", text):
        lacks.append("table or file")
    # MariaDB counts the rows of a statement.
    if _ROW.search(re.sub(r"at row \d+", "", text)) is None:
        lacks.append("row")
    is_kind = given in (cell.value.name, cell.value.refused)
    if len(given) > 3 and not is_kind and given in text.replace(cell.column.name, ""):
        lacks.append("secrecy of the value")
    return lacks


__all__ = ["EQUAL", "Message", "Outcome", "Outcomes", "Path", "missing"]
