"""Masks of secrets in configurations, commands and texts. Pure.

The key decides whether a value is masked; references such as `${file:/run/secrets:db}` are not
secrets and stay readable. Passwords inside addresses and connection strings are always masked.
"""

import re
import shlex
from collections.abc import Iterable, Mapping

from pyconnect_clients.config_values import is_secret_key, mask_secrets

MASK = "********"

# Patterns as texts are compiled at their first use: few commands need them.
REFERENCES_ONLY = r"(?:\$\{[^}]*\})+"
SECRET_OPTIONS = frozenset({"--password", "--token"})
ASSIGNMENT = r"(?s)(?P<flag>--[\w-]+=)?(?P<key>[^=\s]+)=(?P<value>.+)"
HEADER = r"(?is)\b((?:authorization|cookie)\s*:\s*|bearer\s+)\S.*"


def mask_text(text: str) -> str:
    """Mask passwords inside addresses, `password=…` parameters and headers of a text."""
    return mask_secrets(text, MASK)


def mask_url(url: str) -> str:
    """Mask the password of an address, also of one that is written without its scheme."""
    return mask_text(url) if "://" in url else mask_text(f"http://{url}").removeprefix("http://")


def mask_command(words: Iterable[str]) -> str:
    """Return a command line that a user can run, quoted for a shell, with every secret masked.

    Secrets are values of options, of `KEY=VALUE` by the key, of HTTP headers, and passwords inside
    addresses.
    """
    shown = []
    option = ""
    for word in words:
        shown.append(_mask_word(word, option))
        option = word if word.startswith("-") and "=" not in word else ""
    return shlex.join(shown)


def _mask_word(word: str, option: str) -> str:
    """Mask one word of a command; `option` is the option before it, if it may be its value."""
    name, equals, value = word.partition("=")
    if option in SECRET_OPTIONS:
        return MASK
    if equals and name in SECRET_OPTIONS:
        return f"{name}={MASK}"
    if option == "--url":
        return mask_url(word)
    if equals and name == "--url":
        return f"{name}={mask_url(value)}"
    found = re.fullmatch(ASSIGNMENT, word)
    if found and not found["key"].startswith("--") and is_secret_key(found["key"]):
        flag, key = found["flag"] or "", mask_text(found["key"])
        return f"{flag}{key}={mask_value(found['key'], found['value'])}"
    return re.sub(HEADER, lambda match: f"{match[1]}{MASK}", mask_text(word))


def mask_value(key: str, value: str | None) -> str | None:
    """Return a configuration value with its secrets masked; None and "" stay."""
    if not value:
        return value
    if re.fullmatch(REFERENCES_ONLY, value):
        return value
    return MASK if is_secret_key(key) else mask_text(value)


def mask_config(config: Mapping[str, str | None]) -> dict[str, str | None]:
    return {key: mask_value(key, value) for key, value in config.items()}


def masked_keys(config: Mapping[str, object]) -> list[str]:
    """Return the keys whose value holds a mask: a config that was printed and not completed."""
    return sorted(key for key, value in config.items() if isinstance(value, str) and MASK in value)


def mask_document(document: object) -> object:
    """Mask a JSON value of any shape by the names of its members.

    In a validation result `{"name": "db.password", "value": "…"}` the key is the value of `name`.
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
