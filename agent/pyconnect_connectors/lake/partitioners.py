"""The directories of rows, below the directory of their topic.

A directory depends on the record alone, and on the worker's clock only if the config asks for it:
rows that are written again after a failure go to the same place.
"""

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from typing import TypeAlias
from urllib.parse import quote

from pyconnect_api import ConfigException, DataException, SinkRecord, Struct
from pyconnect_api.java_text import double_text
from pyconnect_connectors.lake.settings import PATH_FORMAT, Extractor, FileSettings, Partitioning
from pyconnect_connectors.odd_values import required_default

MOST_KNOWN = 10_000
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_PLAIN_CHARACTERS = " !$&()+,;@_-.~|<>`{}"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PATTERNS = {
    "YYYY": "{0.year:04}",
    "yyyy": "{0.year:04}",
    "MM": "{0.month:02}",
    "dd": "{0.day:02}",
    "HH": "{0.hour:02}",
    "mm": "{0.minute:02}",
    "ss": "{0.second:02}",
}
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z]+)|([^A-Za-z']+)")
Directories: TypeAlias = str | Sequence[str]


Partitioner: TypeAlias = Callable[[Sequence[SinkRecord]], Directories]
"""Returns one directory for all records, or one for each; raises DataException if it cannot."""


class Clock:
    """The time of a record in milliseconds since 1970, as `timestamp.extractor` says."""

    def __init__(self, settings: FileSettings) -> None:
        self._extractor = settings.extractor
        self._field = settings.timestamp_field

    def has_passed(self, limit_ms: int, begin_ms: int, record: SinkRecord) -> bool:
        """Return whether a record is `limit_ms` later, or the wall clock was set back."""
        passed_ms = self.time_ms(record) - begin_ms
        return passed_ms >= limit_ms or (passed_ms < 0 and self._extractor is Extractor.WALLCLOCK)

    def time_ms(self, record: SinkRecord) -> int:
        """Return the record's time; raise DataException if it has none."""
        match self._extractor:
            case Extractor.WALLCLOCK:
                return int(time.time() * 1000)
            case Extractor.RECORD:
                found: object = record.timestamp
            case Extractor.RECORD_FIELD:
                found = field_of(record, self._field)
        if isinstance(found, str):
            try:
                found = datetime.fromisoformat(found)
            except ValueError:
                raise DataException(f"Field {self._field} is not a time in ISO 8601") from None
        if isinstance(found, datetime):
            aware = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
            return (aware - _EPOCH) // timedelta(milliseconds=1)
        if isinstance(found, int) and not isinstance(found, bool):
            return found
        raise DataException(f"The record has no time (timestamp.extractor={self._extractor})")


def partitioner_of(settings: FileSettings, clock: Clock) -> Partitioner:
    """Return the partitioner of a config; ConfigException for a path format that is not valid."""
    match settings.partitioning:
        case Partitioning.DEFAULT:
            return lambda records: f"partition={records[0].original_kafka_partition}"
        case Partitioning.FIELD:
            named = [(name, quote(name, safe=_PLAIN_CHARACTERS)) for name in settings.fields]
            return lambda records: [
                "/".join(f"{shown}={_directory_text(n, field_of(r, n))}" for n, shown in named)
                for r in records
            ]
        case Partitioning.TIME:
            return _by_time(settings, clock)


def _by_time(settings: FileSettings, clock: Clock) -> Partitioner:
    """Return a partitioner with one directory for each span of local time.

    A span begins at a multiple of its duration. As in Confluent's TimeBasedPartitioner, days
    begin at midnight of the zone, whether they have 23, 24 or 25 hours. An hour that the clock
    repeats has one directory.
    """
    duration, zone = timedelta(milliseconds=settings.duration_ms), settings.zone
    template = path_template(settings.path_format)
    # Offsets of zones are whole seconds, and change at whole seconds.
    unit_ms = math.gcd(settings.duration_ms, 1000)
    known: dict[int, str] = {}

    def directories(records: Sequence[SinkRecord]) -> Directories:
        units = [clock.time_ms(record) // unit_ms for record in records]
        if len(known) > MOST_KNOWN:
            known.clear()
        for unit in set(units) - known.keys():
            try:
                moment = _EPOCH + timedelta(milliseconds=unit * unit_ms)
                begin = moment.astimezone(zone).replace(tzinfo=UTC, fold=0)
                begin -= (begin - _EPOCH) % duration
                # A begin that the clock skips moves to the next local time that exists.
                begin = begin.replace(tzinfo=zone).astimezone(UTC).astimezone(zone)
            except (OverflowError, ValueError):
                raise DataException("The record's time is not in the years 1 to 9999") from None
            known[unit] = template.format(begin)
        return [known[unit] for unit in units]

    return directories


def path_template(pattern: str) -> str:
    """Return a path format in Joda's letters as a `str.format` template for a datetime.

    Raise ConfigException for other letters.
    """
    found, end = "", 0
    while end < len(pattern):
        token = _TOKEN.match(pattern, end)
        if token is None:
            raise ConfigException(f"{PATH_FORMAT}: a single quote is not closed in {pattern}")
        quoted, letters, other = token.groups()
        if letters is not None and letters not in _PATTERNS:
            raise ConfigException(
                f"{PATH_FORMAT}: {letters} is not one of {', '.join(_PATTERNS)}; text stands "
                "between single quotes"
            )
        text = (quoted or other or "").replace("''", "'").replace("{", "{{").replace("}", "}}")
        found += text if letters is None else _PATTERNS[letters]
        end = token.end()
    return found.strip("/")


def field_of(record: SinkRecord, name: str) -> object:
    """Return a field of the value, which may be null; DataException if the value has no such field.

    The schema's default takes the place of null only in a field that is required.
    """
    value = record.value
    if isinstance(value, Struct):
        field = value.schema.field(name)
        if field is not None:
            found = value.get_without_default(field)
            return required_default(field.schema) if found is None else found
    elif isinstance(value, Mapping) and name in value:
        return value[name]
    raise DataException(f"The value has no field {name}")


def _directory_text(name: str, value: object) -> str:
    match value:
        case None | "":
            return NO_VALUE
        case bool():
            text = str(value).lower()
        case str():
            text = value
        case int():
            text = str(value)
        case float():
            text = double_text(value)
        case Decimal():
            text = f"{value:f}"
        case datetime():
            text = value.isoformat(sep=" ")
        case date() | time_of_day():
            text = value.isoformat()
        case _:
            raise DataException(f"Field {name} has a value that cannot name a directory")
    try:
        return quote(text, safe=_PLAIN_CHARACTERS)
    except UnicodeEncodeError:
        raise DataException(f"Field {name} has a lone surrogate in its text") from None
