"""Keys and parameters of a configuration whose values must not be shown, by their names. Pure."""

from __future__ import annotations

import re

# Patterns as texts are compiled at their first use: most commands need none.
_SENSITIVE = (
    r"(?i)passw(?:or)?d|passphrase|pwd$|secret|token|jaas|credential|user\.info|rest\.users$|keystore\.key$"
    r"|(?:api|access|private|account|encryption|shared|signing|license|auth|sas)[._-]?key"
    r"|connection[._]?string|authorization$"
)
# Names with one of those words whose values are not secrets.
_HARMLESS = (
    r"(?i)(?:^|\.)(?:token\.type|credentials\.provider|token\.endpoint(?:\.ur[il])?)$"
    r"|\.(?:path|location|file|class|ms|seconds)$"
)

_IN_TEXTS = (
    # A password may contain `@`: the last `@` of the authority ends it. A port is none.
    r"(://[^/@:\s]*:)([^/?#\s\"']+|(?!\d*/)[^@\s\"',]{1,200})(?=@)",
    # Parameters of addresses and connection strings, as in JDBC's; references are no secrets.
    (
        r"(?i)(?<![\w.-])([\w.-]*(?:passw(?:or)?d|passphrase|pwd|secret|token"
        r"|(?:account|access|api|shared|private|signing)[._-]?key)\s?=\s?)(?!\$\{)"
        r"(\"[^\"]+\"|'[^']+'|[^&;,}\s\"']+)"
    ),
    (
        r"(?i)\b(authorization[\"']?\s*[:=]\s*[\"']?(?:\w+\s+(?=[\w+/.~-]{4}))?)(?!\$\{)"
        r"([^\s,;|\"'}]+)"
    ),
)
"""A secret in a text is the second group, the first one is what announces it."""


def mask_secrets(text: str, mask: str) -> str:
    """Return a text with the passwords inside addresses, connection strings and headers masked."""
    for pattern in _IN_TEXTS:
        text = re.sub(pattern, lambda found: found[1] + mask, text)
    return text


def secrets_in(text: str) -> set[str]:
    """Return what `mask_secrets` masks, without quotes."""
    return {
        found[2].strip("\"'")
        for pattern in _IN_TEXTS
        for found in re.finditer(pattern, text)
        if "${" not in found[2]
    }


def is_secret_key(key: str) -> bool:
    return re.search(_SENSITIVE, key) is not None and re.search(_HARMLESS, key) is None
