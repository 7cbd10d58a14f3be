"""Manual pages."""

import shutil
import subprocess
from pathlib import Path

import pytest

from pyconnect_cli.parsing.nouns import NOUNS, find_noun
from pyconnect_cli.parsing.options import GLOBAL_OPTIONS
from scripts.manual_pages import escaped, main_page, noun_page, pages


def test_pages_are_of_nouns_and_hold_no_requests() -> None:
    """Each noun has a page, and a text never begins a line with a character of roff requests."""
    names = [name for name, _ in pages()]
    assert names[0] == "pyconnect.1"
    assert set(names[1:]) == {f"pyconnect-{noun.name}.1" for noun in NOUNS if noun.name != "help"}
    assert escaped(".failed[].name").startswith("\\&.")
    assert not escaped("'x'").startswith("'")
    assert escaped("a\\b--c") == "a\\eb\\-\\-c"


def test_options_of_every_verb_are_on_the_first_page_only() -> None:
    """Options of all verbs, with variables, and exit codes are on the first page only."""
    first = main_page()
    for option in GLOBAL_OPTIONS:
        assert escaped(option.flags[0]) in first
        assert escaped(option.env) in first
    assert '.SH "EXIT STATUS"' in first
    noun = find_noun("connectors")
    assert noun is not None
    page = noun_page(noun)
    assert escaped("--password-file") not in page
    assert escaped("--connector-only") in page
    assert escaped("connectors restart orders --wait") in page


@pytest.mark.wire
def test_every_page_is_shown_without_a_warning(tmp_path: Path) -> None:
    """groff formats every page without a warning."""
    groff = shutil.which("groff")
    assert groff is not None, "groff is not installed: apt-get install groff-base"
    for name, text in pages():
        file = tmp_path / name
        file.write_text(text, "utf-8")
        shown = subprocess.run(
            [groff, "-k", "-man", "-ww", "-Tutf8", "-P-c", str(file)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert shown.stderr == "", name
        assert "pyconnect manual" in shown.stdout
