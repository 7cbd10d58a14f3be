"""Connectors of this distribution that need an extra, written against `pyconnect_api` only.

Layer: beside the agent, which knows them by name and imports them in child processes only.

Design: docs/explanation/design/connectors.md.
"""

from importlib import metadata


def version() -> str:
    """Return the distribution's version, `unknown` in a bare source tree."""
    try:
        return metadata.version("pyconnect-worker")
    except metadata.PackageNotFoundError:
        return "unknown"
