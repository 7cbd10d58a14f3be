"""The release of Apache Kafka Connect whose behaviour this worker follows.

Layer: core. What tells it: `GET /`, since clients of Connect turn their features on and off by the
version they find there, and every plugin that ships with the worker, since it does what Apache's
class of that name does in this release.
"""

from __future__ import annotations

CONNECT_VERSION = "4.3.1"
