"""Hooks of the site: the changelog becomes its release notes, the footer names the version.

The site holds only files below docs/; readers of the repository expect the changelog at its root.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = "reference/release-notes.md"


def on_config(config: Any) -> None:
    """Name the version that the documents are about."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    config.copyright = f"Documents of pyconnect {project['version']}"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the changelog for its page, with links from there."""
    if page.file.src_uri != PAGE:
        return markdown
    text = (ROOT / "CHANGELOG.md").read_text("utf-8").replace("# Changelog", "# Release notes", 1)
    return re.sub(r"\]\(docs/", "](../", text)
