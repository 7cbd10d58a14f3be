"""Moments as text in the way of `java.text.SimpleDateFormat`, and back.

Always UTC, English names, weeks that start on Sunday. Differs from Java's in that the calendar is
Gregorian before 1582 as well, and that reading is strict about what fields can hold: 2024-02-30 is
refused, where Java makes it the 1st of March. As in Java, reading stops where the pattern ends, and
the rest of the text is ignored.

As in Java, numbers that are read may be preceded by blanks; a number has any count of digits unless
another number follows at once; a year of two digits lies between 80 years before and 20 years after
now; names match in any case. Negative values are refused.

In a pattern, letters are fields, text between quotes and everything else stands for itself, two
quotes are one quote.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from operator import attrgetter

from pyconnect_agent.builtin.transforms.java_zone_names import ZoneName, zone_names
from pyconnect_api import DataException
from pyconnect_api.logical import (
    MILLISECONDS_PER_DAY,
    date_to_days,
    timestamp_from_milliseconds,
    timestamp_to_milliseconds,
)

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
"""The names are in the order of `date.weekday()`."""

_FIELD_LETTERS = frozenset("GyYMLwWDdFEuaHkKhmsSzZX")
_TEXT_LETTERS = frozenset("GEazZX")
_TOKEN = re.compile(
    r"(?P<field>([A-Za-z])\2*)|'(?P<quoted>(?:[^']|'')+)'|(?P<quote>'')|(?P<open>')|(?P<plain>[^A-Za-z']+)"
)


@dataclass(frozen=True, slots=True)
class PatternField:
    """A letter and the number of its repetitions."""

    letter: str
    count: int

    @property
    def is_numeric(self) -> bool:
        """Whether it is written in digits; months of three letters or more are words."""
        if self.letter in {"M", "L"}:
            return self.count <= 2
        return self.letter not in _TEXT_LETTERS


@dataclass(frozen=True, slots=True)
class Literal:
    """Text that stands for itself."""

    text: str


def date_pattern_elements(pattern: str) -> tuple[PatternField | Literal, ...]:
    """Return the elements of a pattern; raise ValueError with Java's text for a wrong pattern."""
    elements: list[PatternField | Literal] = []
    for match in _TOKEN.finditer(pattern):
        if match["field"]:
            letter = match["field"][0]
            if letter not in _FIELD_LETTERS:
                raise ValueError(f"Illegal pattern character '{letter}'")
            field = PatternField(letter, len(match["field"]))
            if letter == "X" and field.count > 3:
                raise ValueError(f"invalid ISO 8601 format: length={field.count}")
            elements.append(field)
        elif match["open"]:
            raise ValueError("Unterminated quote")
        else:
            quoted = match["quoted"]
            text = "'" if match["quote"] else match["plain"] or quoted.replace("''", "'")
            elements.append(Literal(text))
    return tuple(elements)


_NOT_READABLE = "WF"
_ZONE_LETTERS = "zZX"
_RANGES = {
    "w": (1, 53),
    "D": (1, 366),
    "u": (1, 7),
    "H": (0, 23),
    "k": (1, 24),
    "K": (0, 11),
    "h": (1, 12),
    "m": (0, 59),
    "s": (0, 59),
    "S": (0, 999),
}
_ISO_ZONES = {1: r"Z|[+-]\d\d", 2: r"Z|[+-]\d{4}", 3: r"Z|[+-]\d\d:\d\d"}
_OFFSET = re.compile(r"([+-])(\d{1,2}):?(\d\d)?$")


