"""Check the links of README, changelog and docs/, and the files that docstrings and comments name.

Pages of docs/ link to files below docs/ only. Needs the standard library only. Headings get the
names that a browser of the repository gives them; `scripts/docs` checks the names of the site.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

CODE = ("agent", "cli", "examples", "scripts", "tests")
NAMED_FILE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:py|md))`|\b(docs/[\w/-]+\.md)")
LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")


def documents(root: Path) -> list[Path]:
    """Return every Markdown file that readers get."""
    return [root / "README.md", root / "CHANGELOG.md", *sorted((root / "docs").rglob("*.md"))]


def prose(document: Path) -> str:
    """Return a document without its blocks of code, indented ones included."""
    blocks = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
    return blocks.sub("", document.read_text("utf-8"))


def anchors(document: Path) -> set[str]:
    """Return the names of the headings, and of what the site describes from the sources."""
    text = prose(document)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    named = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return named | set(re.findall(r"^::: (\S+)$", text, re.MULTILINE))


def faults(document: Path, root: Path) -> Iterator[str]:
    """Yield a text for each link of one document that leads nowhere."""
    site = root / "docs"
    for path, heading in LINK.findall(prose(document)):
        target = (document.parent / path).resolve() if path else document
        link = f"{path}#{heading}" if heading else path
        if not target.exists():
            yield f"{link}: there is no such file"
        elif document.is_relative_to(site) and not target.is_relative_to(site):
            yield f"{link}: the site holds only files below docs/"
        elif heading and heading not in anchors(target):
            yield f"{link}: there is no such heading"


def stale_names(source: Path, root: Path, files: list[str]) -> Iterator[str]:
    """Yield the files that docstrings and comments of one module name and that are not there.

    A name with a directory may be below any directory, a bare name anywhere in the package.
    """
    text = source.read_text("utf-8")
    if not NAMED_FILE.search(text):
        return
    package = root.joinpath(*source.relative_to(root).parts[:2]).as_posix()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT and not token.string.startswith(('"""', 'r"""')):
            continue
        for quoted, page in NAMED_FILE.findall(token.string):
            name = quoted or page
            if not any(
                file.endswith(f"/{name}") and ("/" in name or file.startswith(package))
                for file in files
            ):
                yield f"line {token.start[0]}: there is no file {name}"


def main(root: Path) -> int:
    """Print every fault; return the exit code."""
    found = [
        f"{document.relative_to(root)}: {fault}"
        for document in documents(root)
        for fault in faults(document, root)
    ]
    sources = [path for name in CODE for path in sorted((root / name).rglob("*.py"))]
    files = [path.as_posix() for path in (*sources, *documents(root))]
    found += [
        f"{source.relative_to(root)}: {fault}"
        for source in sources
        for fault in stale_names(source, root, files)
    ]
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
