"""The error page shows texts that the products print."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "errors.md").read_text("utf-8")
SHOWN = sorted(re.findall(r"\*\*`([^`]+)`\*\*", PAGE))


@cache
def printed() -> str:
    """Return every text of the sources; a value within a text is a `…`."""
    texts = []
    for path in sorted(each for side in ("agent", "cli") for each in (ROOT / side).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
                texts.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\n".join(texts)


@pytest.mark.parametrize("text", SHOWN)
def test_an_error_of_the_page_is_in_the_sources(text: str) -> None:
    """A text that changes in the sources has to change on the page."""
    assert text in printed()


def test_the_page_has_errors() -> None:
    """The pattern finds the errors of the page."""
    assert len(SHOWN) > 25