class JavaDateReader:
    """The reader for one pattern, for any number of texts."""

    __slots__ = ("_century_start", "_fields", "_pattern", "_regex")

    def __init__(self, pattern: str) -> None:
        """Compile the pattern; raise DataException for letters that can only be written."""
        self._pattern = pattern
        elements = date_pattern_elements(pattern)
        self._fields = tuple(element for element in elements if isinstance(element, PatternField))
        if any(field.letter in _NOT_READABLE for field in self._fields):
            raise DataException(
                f"Timestamps of the pattern ({pattern}) can be written but not read: "
                "the letters F and W do not determine a day"
            )
        following = (*elements[1:], Literal(""))
        self._regex = re.compile(
            "".join(
                _regex_of(element, after)
                for element, after in zip(elements, following, strict=False)
            )
        )
        today = datetime.now(UTC)
        day = min(today.day, 28) if today.month == 2 else today.day
        self._century_start = today.replace(year=today.year - 80, day=day)

    def milliseconds(self, text: str) -> int:
        """Return milliseconds since the epoch; a DataException does not show the text."""
        match = self._regex.match(text)
        if match is None:
            raise DataException(
                f"Could not parse timestamp: value does not match pattern ({self._pattern})"
            )
        try:
            found = {
                field.letter: self._value(field, group.strip(" \t"))
                for field, group in zip(self._fields, match.groups(), strict=True)
            }
            zone = None
            for field, group in zip(self._fields, match.groups(), strict=True):
                if field.letter in "zZ":
                    zone = zone_names().get(group.strip(" \t").upper())
                    break
            milliseconds = _milliseconds(found, zone)
            # A year of two digits may be 80 years ago, but on an earlier day.
            if (
                found.get("y") == self._century_start.year
                and any(field.letter == "y" and field.count <= 2 for field in self._fields)
                and milliseconds < timestamp_to_milliseconds(self._century_start)
            ):
                milliseconds = _milliseconds({**found, "y": found["y"] + 100}, zone)
            return milliseconds
        except (ValueError, OverflowError):
            # The cause's text would show a part of the value.
            raise DataException(
                "Could not parse timestamp: value matches pattern "
                f"({self._pattern}), but not every field is in its range"
            ) from None

    def _value(self, field: PatternField, text: str) -> int:
        """Return the number of a field's text; raise ValueError if it is out of range."""
        match field.letter:
            case "y" | "Y":
                year = int(text)
                if field.count <= 2 and len(text) == 2:
                    # The year is the one 80 years ago, or a later one.
                    start = self._century_start.year
                    year += start - start % 100
                    return year if year >= start else year + 100
                return year
            case "M" | "L" if not field.is_numeric:
                return _position(MONTHS, text) + 1
            case "E":
                return _position(WEEKDAYS, text) + 1
            case "a":
                return int(text.upper() == "PM")
            case "G":
                if text.upper() != "AD":
                    raise ValueError("years before the first are not supported")
                return 1
            case "z" | "Z" | "X":
                # The result is a number's offset from UTC in milliseconds.
                if (offset := _OFFSET.search(text)) is None:
                    return 0
                sign, hour, minute = offset.groups("0")
                if int(hour) > 23 or int(minute) > 59:
                    raise ValueError("the zone's offset is out of range")
                milliseconds = (int(hour) * 60 + int(minute)) * 60_000
                return -milliseconds if sign == "-" else milliseconds
        number = int(text)
        lowest, highest = _RANGES.get(field.letter, (number, number))
        if not lowest <= number <= highest:
            raise ValueError(f"{field.letter} is out of range")
        return number


def _regex_of(element: PatternField | Literal, following: PatternField | Literal) -> str:
    if isinstance(element, Literal):
        return re.escape(element.text)
    if element.is_numeric and isinstance(following, PatternField) and following.is_numeric:
        # Right before another number, a number has at most `count` characters with its blanks, and
        # `count` characters must be left.
        count = element.count
        choices = (rf"[ \t]{{{blanks}}}[0-9]{{1,{count - blanks}}}+" for blanks in range(count))
        return rf"(?=(?s:.{{{count}}}))({'|'.join(choices)})"
    # Java skips blanks before numbers and zones, but not before other words.
    blanks = r"[ \t]*+" if element.is_numeric or element.letter in _ZONE_LETTERS else ""
    return rf"{blanks}({_content_of(element)})"


