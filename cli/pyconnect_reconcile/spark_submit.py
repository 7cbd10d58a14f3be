"""Whether spark-submit started this process: settings and session are its own then."""

from __future__ import annotations

import os


def submitted() -> bool:
    """Return whether spark-submit started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
