"""The releases of Apache Kafka Connect whose behaviour a worker can follow.

`agent.connect.release` of the worker names one. `GET /` reports it, because clients of Connect turn
their features on and off by the version. Every plugin that stands in for a class of Apache's
reports it too, because it does what that class does in this release.

| 4.4.0, beyond 4.3.1 | where |
|---|---|
| `ValueToKey` takes paths into nested data | `plugins/loading.py` |
| more settings of clients are known | `core/config/client_keys.py` |
| a validation says less of what config providers supply | `core/config/validation.py` |
"""

from __future__ import annotations

from collections.abc import Mapping

CONNECT_VERSION = "4.3.1"
"""The default."""
RELEASE_4_4 = "4.4.0"
RELEASES = (CONNECT_VERSION, RELEASE_4_4)
RELEASE_KEY = "agent.connect.release"


def spoken_release(properties: Mapping[str, str | None]) -> str:
    """Return the release that unchecked properties of a worker name."""
    return (properties.get(RELEASE_KEY) or CONNECT_VERSION).strip()


class ApachesPlugin:
    """A plugin that stands in for a class of Apache's."""

    release = CONNECT_VERSION
    """That of the worker, set on each instance that a worker makes."""

    def version(self) -> str:
        return self.release
