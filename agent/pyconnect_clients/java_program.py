"""The feature version of an installed Java. Edge: files and processes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

_VERSION = re.compile(r'version "(?:1\.)?(\d+)|^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)


def java_version(java: Path) -> int | None:
    """Return the feature version of a program `java`, such as 17; None if it does not run."""
    release = java.resolve().parent.parent / "release"
    try:
        return version_in(release.read_text(encoding="utf-8"))
    except OSError:
        pass  # not every Java has the file
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # macOS ships a stub named `java` that only says where to get one.
    return version_in(done.stderr + done.stdout) if done.returncode == 0 else None


def version_in(text: str) -> int | None:
    """Return the version in the output of `java -version` or in the file `release`.

    Both schemes are read: `1.8.0_402` is 8, `17.0.15` is 17.
    """
    found = _VERSION.search(text)
    return int(found[1] or found[2]) if found else None
