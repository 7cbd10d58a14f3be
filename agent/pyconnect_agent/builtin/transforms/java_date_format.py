"""Moments as text in the way of `java.text.SimpleDateFormat`, and back.

Layer: builtin. Always UTC, English names, weeks that start on Sunday. Differs from Java's in that
the calendar is Gregorian before 1582 as well, and that reading is strict about what fields can
hold: 2024-02-30 is refused, where Java makes it the 1st of March. As Java's, reading stops where
the pattern ends: what follows in the text is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from operator import attrgetter

from pyconnect_agent.builtin.transforms.java_date_pattern import (
    MONTHS,
    WEEKDAYS,
    Literal,
    PatternField,
    date_pattern_elements,
)
from pyconnect_agent.builtin.transforms.java_date_reader import JavaDateReader
from pyconnect_api.logical import timestamp_from_milliseconds

_Part = Callable[[datetime], object]

_ATTRIBUTES = {"d": "day", "H": "hour", "m": "minute", "s": "second", "S": "microsecond"}
_CONSTANTS = {"G": "AD", "Z": "+0000", "X": "Z"}


class JavaDateFormat:
    """One pattern; serves any number of moments."""

    __slots__ = ("_attributes", "_microseconds", "_parts", "_reader", "_template", "pattern")

    def __init__(self, pattern: str) -> None:
        """Compile the pattern; ValueError with Java's text if it is wrong."""
        self.pattern = pattern
        elements = date_pattern_elements(pattern)
        fields = [element for element in elements if isinstance(element, PatternField)]
        self._template = "".join(map(_template, elements))
        fields = [field for field in fields if _constant(field) is None]
        # Plain attributes are read by one call in C.
        names = [_attribute(field) for field in fields]
        plain = [name for name in names if name is not None]
        self._attributes = attrgetter(*plain) if 1 < len(plain) == len(fields) else None
        self._microseconds = tuple(
            position for position, field in enumerate(fields) if field.letter == "S"
        )
        self._parts = tuple(map(_part, fields))
        self._reader: JavaDateReader | None = None

    def text(self, milliseconds: int) -> str:
        """Return the text of milliseconds since the epoch; DataException beyond years 1 to 9999."""
        moment = timestamp_from_milliseconds(milliseconds)
        if self._attributes is not None:
            values = self._attributes(moment)
            if not self._microseconds:
                return self._template % values
            changed = list(values)
            for position in self._microseconds:
                changed[position] //= 1000
            return self._template % tuple(changed)
        return self._template % tuple([part(moment) for part in self._parts])

    def milliseconds(self, text: str) -> int:
        """Return the milliseconds since the epoch of a text; DataException if it does not match."""
        if self._reader is None:
            self._reader = JavaDateReader(self.pattern)
        return self._reader.milliseconds(text)


def _template(element: PatternField | Literal) -> str:
    if isinstance(element, Literal):
        return element.text.replace("%", "%%")
    constant = _constant(element)
    if constant is not None:
        return constant
    if not element.is_numeric:
        return "%s"
    if element.letter in {"y", "Y"} and element.count == 2:
        return "%02d"
    return f"%0{element.count}d"


def _constant(field: PatternField) -> str | None:
    """Return the text of a field that is the same for all moments in UTC, None for others."""
    if field.letter == "z":
        return "Coordinated Universal Time" if field.count >= 4 else "UTC"
    return _CONSTANTS.get(field.letter)


def _attribute(field: PatternField) -> str | None:
    if field.letter == "y":
        return None if field.count == 2 else "year"
    if field.letter in {"M", "L"}:
        return "month" if field.is_numeric else None
    return _ATTRIBUTES.get(field.letter)


def _part(field: PatternField) -> _Part:
    attribute = _attribute(field)
    if attribute is not None and field.letter != "S":
        return attrgetter(attribute)
    long = field.count >= 4
    match field.letter:
        case "y":
            return lambda moment: moment.year % 100
        case "Y" if field.count == 2:
            return lambda moment: _week_year(moment) % 100
        case "M" | "L":
            names = MONTHS if long else tuple(name[:3] for name in MONTHS)
            return lambda moment: names[moment.month - 1]
        case "E":
            days = WEEKDAYS if long else tuple(name[:3] for name in WEEKDAYS)
            return lambda moment: days[moment.weekday()]
    return _PARTS[field.letter]


def _week_year(moment: datetime) -> int:
    """Return the year the week belongs to: the next one's, if it contains the 1st of January."""
    is_last_week = moment.month == 12 and moment.day - _days_since_sunday(moment) + 6 > 31
    return moment.year + 1 if is_last_week else moment.year


def _week_of_year(moment: datetime) -> int:
    if _week_year(moment) > moment.year:
        return 1
    return _week_counted_from_first(moment, moment.timetuple().tm_yday)


def _week_counted_from_first(moment: datetime, day: int) -> int:
    """Return the number of the week; the one with day 1 is the first, even if incomplete."""
    first_days_since_sunday = (_days_since_sunday(moment) - day + 1) % 7
    return (day - 1 + first_days_since_sunday) // 7 + 1


def _days_since_sunday(moment: datetime) -> int:
    return moment.isoweekday() % 7


_PARTS: dict[str, _Part] = {
    "Y": _week_year,
    "w": _week_of_year,
    "W": lambda moment: _week_counted_from_first(moment, moment.day),
    "D": lambda moment: moment.timetuple().tm_yday,
    "F": lambda moment: (moment.day - 1) // 7 + 1,
    "u": lambda moment: moment.isoweekday(),
    "a": lambda moment: "AM" if moment.hour < 12 else "PM",
    "k": lambda moment: moment.hour or 24,
    "K": lambda moment: moment.hour % 12,
    "h": lambda moment: moment.hour % 12 or 12,
    "S": lambda moment: moment.microsecond // 1000,
}
