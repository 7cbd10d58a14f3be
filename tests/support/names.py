"""Names that no other test uses: tests share one broker."""

import uuid


def unique_name(prefix: str) -> str:
    """Return `prefix` with a suffix of its own, fit for topics, groups and connectors."""
    return f"{prefix}-{uuid.uuid4().hex[:10]}"
