"""Links of the documents lead to files and headings that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)")


def prose(document: Path) -> str:
    """A document without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", document.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(document: Path) -> set[str]:
    """The headings as links name them."""
    headings = re.findall(r"^#+ (.+)$", prose(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_lead_somewhere(document: Path) -> None:
    """Relative to the document, as a browser of the repository follows them."""
    for path, heading in LINK.findall(prose(document)):
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), path
        assert not heading or heading in anchors(target), f"{path}#{heading}"


def test_there_are_links() -> None:
    """The pattern finds those of the README."""
    assert len(LINK.findall(prose(ROOT / "README.md"))) > 8
