"""The tests on the pages for authors pass, and the reference has every name of the API."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pyconnect_api
import pyconnect_api.testing
from tests.support.plugins.plugin_directories import PAGES, ROOT, write_project

PROJECTS = sorted(
    page.stem for page in PAGES.glob("*.md") if "`pyproject.toml`" in page.read_text()
)
API = ROOT / "docs" / "reference" / "api"
DIRECTIVE = re.compile(r"^::: (pyconnect_api[\w.]*)$", re.MULTILINE)
# Pages list these in words: schemas of one type each, and names that stand for a type.
IN_WORDS = re.compile(r"(\w+_SCHEMA|\w+_NAME|NULL|SourcePartition|SourceOffset)")


@pytest.mark.wire
@pytest.mark.parametrize("page", PROJECTS)
def test_the_readers_tests_pass(page: str, tmp_path: Path) -> None:
    """The tests of a page pass in a directory with only the files of the page."""
    project = write_project(page, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_pages_with_projects() -> None:
    """The pattern of pages with projects finds all four."""
    assert PROJECTS == [
        "batching-sink",
        "http-source",
        "transformations-and-converters",
        "webhook-source",
    ]


def test_the_reference_has_each_name_of_the_api_once() -> None:
    """Each public name of the API stands on exactly one page."""
    shown = [name for page in API.glob("*.md") for name in DIRECTIVE.findall(page.read_text())]
    wanted = {
        *(
            f"pyconnect_api.{name}"
            for name in pyconnect_api.__all__
            if not IN_WORDS.fullmatch(name)
        ),
        *(f"pyconnect_api.testing.{name}" for name in pyconnect_api.testing.__all__),
    }
    assert sorted(shown) == sorted(wanted)
