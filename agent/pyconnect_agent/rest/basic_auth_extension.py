"""Users and passwords of Apache's REST extension, for every request to the REST listeners.

Layer: rest. Corresponds to ``JaasBasicAuthFilter``. As there, the path, the method and the media
types are checked before, requests of workers (which are signed) and separate admin listeners are
exempt, and health is not. Otherwise than there, the credentials are read at each request, an empty
file admits no client, and the 401 names the scheme.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from pyconnect_agent.core.rest_extension import credentials_file, jaas_file
from pyconnect_agent.files.config_file import load_properties
from pyconnect_agent.rest.credentials import is_same
from pyconnect_api.errors import ConfigException

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
