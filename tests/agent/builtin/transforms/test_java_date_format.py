"""Patterns of SimpleDateFormat, which are written and read as in Java."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.builtin.transforms.java_date_format import JavaDateFormat
from pyconnect_api import DataException
from pyconnect_api.logical import timestamp_to_milliseconds
from tests.support.cases import cases

MOMENT = timestamp_to_milliseconds(datetime(2024, 3, 5, 16, 7, 8, 9000, tzinfo=UTC))


@cases(
    "pattern, text",
    ("yyyy-MM-dd'T'HH:mm:ss.SSSX", "2024-03-05T16:07:08.009Z"),
    ("y yy yyy yyyyyy", "2024 24 2024 002024"),
    ("M MM MMM MMMM LLL", "3 03 Mar March Mar"),
    ("E EEE EEEE u", "Tue Tue Tuesday 2"),
    ("d D w W F Y", "5 65 10 2 1 2024"),
    ("H k K h a", "16 16 4 4 PM"),
    ("S SS SSSSSS", "9 09 000009"),
    ("G z zzzz Z X XX XXX", "AD UTC Coordinated Universal Time +0000 Z Z Z"),
    ("'o''clock' 'y' ''100%", "o'clock y '100%"),
)
def test_every_letter_is_written_as_in_java(pattern: str, text: str) -> None:
    """Moments are written in UTC with English names."""
    assert JavaDateFormat(pattern).text(MOMENT) == text


@cases(
    "pattern, message",
    ("yyyy b", "Illegal pattern character 'b'"),
    ("yyyy'T", "Unterminated quote"),
    ("XXXX", "invalid ISO 8601 format: length=4"),
)
def test_a_wrong_pattern_is_refused_in_javas_words(pattern: str, message: str) -> None:
    """A wrong pattern is refused with Java's text before a moment is written."""
    with pytest.raises(ValueError, match=message):
        JavaDateFormat(pattern)


@given(st.integers(min_value=-60_000_000_000_000, max_value=250_000_000_000_000))
def test_written_values_are_read_back(milliseconds: int) -> None:
    """A pattern with all fields reads back each written moment, before 1970 too."""
    for pattern in ("yyyyMMddHHmmssSSS", "EEE d MMM yyyy hh:mm:ss.SSS a Z", "YYYY ww u HHmmssSSS"):
        date_format = JavaDateFormat(pattern)
        assert date_format.milliseconds(date_format.text(milliseconds)) == milliseconds


@cases(
    "pattern, text, moment",
    ("yyyy-MM-dd", "2024-3-5", datetime(2024, 3, 5, tzinfo=UTC)),
    ("yyyy-MM-dd", "2024-03-05T01:02 and more", datetime(2024, 3, 5, tzinfo=UTC)),
    ("yyyy-MM-dd HH", "2024- 03-05  07", datetime(2024, 3, 5, 7, tzinfo=UTC)),
    ("d MMM yyyy", "5 mARch 2024", datetime(2024, 3, 5, tzinfo=UTC)),
    ("HH:mmX", "10:00+02", datetime(1970, 1, 1, 8, tzinfo=UTC)),
    ("HH:mm z", "10:00 PST", datetime(1970, 1, 1, 18, tzinfo=UTC)),
    ("HH:mm z", "10:00 GMT-3:30", datetime(1970, 1, 1, 13, 30, tzinfo=UTC)),
    ("hh a", "12 AM", datetime(1970, 1, 1, 0, tzinfo=UTC)),
    ("kk", "24", datetime(1970, 1, 1, 0, tzinfo=UTC)),
    ("yyyy DDD", "2024 366", datetime(2024, 12, 31, tzinfo=UTC)),
)
def test_texts_are_read_as_in_java(pattern: str, text: str, moment: datetime) -> None:
    """Digits may be missing, names have any case, and text after the pattern is ignored."""
    milliseconds = JavaDateFormat(pattern).milliseconds(text)
    assert milliseconds == timestamp_to_milliseconds(moment)


_TEN = datetime(2024, 7, 15, 10, tzinfo=UTC)


@cases(
    "zone, hours",
    ("GMT", 0),
    ("GMT+02:00", 2),
    ("gmt+2:00", 2),
    ("+0200", 2),
    ("IST", 2),
    ("BST", 1),
    ("MSK", 3),
    ("met", 1),
    ("Central European Standard Time", 1),
    ("central european summer time", 2),
    ("India Standard Time", 5.5),
    ("Lord Howe Daylight Time", 11),
    ("Hawaii-Aleutian Daylight Time", -10),
    ("SAST", 2),
    # Java takes the first zone with a fitting name, here WIT.
    ("WITA", 9),
)
def test_zones_are_read_as_in_java(zone: str, hours: float) -> None:
    """A zone's name stands for winter or summer, whatever the day is."""
    milliseconds = JavaDateFormat("yyyy-MM-dd HH:mm z").milliseconds(f"2024-07-15 10:00 {zone}")
    assert milliseconds == timestamp_to_milliseconds(_TEN - timedelta(hours=hours))


@cases(
    "zone",
    "GMT+2", "GMT+02", "GMT+0200", "GMT+", "GMT+24:00", "GMT+2:5", "+02", "+02:00", "Z", "UT",
    "Europe/Berlin",
)  # fmt: skip
def test_zones_that_java_refuses_are_refused(zone: str) -> None:
    """The beginning of a zone's name is not taken for the whole."""
    with pytest.raises(DataException):
        JavaDateFormat("yyyy-MM-dd HH:mm z").milliseconds(f"2024-07-15 10:00 {zone}")


def test_a_century_is_near_and_other_texts_are_refused() -> None:
    """A year of two digits is within 80 years back and 20 ahead; errors never show the text."""
    year = datetime.now(UTC).year
    date_format = JavaDateFormat("yy-MM-dd")
    for expected in (year - 79, year, year + 19):
        text = f"{expected % 100:02d}-06-15"
        moment = datetime(expected, 6, 15, tzinfo=UTC)
        assert date_format.milliseconds(text) == timestamp_to_milliseconds(moment)
    with pytest.raises(DataException) as caught:
        JavaDateFormat("yyyy-MM-dd").milliseconds("secret")
    expected = "Could not parse timestamp: value does not match pattern (yyyy-MM-dd)"
    assert str(caught.value) == expected


@cases(
    "pattern, text",
    ("yyyy-MM-dd", "2024-02-30"), ("HH:mm", "24:00"), ("hh a", "13 AM"), ("DDD yyyy", "366 2023"),
    ("yyyy", "0000"), ("yyyy G", "0044 BC"), ("HHX", "10+24"), ("SSS", "1000"),
)  # fmt: skip
def test_fields_out_of_their_range_are_refused(pattern: str, text: str) -> None:
    """Java would count on into the next field; the error does not show the text."""
    with pytest.raises(DataException, match="not every field is in its range") as caught:
        JavaDateFormat(pattern).milliseconds(text)
    assert text not in str(caught.value)
