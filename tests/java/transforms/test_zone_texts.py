"""Texts with time zones are read as `java.text.SimpleDateFormat` reads them."""

from pathlib import Path

import pytest

from pyconnect_agent.builtin.transforms.java_date_format import JavaDateFormat
from pyconnect_api import DataException
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.corpora import printed
from tests.java.java_sources import compiled

pytestmark = [pytest.mark.java, pytest.mark.timeout(700)]

PROGRAM = Path(__file__).parent / "ZoneTexts.java"
_HISTORIES = ("1899", "1985", "2012")
"""Years whose offsets depend on the release of the zone database."""


@pytest.mark.long(only=True)
def test_all_names_and_numbers_of_zones_are_read_as_in_java(
    kafka_runtime: KafkaRuntime, tmp_path: Path
) -> None:
    """Each name of Java's English locale, in winter, in summer, and at changes of the clocks."""
    classes = compiled(kafka_runtime, {PROGRAM.stem: PROGRAM.read_text()}, tmp_path)
    formats: dict[str, JavaDateFormat] = {}
    differences, count = [], 0
    for line in printed(kafka_runtime, classes, PROGRAM.stem):
        pattern, text, expected = line.split("\t")
        date_format = formats.setdefault(pattern, JavaDateFormat(pattern))
        try:
            found = str(date_format.milliseconds(text))
        except DataException:
            found = "refused"
        count += 1
        if found != expected and not (text.startswith(_HISTORIES) and "refused" not in line):
            differences.append(f"{line}, ours {found}")
    assert count > 8000
    assert not differences, "\n".join(differences[:20])
