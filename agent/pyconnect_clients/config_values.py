"""Values of configurations: secrets, by the names of keys and parameters, and references. Pure.

A reference to a config provider is ``${provider:[path:]key}`` (``ConfigTransformer``, KIP-297).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

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


_VARIABLE = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}", re.DOTALL)


@dataclass(frozen=True, slots=True, order=True)
class Variable:
    """One reference; ``path`` is empty when the text has none."""

    provider: str
    path: str
    key: str


def find_references(text: str) -> tuple[tuple[str, Variable], ...]:
    """Return the references in a value, as written and as read, in order; they do not nest."""
    return tuple((found[0], _variable(found)) for found in _VARIABLE.finditer(text))


def find_variables(text: str) -> tuple[Variable, ...]:
    """Return the references in a value, in order."""
    return tuple(variable for _, variable in find_references(text))


def replace_variables(text: str, found: Mapping[Variable, str]) -> str:
    """Put what was found in the place of references; others stay as they are."""
    return _VARIABLE.sub(lambda match: found.get(_variable(match), match[0]), text)


def _variable(found: re.Match[str]) -> Variable:
    return Variable(provider=found[1], path=found[3] or "", key=found[4])
