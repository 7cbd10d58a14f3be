"""The code of docs/tutorial/write-a-connector.md is that of the example, and works."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.wire

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "directory-plugin"
DOCUMENT = ROOT / "docs" / "tutorial" / "write-a-connector.md"
BLOCK = re.compile(r"^`(?P<name>[\w./-]+)`\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```sh\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """Write the files that the document has a reader make; return their directory."""
    for found in BLOCK.finditer(DOCUMENT.read_text(encoding="utf-8")):
        path = tmp_path / "directory-plugin" / found["name"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found["text"], encoding="utf-8")
    return tmp_path / "directory-plugin"


def run(*command: str, directory: Path, path: Path | None = None) -> str:
    environment = dict(os.environ)
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_documents_code_is_the_examples(plugin: Path) -> None:
    """The document has every file of the example, with the same text."""
    shown = {str(path.relative_to(plugin)) for path in plugin.rglob("*") if path.is_file()}
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "."],
        cwd=EXAMPLE, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert shown == set(listed)
    for name in shown:
        assert (plugin / name).read_text() == (EXAMPLE / name).read_text(), name


def test_the_readers_tests_pass(plugin: Path) -> None:
    """The three tests of the document pass in the reader's directory."""
    python = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    assert "3 passed" in run(*python, "test_directory_plugin.py", directory=plugin, path=plugin)


def test_the_readers_plugin_is_found_and_passes_its_self_check(
    plugin: Path, tmp_path: Path
) -> None:
    """The plugin is installed below a plugin path and found by its entry point."""
    target = tmp_path / "plugins" / "directory-plugin"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    run(*pip, "--no-index", "--target", str(target), str(plugin), directory=tmp_path)
    letters = tmp_path / "in"
    letters.mkdir()
    (letters / "001").write_text("hello")
    config = (plugin / "source.json").read_text().replace("/tmp/letters-in", str(letters))
    (plugin / "source.json").write_text(config)
    out = run(
        sys.executable, "-m", "pyconnect_cli", "plugins", "test", "DirectorySource",
        "-f", "source.json", "--plugin-path", str(tmp_path / "plugins"),
        directory=plugin,
    )  # fmt: skip
    assert re.search(r"^find +passed +source directory_plugin\.source\.", out, re.MULTILINE)
    assert re.search(r"^poll +passed +1 records for letters$", out, re.MULTILINE)
    assert re.search(r"^stop +passed", out, re.MULTILINE)


def test_the_documents_commands_fit_their_directories(plugin: Path, tmp_path: Path) -> None:
    """The commands run in one shell, in this order; `pip install` runs where pyproject.toml is."""
    blocks = "".join(found["text"] for found in SHELL.finditer(DOCUMENT.read_text()))
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    for name in ("mkdir", "cat", "grep", "sleep"):
        (bin_directory / name).symlink_to(str(shutil.which(name)))
    (bin_directory / "python3").symlink_to(sys.executable)
    stubs = """
        pip() { case "$*" in *.) test -f pyproject.toml ;; esac; }
        pytest() { test -f test_directory_plugin.py; }
        pyconnect() { case "$*" in *"-f "*) test -f source.json ;; *read*) echo world ;; esac; }
        .() { test "$1" = venv/bin/activate; }
        mkdir -p "$HOME/letters-out"; : > "$HOME/letters-out/batch"
    """
    script = f"set -eu\n{stubs}\n{blocks}".replace("/tmp/letters", "$HOME/letters")
    done = subprocess.run(
        [str(shutil.which("bash")), "-c", script],
        cwd=tmp_path,
        env={"PATH": str(bin_directory), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # The sink ends each line itself: a line end in a file would be an empty line in the output.
    letters = [path.read_text() for path in sorted((tmp_path / "letters-in").iterdir())]
    assert letters == ["hello", "world"]
