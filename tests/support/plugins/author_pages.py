"""The projects that the pages for authors show, as files."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs" / "authors"
BLOCK = re.compile(r"^`(?P<name>[\w./-]+)`\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def write_project(page: str, directory: Path) -> Path:
    """Write the files that a page shows into a directory of their own."""
    project = directory / page
    project.mkdir()
    for found in BLOCK.finditer((PAGES / f"{page}.md").read_text("utf-8")):
        (project / found["name"]).write_text(found["text"], "utf-8")
    return project


def install(project: Path, plugin_path: Path) -> None:
    """Install a project as a plugin of its own below a plugin path."""
    target = str(plugin_path / project.name)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--no-index", "--target", target, str(project)], check=True, timeout=400)
