"""A request and the assertions about its answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyconnect_agent.core.plugin_catalog import RELEASE_4_4
from tests.support.agents.rest_client import Answer

JSON = {"Content-Type": "application/json"}
PLAIN = {"Content-Type": "text/plain"}

NOT_FOUND = "HTTP 404 Not Found"
NOT_ALLOWED = "HTTP 405 Method Not Allowed"
NOT_ACCEPTABLE = "HTTP 406 Not Acceptable"
UNSUPPORTED = "HTTP 415 Unsupported Media Type"
_SHOWN_CONFIG = re.compile(r"Connector config \{.*\} (contains no connector type)")
NO_SIGNATURE = "Internal request missing required signature"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A request and the assertions about its answer; None asserts nothing.

    `message`: the envelope's message. `message_start`: only its beginning. `content_type`: `""`
    asserts that there is none.
    """

    method: str
    target: str
    body: str | bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int
    message: str | None = None
    message_start: str | None = None
    text: str | None = None
    content_type: str | None = None
    allow: str | None = None

    @property
    def name(self) -> str:
        """The name in test ids and failure messages."""
        parts = [self.method, self.target]
        if self.body is not None:
            parts.append(repr(self.body)[:60])
        parts.extend(
            f"{key}={value}"
            for key, value in self.headers.items()
            if (key, value) not in JSON.items()
        )
        return " ".join(parts)

    def of(self, release: str) -> Scenario:
        """Return the scenario with the message of a release; scenarios are written for 4.3.1."""
        if release != RELEASE_4_4 or self.message is None:
            return self
        return replace(self, message=_SHOWN_CONFIG.sub(r"Connector config \1", self.message))

    def differences(self, answer: Answer) -> list[str]:
        """Return the differences to the expected answer."""
        found: list[str] = []

        def expect(what: str, expected: object, actual: object) -> None:
            if expected is not None and expected != actual:
                found.append(f"{what}: expected {expected!r}, got {actual!r}")

        expect("status", self.status, answer.status)
        expect("content type", self.content_type, answer.headers.get("content-type", ""))
        expect("allow", self.allow, answer.headers.get("allow"))
        if self.text is not None:
            expect("body", self.text, answer.text)
        if self.message is not None or self.message_start is not None:
            try:
                envelope = answer.json()
            except ValueError:
                return [*found, f"no envelope: {answer.body[:200]!r}"]
            expect("members", {"error_code", "message"}, set(envelope))
            expect("error_code", self.status, envelope["error_code"])
            expect("message", self.message, envelope["message"])
            start = self.message_start
            if start is not None and not str(envelope["message"]).startswith(start):
                found.append(f"message: expected start {start!r}, got {envelope['message']!r}")
        return found


def error(
    method: str,
    target: str,
    status: int,
    message: str,
    *,
    body: str | bytes | None = None,
    headers: Mapping[str, str] | None = None,
    content_type: str = "application/json",
) -> Scenario:
    return Scenario(
        method=method,
        target=target,
        body=body,
        headers=headers or {},
        status=status,
        message=message,
        content_type=content_type,
    )


def refused_body(method: str, target: str, body: str | bytes | None) -> Scenario:
    """Return a scenario of a body that cannot be bound: statuses are Apache's, texts differ."""
    return Scenario(
        method=method,
        target=target,
        body=body,
        headers=JSON,
        status=500,
        message_start="",
        content_type="application/json",
    )
