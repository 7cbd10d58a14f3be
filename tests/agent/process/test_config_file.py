"""Java properties files: reading, and rewriting one key without a change of other bytes."""

from pathlib import Path

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.process.config_file import (
    PHASE_KEY,
    load_properties,
    parse_properties,
    with_phase,
)
from pyconnect_api import ConfigException
from tests.support.cases import cases


def test_java_properties_are_read_as_java_reads_them(tmp_path: Path) -> None:
    """Separators, continuation lines, escapes and comments are read as by Java."""
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
    """Files in UTF-8, with or without a byte order mark, and in ISO-8859-1 are read."""
    file = tmp_path / "f"
    file.write_text("k=ü\n", encoding=encoding)
    assert load_properties(str(file)) == {"k": "ü"}


@cases(
    "text, message",
    ("a=1\nb=\\u12x\n", r"f, line 2: '\\u12x' is not a character; write .*"),
    ("a=1\n\n=x\n", r"f, line 3: the property has no name; write name=value\."),
)
def test_broken_lines_are_named(text: str, message: str) -> None:
    """The error has the file, the line and the remedy."""
    with pytest.raises(ConfigException, match=message):
        parse_properties(text, source="f")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """A missing file and a directory have different errors."""
    with pytest.raises(ConfigException, match="there is no such file; check the path"):
        load_properties(tmp_path / "missing")
    with pytest.raises(ConfigException, match="this is a directory"):
        load_properties(tmp_path)


@cases(
    "before, after",
    ("a=1\n", f"a=1\n{PHASE_KEY}=preparing\n"),
    ("a=1", f"a=1\n{PHASE_KEY}=preparing\n"),
    ("", f"{PHASE_KEY}=preparing\n"),
    (f"{PHASE_KEY} : Enabled\r\nb=2\r\n", f"{PHASE_KEY}=preparing\r\nb=2\r\n"),
    (f"{PHASE_KEY}=dis\\\n   abled\nb=2\n", f"{PHASE_KEY}=preparing\nb=2\n"),
    (f"#{PHASE_KEY}=x\n! y\n", f"#{PHASE_KEY}=x\n! y\n{PHASE_KEY}=preparing\n"),
    (f"{PHASE_KEY}=enabled", f"{PHASE_KEY}=preparing"),
    (f"{PHASE_KEY}=a\nb=2\n{PHASE_KEY}=c\n", f"{PHASE_KEY}=a\nb=2\n{PHASE_KEY}=preparing\n"),
    (f"{PHASE_KEY}=Preparing # no comment\n", f"{PHASE_KEY}=preparing\n"),
    (f"{PHASE_KEY}=PREPARING\n", f"{PHASE_KEY}=PREPARING\n"),
)
def test_only_the_phase_changes(before: str, after: str) -> None:
    """All bytes outside of the phase's line stay, including line ends and comments."""
    assert with_phase(before.encode(), "preparing").decode() == after


def test_encodings_stay() -> None:
    """A file in UTF-8 keeps its mark, and any other file stays in ISO-8859-1."""
    marked = "\ufeffname=ü\n".encode()
    assert with_phase(marked, "enabled") == marked + f"{PHASE_KEY}=enabled\n".encode()
    latin = "name=ü\n".encode("iso-8859-1")
    assert with_phase(latin, "enabled") == latin + f"{PHASE_KEY}=enabled\n".encode()


@given(
    st.dictionaries(st.text(min_size=1), st.text()),
    st.sampled_from(["disabled", "preparing", "enabled"]),
)
def test_every_other_property_keeps_its_value(entries: dict[str, str], phase: str) -> None:
    """Only the phase has another value after a change."""
    data = javaproperties.dumps(entries, timestamp=None, ensure_ascii=False).encode()
    changed = parse_properties(with_phase(data, phase).decode(), source="test")
    assert changed == {**parse_properties(data.decode(), source="test"), PHASE_KEY: phase}
