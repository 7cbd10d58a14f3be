"""`scripts/check` reports links in documents to files or headings that do not exist."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_links.py"


def check(root: Path, page: str) -> subprocess.CompletedProcess[str]:
    """Run the script's own copy in a checkout with one page below docs/."""
    files = {
        "README.md": "[a page](docs/how-to/page.md#a-heading-here)",
        "CHANGELOG.md": "",
        "docs/how-to/page.md": f"# A `heading`, here\n\n{page}\n",
        "docs/index.md": "```sh\n[no link](nowhere.md)\n```\n",
        "scripts/check_links.py": SCRIPT.read_text("utf-8"),
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    return subprocess.run(
        [sys.executable, root / "scripts" / "check_links.py"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_links_that_lead_somewhere_pass(tmp_path: Path) -> None:
    """Links to files, headings and the web pass; text in code blocks is not a link."""
    done = check(
        tmp_path, "[up](../index.md) [here](#a-heading-here) [web](https://kafka.apache.org)"
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ("../missing.md", "there is no such file"),
        ("../index.md#missing", "there is no such heading"),
        ("#missing", "there is no such heading"),
        ("../../README.md", "the site holds only files below docs/"),
    ],
)
def test_a_link_that_leads_nowhere_is_reported(tmp_path: Path, link: str, fault: str) -> None:
    """The report has the document, the link and the reason."""
    done = check(tmp_path, f"1. [text]({link})")
    assert done.returncode == 1
    assert done.stderr == f"docs/how-to/page.md: {link}: {fault}\n"


def test_a_file_that_a_docstring_names_has_to_be_there(tmp_path: Path) -> None:
    """The report has file, line and name; strings in code may name files that a program makes."""
    module = tmp_path / "agent" / "package" / "room" / "module.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        '"""As `module.py`, `room/module.py` and docs/index.md say."""\n'
        'MADE = "`made.py`"\n'
        "# `gone.py` and `room/gone.py` were here\n"
    )
    done = check(tmp_path, "")
    assert done.stderr.splitlines() == [
        "agent/package/room/module.py: line 3: there is no file gone.py",
        "agent/package/room/module.py: line 3: there is no file room/gone.py",
    ]
