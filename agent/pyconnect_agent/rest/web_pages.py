"""Requests of web pages: which pages may change the worker by the admin endpoints.

Layer: rest, pure. Kafka Connect's worker answers every page. A browser names the page's origin in
each request that is not a GET or HEAD; other clients send no such header and are not concerned.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from pyconnect_agent.core.errors import ForbiddenError
from pyconnect_agent.rest.response_headers import CrossOriginPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPages:
    """The pages that may change the worker: its own, and those of the permitted origins.

    `names`: host names of the server, in lower case. A page under another name that leads to the
    server (DNS rebinding) has the same Host and Origin, so its name has to be known too.
    """

    names: frozenset[str] = frozenset()
    policy: CrossOriginPolicy | None = None

    def check(self, method: str, headers: Mapping[str, str]) -> None:
        """Raise ForbiddenError for a change by another page."""
        origin = headers.get("origin")
        if origin is None or method in ("GET", "HEAD"):
            return
        if self.policy is not None and self.policy.allows(origin):
            return
        _, slashes, authority = origin.partition("//")
        is_same = slashes and authority.lower() == headers.get("host", "").lower()
        if not (is_same and self._is_known(origin)):
            raise ForbiddenError(
                f"A web page of the origin {origin} may not change this worker. Origins are"
                " permitted by access.control.allow.origin."
            )

    def _is_known(self, origin: str) -> bool:
        try:
            host = urlsplit(origin).hostname or ""
            if host == "localhost" or host in self.names:
                return True
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return True
