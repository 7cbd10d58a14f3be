"""report.html: one self-contained page that a person reads in a minute. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def page(document: Mapping[str, object]) -> str:
    """Return the page of a report.json."""
    return f"<!doctype html><title>{document['job']}</title>"
