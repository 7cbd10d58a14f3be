"""The files and packages that the design names exist, and it names every package."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "explanation" / "design").glob("*.md"))
TEXT = "\n".join(page.read_text("utf-8") for page in PAGES)
NAMES = sorted(set(re.findall(r"`([\w./*]+(?:/[\w.*]*|\.py))`", TEXT)))
PACKAGES = [
    *sorted((ROOT / "agent").glob("pyconnect_*")),
    *sorted((ROOT / "cli").glob("pyconnect_*")),
]


def is_there(name: str) -> bool:
    """Return whether a file or package of this name is below the root or any package."""
    tail = name.rstrip("/")
    roots = (
        ROOT,
        ROOT / "agent",
        ROOT / "cli",
        *PACKAGES,
        *(path for package in PACKAGES for path in package.rglob("*/")),
    )
    return any(
        next(root.glob(form), None) is not None
        for root in roots
        for form in (tail, f"{tail}.py")
        if "__pycache__" not in root.parts
    )


@pytest.mark.parametrize("name", NAMES)
def test_files_and_packages_that_the_design_names_exist(name: str) -> None:
    """Names in backquotes may have a `*`."""
    assert is_there(name), f"docs/explanation/design speaks of `{name}`"


def test_the_design_speaks_of_every_package() -> None:
    """The design has the name of each directory one level below a package."""
    subpackages = [path for root in PACKAGES for path in root.iterdir() if path.is_dir()]
    names = {path.name for path in subpackages if (path / "__init__.py").exists()}
    assert "herder" in names
    words = set(re.findall(r"\w+", TEXT))
    assert sorted(names - words) == []


def test_each_page_of_the_design_is_named_by_a_room() -> None:
    """The docstring of a room names its page, and each page has such a room."""
    named = {
        page
        for package in PACKAGES
        for room in package.rglob("__init__.py")
        for page in re.findall(r"docs/explanation/design/[\w-]+\.md", room.read_text("utf-8"))
    }
    pages = {str(page.relative_to(ROOT)) for page in PAGES if page.stem not in {"group", "tests"}}
    assert named == pages
