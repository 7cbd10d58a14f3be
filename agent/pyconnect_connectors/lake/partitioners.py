"""Directories of rows, below that of their topic.

A directory depends on the record alone, never on the worker's clock unless the config asks for it:
rows that are written again after a failure go to the same place.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeAlias
from urllib.parse import quote

from pyconnect_api import ConfigException, DataException, SinkRecord, Struct
from pyconnect_connectors.lake.names import (
    PATH_FORMAT,
    Extractor,
    Partitioning,
)
from pyconnect_connectors.lake.settings import FileSettings

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_PLAIN_CHARACTERS = " !$&()+,;@_-.~|<>`{}"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PATTERNS = {"YYYY": "%Y", "yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z]+)|([^A-Za-z']+)")
Directories: TypeAlias = str | Sequence[str]


class Partitioner(Protocol):
    """Chooses directories."""

    def directories(self, records: Sequence[SinkRecord]) -> Directories:
        """Return the directory of all records, or one for each; DataException if there is none."""


class Clock:
    """The time of a record in milliseconds since 1970, as `timestamp.extractor` says."""

    def __init__(self, settings: FileSettings) -> None:
        self._extractor = settings.extractor
        self._field = settings.timestamp_field

    def time_ms(self, record: SinkRecord) -> int:
        """Raises DataException for a record without a time."""
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


class ByKafkaPartition:
    """The default: one directory for each Kafka partition."""

    def directories(self, records: Sequence[SinkRecord]) -> Directories:
        return f"partition={records[0].original_kafka_partition}"


class ByField:
    """One directory for each value of one or several fields."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = fields

    def directories(self, records: Sequence[SinkRecord]) -> Directories:
        return [
            "/".join(f"{name}={_directory_text(field_of(r, name))}" for name in self._fields)
            for r in records
        ]


class ByTime:
    """One directory for each span of time."""

    def __init__(self, settings: FileSettings, clock: Clock) -> None:
        self._clock = clock
        self._duration_ms = settings.duration_ms
        self._zone = settings.zone
        self._format = strftime_format(settings.path_format)
        self._known: dict[int, str] = {}

    def directories(self, records: Sequence[SinkRecord]) -> Directories:
        spans = [self._clock.time_ms(record) // self._duration_ms for record in records]
        for span in set(spans) - self._known.keys():
            if len(self._known) > 1000:
                self._known.clear()
            begin = _EPOCH + timedelta(milliseconds=span * self._duration_ms)
            self._known[span] = begin.astimezone(self._zone).strftime(self._format)
        return [self._known[span] for span in spans]


def partitioner_of(settings: FileSettings, clock: Clock) -> Partitioner:
    """Return the partitioner of a config; ConfigException for a path format that is not valid."""
    match settings.partitioning:
        case Partitioning.DEFAULT:
            return ByKafkaPartition()
        case Partitioning.FIELD:
            return ByField(settings.fields)
        case Partitioning.TIME:
            return ByTime(settings, clock)


def strftime_format(pattern: str) -> str:
    """Translate a path format of Joda's letters; ConfigException for other letters."""
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
        text = (quoted or other or "").replace("''", "'").replace("%", "%%")
        found += text if letters is None else _PATTERNS[letters]
        end = token.end()
    return found.strip("/")


def field_of(record: SinkRecord, name: str) -> object:
    """Return a field of the value; DataException when the value has no such field."""
    value = record.value
    if isinstance(value, Struct):
        return value.get(name)
    if isinstance(value, Mapping) and name in value:
        return value[name]
    raise DataException(f"The value has no field {name}")


def _directory_text(value: object) -> str:
    if value is None or value == "":
        return NO_VALUE
    if isinstance(value, bool):
        return str(value).lower()
    return quote(str(value), safe=_PLAIN_CHARACTERS)
