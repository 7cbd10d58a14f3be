"""Headers of answers of the main listeners (CORS, configured rules), and web pages that may change.

Pure. Corresponds to Jetty's ``CrossOriginFilter`` and ``HeaderFilter`` as Kafka Connect sets them
up. These headers never stop a request before routing.

Kafka Connect's worker answers every page. A browser names the page's origin in each request other
than GET and HEAD; other clients do not send this header, so the check does not concern them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders

from pyconnect_agent.core.config.listeners import HeaderAction, HeaderRule
from pyconnect_agent.core.errors import ForbiddenError

_DEFAULT_METHODS = ("GET", "POST", "HEAD")
_PREFLIGHT_MAX_AGE_S = 60


@dataclass(frozen=True, slots=True)
class CrossOriginPolicy:
    """The origins that may read answers. `*` in an origin stands for any text."""

    origins: tuple[str, ...]
    methods: tuple[str, ...]

    @classmethod
    def parse(cls, origins: str, methods: str) -> CrossOriginPolicy | None:
        """Return the policy of the two settings, None (no CORS at all) if `origins` is blank."""
        if not origins.strip():
            return None
        return cls(_items(origins), _items(methods) or _DEFAULT_METHODS)

    def apply(self, method: str, request: Mapping[str, str], response: MutableHeaders) -> None:
        """Set the headers of an answer; `request` are the request's headers."""
        if "*" not in self.origins:
            response.append("Vary", "Origin")
        origin = request.get("origin")
        if not origin or not self.allows(origin):
            return
        response["Access-Control-Allow-Origin"] = origin
        if method == "OPTIONS" and "access-control-request-method" in request:
            response["Access-Control-Allow-Methods"] = ",".join(self.methods)
            response["Access-Control-Allow-Headers"] = "Content-Type"
            response["Access-Control-Max-Age"] = str(_PREFLIGHT_MAX_AGE_S)

    def allows(self, origin: str) -> bool:
        """Return whether the value of a request's `Origin` header is among the origins."""
        return any(
            re.fullmatch(re.escape(allowed).replace(r"\*", ".*"), candidate, re.IGNORECASE)
            for candidate in origin.split()
            for allowed in self.origins
        )


def apply_rules(rules: Sequence[HeaderRule], response: MutableHeaders, now_s: float) -> None:
    """Set the headers of the rules in order; dates count from `now_s`, epoch seconds."""
    for rule in rules:
        match rule.action:
            case HeaderAction.SET:
                response[rule.name] = rule.value
            case HeaderAction.ADD:
                response.append(rule.name, rule.value)
            case HeaderAction.SET_DATE:
                response[rule.name] = _date(rule, now_s)
            case HeaderAction.ADD_DATE:
                response.append(rule.name, _date(rule, now_s))


def _date(rule: HeaderRule, now_s: float) -> str:
    return formatdate(now_s + int(rule.value) / 1000, usegmt=True)


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPages:
    """The pages that may change the worker: its own, and those of permitted origins.

    `names`: host names of the server, in lower case. A page under another name that leads to the
    server (DNS rebinding) has the same Host and Origin, so that the name is checked too.
    """

    names: frozenset[str] = frozenset()
    policy: CrossOriginPolicy | None = None

    def check(self, method: str, headers: Mapping[str, str]) -> None:
        """Raise ForbiddenError if another page wants to change the worker."""
        origin = headers.get("origin")
        if origin is None or method in ("GET", "HEAD"):
            return
        if self.policy is not None and self.policy.allows(origin):
            return
        _, slashes, authority = origin.partition("//")
        is_known = slashes and authority.lower() == headers.get("host", "").lower()
        try:
            host = urlsplit(origin).hostname or ""
            if host != "localhost" and host not in self.names:
                ipaddress.ip_address(host)
        except ValueError:
            is_known = False
        if not is_known:
            raise ForbiddenError(
                f"A web page of the origin {origin} may not change this worker. Origins are"
                " permitted by access.control.allow.origin."
            )
