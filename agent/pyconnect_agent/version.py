"""Which worker this is: what `GET /` and `--version` tell."""

from __future__ import annotations

from importlib import metadata

DISTRIBUTION = "pyconnect-worker"


def version() -> str:
    """Return the installed distribution's version, `unknown` in a bare source tree."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown"


def commit() -> str:
    """Return the commit the worker was built from; like Apache's, `unknown` unless recorded."""
    return "unknown"
