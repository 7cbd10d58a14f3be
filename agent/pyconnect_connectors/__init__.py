"""Connectors of this distribution that need an extra, written against `pyconnect_api` only.

Layer: beside the agent, which knows them by name and imports them in child processes only.

Design: docs/explanation/design/connectors.md.
"""

from importlib import metadata

try:
    __version__ = metadata.version("pyconnect-worker")
except metadata.PackageNotFoundError:
    __version__ = "unknown"
"""That of connectors and tasks; unknown in a bare source tree."""
