"""The installation: its version and origin, the command that adds an extra, the installed Java.

The project is on no package index, so the address of a checkout, a wheel's file or a repository is
repeated (PEP 610: `direct_url.json`). Threads: stateless.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

DISTRIBUTION = "pyconnect-worker"


def version() -> str:
    """Return the installed distribution's version, `unknown` in a bare source tree."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution(DISTRIBUTION).version
    except PackageNotFoundError:
        return "unknown"


def install_command(extra: str) -> str:
    """Return the shell command that installs an extra into this installation."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        installed = distribution(DISTRIBUTION)
    except PackageNotFoundError:
        source_tree = Path(__file__).parents[2]
        return f"{_pip()} install {shlex.quote(f'{source_tree}[{extra}]')}"
    if (installed.read_text("INSTALLER") or "").strip() == "uv":
        installer = f"uv pip install --python {shlex.quote(sys.executable)}"
    else:
        installer = f"{_pip()} install"
    return f"{installer} {requirement(extra, installed.read_text('direct_url.json'))}"


def requirement(extra: str, direct_url: str | None) -> str:
    """Return the arguments that name this installation with an extra.

    `direct_url` is the text of PEP 610. It is None where the installer did not record an origin.
    The name alone is then not enough: the project is on no index, and anyone could take its name.
    """
    if direct_url is None:
        return shlex.quote(f"WHEEL_OR_CHECKOUT[{extra}]")
    origin = json.loads(direct_url)
    url = str(origin["url"])
    if version_control := origin.get("vcs_info"):
        url = f"{version_control['vcs']}+{url}@{version_control['commit_id']}"
    if not url.startswith("file:"):
        return shlex.quote(f"{DISTRIBUTION}[{extra}] @ {url}")
    path = unquote(urlsplit(url).path)
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return editable + shlex.quote(f"{path}[{extra}]")


def _pip() -> str:
    """Return `pip` if it is this environment's, else this Python with its module."""
    own = str(Path(sys.executable).with_name("pip"))
    return "pip" if shutil.which("pip") == own else f"{shlex.quote(sys.executable)} -m pip"


_VERSION = re.compile(r'version "(?:1\.)?(\d+)|^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)


def java_version(java: Path) -> int | None:
    """Return the feature version of the `java` program, such as 17; None if it does not run."""
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
    # macOS has a stub named `java` that only says where to get one.
    return version_in(done.stderr + done.stdout) if done.returncode == 0 else None


def version_in(text: str) -> int | None:
    """Return the version in the output of `java -version` or in the file `release`.

    Both schemes are read: `1.8.0_402` is 8, `17.0.15` is 17.
    """
    found = _VERSION.search(text)
    return int(found[1] or found[2]) if found else None
