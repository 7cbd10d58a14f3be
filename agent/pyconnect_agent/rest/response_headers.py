"""Headers put on every answer of the main listeners: CORS and configured rules.

Layer: rest, pure. Corresponds to Jetty's ``CrossOriginFilter`` and ``HeaderFilter`` as Kafka
Connect sets them up. They never stop a request before routing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate

from starlette.datastructures import MutableHeaders

from pyconnect_agent.core.config.response_headers import HeaderAction, HeaderRule

_DEFAULT_METHODS = ("GET", "POST", "HEAD")
_PREFLIGHT_MAX_AGE_S = 60


@dataclass(frozen=True, slots=True)
class CrossOriginPolicy:
    """The origins that may read answers. `*` in an origin stands for any text."""

    origins: tuple[str, ...]
    methods: tuple[str, ...]

    @classmethod
    def parse(cls, origins: str, methods: str) -> CrossOriginPolicy | None:
        """Return the policy of the two settings, None when `origins` is blank: no CORS at all."""
        if not origins.strip():
            return None
        return cls(_items(origins), _items(methods) or _DEFAULT_METHODS)

    def apply(self, method: str, request: Mapping[str, str], response: MutableHeaders) -> None:
        """Put the headers of one answer; `request` are the request's headers."""
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
    """Put the headers of the rules in order; dates count from `now_s`, epoch seconds."""
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
