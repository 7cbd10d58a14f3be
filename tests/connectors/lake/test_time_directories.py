"""Directories of the time partitioner: local time, daylight saving, odd durations."""

from datetime import datetime

import pytest

from pyconnect_api import DataException, SinkRecord
from pyconnect_connectors.lake.partitioners import Clock, partitioner_of
from pyconnect_connectors.lake.settings import SinkSettings
from tests.support.cases import cases

DAY, HOUR = 86_400_000, 3_600_000


def directories(zone: str, duration_ms: int, *times_ms: int) -> list[str]:
    """Return the directories of records with these times."""
    settings = SinkSettings.parse(
        {
            "lake.url": "/lake",
            "partitioner.class": "time",
            "timezone": zone,
            "partition.duration.ms": str(duration_ms),
            "path.format": "YYYY-MM-dd HH:mm",
        }
    ).files
    records = [
        SinkRecord("t", 0, None, None, None, {}, number, timestamp=time_ms)
        for number, time_ms in enumerate(times_ms)
    ]
    return list(partitioner_of(settings, Clock(settings))(records))


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@cases(
    "zone, duration_ms, time, directory",
    ("Europe/Berlin", DAY, "2024-06-15T22:30Z", "2024-06-16 00:00"),
    ("Europe/Berlin", DAY, "2024-06-15T21:59:59.999Z", "2024-06-15 00:00"),
    # A day of 23 hours, and the days around it.
    ("Europe/Berlin", DAY, "2024-03-30T22:59Z", "2024-03-30 00:00"),
    ("Europe/Berlin", DAY, "2024-03-30T23:00Z", "2024-03-31 00:00"),
    ("Europe/Berlin", DAY, "2024-03-31T21:59Z", "2024-03-31 00:00"),
    ("Europe/Berlin", DAY, "2024-03-31T22:00Z", "2024-04-01 00:00"),
    # A day of 25 hours, and the days around it.
    ("Europe/Berlin", DAY, "2024-10-26T21:59Z", "2024-10-26 00:00"),
    ("Europe/Berlin", DAY, "2024-10-26T22:00Z", "2024-10-27 00:00"),
    ("Europe/Berlin", DAY, "2024-10-27T22:59Z", "2024-10-27 00:00"),
    ("Europe/Berlin", DAY, "2024-10-27T23:00Z", "2024-10-28 00:00"),
    # The hour that is left out, and the hour that comes twice.
    ("America/New_York", HOUR, "2024-03-10T06:59Z", "2024-03-10 01:00"),
    ("America/New_York", HOUR, "2024-03-10T07:00Z", "2024-03-10 03:00"),
    ("America/New_York", HOUR, "2024-11-03T05:30Z", "2024-11-03 01:00"),
    ("America/New_York", HOUR, "2024-11-03T06:30Z", "2024-11-03 01:00"),
    # Midnight is left out.
    ("America/Sao_Paulo", DAY, "2018-11-04T12:00Z", "2018-11-04 01:00"),
    ("Asia/Beirut", DAY, "2022-03-27T12:00Z", "2022-03-27 01:00"),
    # Offsets that are not whole hours, and a change of half an hour.
    ("Asia/Kolkata", HOUR, "2024-06-15T10:45Z", "2024-06-15 16:00"),
    ("Asia/Kathmandu", HOUR, "2024-06-15T10:14Z", "2024-06-15 15:00"),
    ("Asia/Kathmandu", HOUR, "2024-06-15T10:15Z", "2024-06-15 16:00"),
    ("Australia/Lord_Howe", HOUR, "2024-04-06T15:10Z", "2024-04-07 01:00"),
    # Durations that do not divide a day are counted from 1970-01-01 00:00 of local time.
    ("Europe/Berlin", 90 * 60_000, "2024-06-15T22:40Z", "2024-06-16 00:00"),
    ("Europe/Berlin", 7 * DAY, "2024-06-12T22:30Z", "2024-06-13 00:00"),
    ("Europe/Berlin", 7 * DAY, "2024-06-12T21:30Z", "2024-06-06 00:00"),
    # A span before 1970 is also named by its beginning.
    ("Asia/Kolkata", DAY, "1969-12-31T18:29Z", "1969-12-31 00:00"),
    ("UTC", HOUR, "0987-06-05T04:30Z", "0987-06-05 04:00"),
)
def test_a_span_begins_in_local_time(
    zone: str, duration_ms: int, time: str, directory: str
) -> None:
    """Spans begin in local time, as in Joda-Time, which Confluent's TimeBasedPartitioner uses."""
    assert directories(zone, duration_ms, ms(time)) == [directory]


@cases("zone", "Europe/Berlin", "America/Havana", "Australia/Lord_Howe")
def test_each_half_hour_of_a_year_is_in_the_directory_of_its_day(zone: str) -> None:
    """Each half hour is in the directory of its local day, whatever the clock does on that day."""
    times = range(ms("2023-12-31T00:00Z"), ms("2025-01-02T00:00Z"), 1_800_000)
    days = [found.split()[0] for found in directories(zone, DAY, *times)]
    minutes = [found.split()[0] for found in directories(zone, 60_000, *times)]
    assert days == minutes
    assert days == sorted(days)


@cases("time_ms", 10**17, -(10**17), 253_402_300_800_000)
def test_a_time_beyond_the_calendar_is_the_records_fault(time_ms: int) -> None:
    """A time outside the calendar is an error of the record, which often has microseconds."""
    with pytest.raises(DataException, match="years 1 to 9999"):
        directories("Europe/Berlin", DAY, time_ms)
