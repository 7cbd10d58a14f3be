"""Rewriting one key of a properties file: every other byte stays."""

import javaproperties
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.process.config_file import PHASE_KEY, parse_properties, with_phase
from tests.support.cases import cases


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
    """Separators, continuation lines, line ends and comments of all else stay."""
    assert with_phase(before.encode(), "preparing").decode() == after


def test_encodings_stay() -> None:
    """UTF-8 with its mark; else Java's ISO-8859-1."""
    marked = "\ufeffname=ü\n".encode()
    assert with_phase(marked, "enabled") == marked + f"{PHASE_KEY}=enabled\n".encode()
    latin = "name=ü\n".encode("iso-8859-1")
    assert with_phase(latin, "enabled") == latin + f"{PHASE_KEY}=enabled\n".encode()


@given(
    st.dictionaries(st.text(min_size=1), st.text()),
    st.sampled_from(["disabled", "preparing", "enabled"]),
)
def test_every_other_property_keeps_its_value(entries: dict[str, str], phase: str) -> None:
    """And the phase is what was asked for."""
    data = javaproperties.dumps(entries, timestamp=None, ensure_ascii=False).encode()
    changed = parse_properties(with_phase(data, phase).decode(), source="test")
    assert changed == {**parse_properties(data.decode(), source="test"), PHASE_KEY: phase}
