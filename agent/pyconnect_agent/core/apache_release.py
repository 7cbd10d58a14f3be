"""The release of Apache Kafka Connect whose behaviour this worker follows.

Layer: core. `GET /` reports it, because clients of Connect turn their features on and off by the
version. Every plugin that ships with the worker reports it too, because it does what Apache's class
of that name does in this release.
"""

from __future__ import annotations

CONNECT_VERSION = "4.3.1"
