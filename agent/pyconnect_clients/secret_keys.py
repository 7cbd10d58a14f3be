"""Keys and parameters of a configuration whose values must not be shown, by their names. Pure."""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"passw(?:or)?d|passphrase|pwd$|secret|token|jaas|credential|user\.info|rest\.users$|keystore\.key$"
    r"|(?:api|access|private|account|encryption|shared|signing|license|auth|sas)[._-]?key"
    r"|connection[._]?string",
    re.IGNORECASE,
)
# Names with one of those words whose values are not secrets.
_HARMLESS = re.compile(
    r"(?:^|\.)(?:token\.type|credentials\.provider|token\.endpoint(?:\.ur[il])?)$"
    r"|\.(?:path|location|file|class|ms|seconds)$",
    re.IGNORECASE,
)

SECRET_PARAMETER = re.compile(
    r"(?i)\b(password|passwd|pwd|secret|token|accountkey)=(?!\$\{)([^&;,}\s\"']+)"
)
"""A name and its value, no reference, inside an address or a connection string, as in JDBC's."""


def is_secret_key(key: str) -> bool:
    return _SECRET.search(key) is not None and _HARMLESS.search(key) is None
