"""Figures of the README are in the benchmarks' table, and those of the table in its sections."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BENCHMARKS = (ROOT / "docs" / "reference" / "benchmarks.md").read_text("utf-8")
HEAD = "| measured | compared with | there | pyconnect | times |\n|---|---|---|---|---|\n"
LINK = re.compile(r"\[([^]]+)\]\(#([^)]+)\)")
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def rows(text: str) -> list[str]:
    """Return the rows of the table of figures."""
    return text.partition(HEAD)[2].partition("\n\n")[0].splitlines()


def sections() -> dict[str, str]:
    """Return the sections of the benchmarks by their link names."""
    found = re.split(r"^## (.+)$", BENCHMARKS, flags=re.MULTILINE)[1:]
    titles = (re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in found[::2])
    return dict(zip(titles, found[1::2], strict=True))


def figures() -> Iterator[tuple[str, str, str]]:
    """Return each figure of the table with its row and the section that the row links to."""
    for row in rows(BENCHMARKS):
        link = LINK.search(row)
        assert link is not None, row
        # The text of a link has the sum of the kills, which the section does not have.
        for figure in NUMBER.findall(row.replace(link[0], "")):
            yield link[1], figure, link[2]


def test_each_figure_of_the_readme_is_a_row_of_the_benchmarks() -> None:
    """A row of the README is the same text as in the benchmarks, apart from its link."""
    shown = rows(README)
    assert len(shown) >= 5
    assert set(shown) <= {LINK.sub(r"\1", row) for row in rows(BENCHMARKS)}


@pytest.mark.parametrize(("row", "figure", "section"), list(figures()))
def test_a_figure_of_the_table_is_in_its_section(row: str, figure: str, section: str) -> None:
    assert figure in NUMBER.findall(sections()[section]), row


def test_the_number_of_kills_is_their_sum() -> None:
    kills = re.search(r"^\| killed: [^|]+\| ([\d, ]+) \|$", BENCHMARKS, re.MULTILINE)
    assert kills is not None
    assert f"through {sum(map(int, kills[1].split(',')))} kills" in BENCHMARKS