def _content_of(field: PatternField) -> str:
    match field.letter:
        case "M" | "L" if not field.is_numeric:
            return _any_of([*MONTHS, *(name[:3] for name in MONTHS)])
        case "E":
            return _any_of([*WEEKDAYS, *(name[:3] for name in WEEKDAYS)])
        case "a":
            return _any_of(["AM", "PM"])
        case "G":
            return _any_of(["AD", "BC"])
        case "z" | "Z":
            names = "|".join(map(re.escape, zone_names()))
            return rf"[+-]\d{{4}}|(?i:GMT)(?:[+-]\d{{1,2}}:\d\d|(?![+-]))|(?i:(?!GMT)(?>{names}))"
        case "X":
            return _ISO_ZONES[field.count]
    return "[0-9]++"


def _any_of(names: list[str]) -> str:
    longest_first = sorted(names, key=len, reverse=True)
    return f"(?i:{'|'.join(map(re.escape, longest_first))})"


def _position(names: tuple[str, ...], text: str) -> int:
    return [name[:3].lower() for name in names].index(text[:3].lower())


def _milliseconds(found: Mapping[str, int], zone: ZoneName | None) -> int:
    """Return the milliseconds since the epoch for the fields."""
    if "H" in found or "k" in found:
        hour = found.get("H", found.get("k", 0) % 24)
    else:
        hour = found.get("K", found.get("h", 0) % 12) + 12 * found.get("a", 0)
    seconds = (hour * 60 + found.get("m", 0)) * 60 + found.get("s", 0)
    local = date_to_days(_date(found)) * MILLISECONDS_PER_DAY + (seconds * 1000 + found.get("S", 0))
    if zone is not None:
        wall = timestamp_from_milliseconds(local).replace(tzinfo=None)
        return local - zone.offset(wall) // timedelta(milliseconds=1)
    return local - found.get("z", found.get("Z", found.get("X", 0)))


def _date(found: Mapping[str, int]) -> date:
    """Return the day for the fields; missing fields are those of 1970-01-01."""
    month = found.get("M", found.get("L"))
    if "d" not in found and month is None and "w" in found:
        first = date(found.get("Y", found.get("y", 1970)), 1, 1)
        weekday = found.get("u", found.get("E", 7))
        sunday = first - timedelta(days=first.isoweekday() % 7)
        return sunday + timedelta(days=7 * (found["w"] - 1) + weekday % 7)
    year = found.get("y", found.get("Y", 1970))
    if "d" not in found and month is None and "D" in found:
        day = date(year, 1, 1) + timedelta(days=found["D"] - 1)
        if day.year != year:
            raise ValueError("D is out of range")
        return day
    return date(year, 1 if month is None else month, found.get("d", 1))


_Part = Callable[[datetime], object]

_ATTRIBUTES = {"d": "day", "H": "hour", "m": "minute", "s": "second", "S": "microsecond"}
_CONSTANTS = {"G": "AD", "Z": "+0000", "X": "Z"}


class JavaDateFormat:
    """One pattern for reading and writing any number of moments."""

    __slots__ = ("_attributes", "_microseconds", "_parts", "_reader", "_template", "pattern")

    def __init__(self, pattern: str) -> None:
        """Compile the pattern; raise ValueError with Java's text if it is wrong."""
        self.pattern = pattern
        elements = date_pattern_elements(pattern)
        fields = [element for element in elements if isinstance(element, PatternField)]
        self._template = "".join(map(_template, elements))
        fields = [field for field in fields if _constant(field) is None]
        # One call in C reads plain attributes.
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
    """Return the text of a field that is the same for all moments in UTC, None for other fields."""
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
    """Return the year of the week: the next year if the week contains the 1st of January."""
    is_last_week = moment.month == 12 and moment.day - _days_since_sunday(moment) + 6 > 31
    return moment.year + 1 if is_last_week else moment.year


def _week_counted_from_first(moment: datetime, day: int) -> int:
    """Return the number of the week; the week with day 1 is the first, even if incomplete."""
    first_days_since_sunday = (_days_since_sunday(moment) - day + 1) % 7
    return (day - 1 + first_days_since_sunday) // 7 + 1


def _days_since_sunday(moment: datetime) -> int:
    return moment.isoweekday() % 7


_PARTS: dict[str, _Part] = {
    "Y": _week_year,
    "w": lambda moment: (
        1
        if _week_year(moment) > moment.year
        else _week_counted_from_first(moment, moment.timetuple().tm_yday)
    ),
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
