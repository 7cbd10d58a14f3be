"""User names, passwords and tokens of requests, and their comparison.

Layer: rest.
"""

from __future__ import annotations

import base64
import binascii
import hmac


def basic_credentials(authorization: str) -> tuple[str, str] | None:
    """Return user and password of a header of the scheme Basic, None for another header."""
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = base64.b64decode(given.strip(), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    user, colon, password = text.partition(":")
    return (user, password) if user and colon else None


def basic_header(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def is_same(given: str, expected: str | None) -> bool:
    """Take the same time for every wrong value."""
    matches = hmac.compare_digest(given.encode(), (expected or "").encode())
    return matches and bool(expected)
