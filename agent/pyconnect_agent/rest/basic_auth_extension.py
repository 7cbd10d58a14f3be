"""Users and passwords of requests, and Apache's REST extension that asks for them.

Corresponds to ``JaasBasicAuthFilter``. As there, the path, the method and the media types are
checked before, requests of workers (which are signed) and separate admin listeners are exempt, and
health is not. Otherwise than there, the credentials are read at each request, an empty file admits
no client, and the 401 names the scheme.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
import os
from dataclasses import dataclass
from pathlib import Path

from pyconnect_agent.core.rest_access import credentials_file, jaas_file
from pyconnect_agent.process.config_file import load_properties
from pyconnect_api.errors import ConfigException


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


LOG = logging.getLogger(__name__)

CHALLENGE = 'Basic realm="Kafka Connect", charset="UTF-8"'


@dataclass(frozen=True, slots=True)
class BasicAuthExtension:
    """`credentials`: a properties file of `user=password`."""

    credentials: str

    def admits(self, given: tuple[str, str] | None) -> bool:
        """Return whether these are a user and the password."""
        return given is not None and is_same(given[1], self.password_of(given[0]))

    def password_of(self, user: str) -> str | None:
        try:
            return load_properties(self.credentials).get(user)
        except ConfigException as error:
            LOG.error("users of REST cannot be read", extra={"reason": str(error)})
            return None


def extension_of(configured: str | None) -> BasicAuthExtension:
    """Return the extension with the JAAS file's credentials.

    `configured`: the worker's key of the JAAS file. Raises ConfigException.
    """
    file = jaas_file(configured, os.environ)
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigException(f"{file}: the JAAS file cannot be read ({error}).") from error
    credentials = credentials_file(text, source=file)
    if not load_properties(credentials):
        raise ConfigException(
            f"{credentials}: there are no users. A Java worker would then admit every client; write"
            " user=password."
        )
    return BasicAuthExtension(credentials)
