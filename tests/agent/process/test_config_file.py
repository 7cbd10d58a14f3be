"""Reading Java properties files."""

from pathlib import Path

import pytest

from pyconnect_agent.process.config_file import load_properties, parse_properties
from pyconnect_api import ConfigException
from tests.support.cases import cases


def test_java_properties_are_read_as_java_reads_them(tmp_path: Path) -> None:
    """Separators, continuation lines, escapes and comments; the last of a key wins."""
    file = tmp_path / "worker.properties"
    file.write_text(
        "# comment\n! comment\na=1\nb : two words \nc three\nlong=x,\\\n   y\n"
        "umlaut=\\u00fc\nkey\\ with\\:blanks=v\na=2\nempty\n",
        encoding="utf-8",
    )
    assert load_properties(file) == {
        "a": "2",
        "b": "two words ",
        "c": "three",
        "long": "x,y",
        "umlaut": "ü",
        "key with:blanks": "v",
        "empty": "",
    }


@cases("encoding", "utf-8", "utf-8-sig", "iso-8859-1")
def test_files_may_be_utf8_or_latin1(tmp_path: Path, encoding: str) -> None:
    """A byte order mark is no part of the first key."""
    file = tmp_path / "f"
    file.write_text("k=ü\n", encoding=encoding)
    assert load_properties(str(file)) == {"k": "ü"}


@cases(
    "text, message",
    ("a=1\nb=\\u12x\n", r"f, line 2: '\\u12x' is not a character; write .*"),
    ("a=1\n\n=x\n", r"f, line 3: the property has no name; write name=value\."),
)
def test_broken_lines_are_named(text: str, message: str) -> None:
    """With the way out."""
    with pytest.raises(ConfigException, match=message):
        parse_properties(text, source="f")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """A missing file and a directory have texts of their own."""
    with pytest.raises(ConfigException, match="there is no such file; check the path"):
        load_properties(tmp_path / "missing")
    with pytest.raises(ConfigException, match="this is a directory"):
        load_properties(tmp_path)
