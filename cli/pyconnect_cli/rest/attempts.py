"""Requests without an answer: the reasons, and the resulting error of the command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyconnect_cli.errors import UnknownOutcome, Unreachable
from pyconnect_cli.rest.budget import CONNECT_S, Allowance

ERRNO = re.compile(r"^\[Errno -?\d+\] ")
NO_TIME = "not asked: the time of --timeout is over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """One attempt at one address; `sent`: the worker may have received the request."""

    url: str
    reason: str
    sent: bool = False

    def __str__(self) -> str:
        return f"{self.url}: {self.reason}"


def unanswered_error(method: str, target: str, attempts: Sequence[Unanswered]) -> Unreachable:
    """Return the error for a request that no address answered."""
    sent = [attempt for attempt in attempts if attempt.sent and method != "GET"]
    if sent:
        return UnknownOutcome(
            f"{method} {sent[-1].url}{target}: {sent[-1].reason}; it may have taken effect",
            hint="check the state before you try again",
        )
    hint = "give an address with --url or choose a context; for a diagnosis: pyconnect doctor"
    if any("--request-timeout" in attempt.reason for attempt in attempts):
        hint = "a worker that is busy may need longer: --request-timeout 60s"
    return Unreachable(f"no worker answers: {'; '.join(map(str, attempts))}", hint=hint)


def describe_transport_error(error: Exception, allowance: Allowance) -> str:
    """Return the reason of a missing answer in a few words."""
    name = type(error).__name__
    text = str(error)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return f"its certificate is not trusted ({text.split(': ', 1)[-1]}); see --ca-file"
    if "WRONG_VERSION_NUMBER" in text:
        return "the server does not use TLS; is the address http:// instead of https://?"
    words = {
        "ConnectTimeout": f"no connection within {min(CONNECT_S, allowance.seconds):.2g}s",
        "ReadTimeout": f"no answer within {allowance.seconds:.3g}s ({allowance.option})",
        "RemoteProtocolError": "the connection broke",
        "ReadError": "the connection broke",
    }
    return words.get(name) or ERRNO.sub("", text) or name
