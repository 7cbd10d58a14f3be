"""Which configuration values are secrets, and what is shown instead of them. Pure.

A value is masked by its key; references such as `${file:/run/secrets:db}` are no secrets and stay
readable. Passwords inside addresses and connection strings are masked wherever they stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MASK = "********"

SECRET_KEY = re.compile(
    r"passw(?:or)?d|passphrase|pwd$|secret|token|jaas|credential"
    r"|(?:api|access|private|account|encryption|shared|signing|license|auth|sas)[._-]?key"
    r"|ssl\.keystore\.key$|connection[._]?string",
    re.IGNORECASE,
)
# Names that hold one of the words above and no secret.
HARMLESS_KEY = re.compile(
    r"(?:^|\.)(?:token\.type|credentials\.provider(?:\.class)?|sasl\.oauthbearer\.token\.endpoint\.url)$"
    r"|\.(?:path|location|file)$",
    re.IGNORECASE,
)
REFERENCES_ONLY = re.compile(r"(?:\$\{[^}]*\})+")
URL_PASSWORD = re.compile(r"(://[^/@:\s]*):([^/@\s]+)@")
PARAMETER = re.compile(r"(?i)\b(password|passwd|pwd|secret|token|accountkey)=([^&;,}\s\"']+)")


def is_secret_key(key: str) -> bool:
    """Tell whether values of this configuration key must not be shown."""
    return SECRET_KEY.search(key) is not None and HARMLESS_KEY.search(key) is None


def mask_text(text: str) -> str:
    """Mask passwords inside addresses and `password=…` parameters of a text."""
    masked = URL_PASSWORD.sub(rf"\1:{MASK}@", text)
    return PARAMETER.sub(_mask_parameter, masked)


def mask_value(key: str, value: str | None) -> str | None:
    """Return what may be shown of a configuration value; None and empty stay."""
    if not value:
        return value
    if REFERENCES_ONLY.fullmatch(value):
        return value
    return MASK if is_secret_key(key) else mask_text(value)


def mask_config(config: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the map with every secret masked."""
    return {key: mask_value(key, value) for key, value in config.items()}


def masked_keys(config: Mapping[str, object]) -> list[str]:
    """Return the keys whose value holds a mask: a config that was printed and not completed."""
    return sorted(key for key, value in config.items() if isinstance(value, str) and MASK in value)


def mask_document(document: object) -> object:
    """Mask a JSON value of any shape, by the names of its members.

    In a validation result `{"name": "db.password", "value": "…"}` the name is a member itself.
    """
    if isinstance(document, Mapping):
        named = document.get("name")
        masked: dict[str, object] = {}
        for key, value in document.items():
            secret = isinstance(named, str) and key in {"value", "default_value"} and named
            if isinstance(value, str):
                masked[key] = mask_value(secret or key, value)
            else:
                masked[key] = mask_document(value)
        return masked
    if isinstance(document, list | tuple):
        return [mask_document(item) for item in document]
    return document


def _mask_parameter(match: re.Match[str]) -> str:
    value = match.group(2)
    return match.group(0) if value.startswith("${") else f"{match.group(1)}={MASK}"
