"""Values of configs: secrets, which the names of keys and parameters show, and references. Pure.

A reference to a config provider is ``${provider:[path:]key}`` (``ConfigTransformer``, KIP-297).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

# Patterns are texts, which are compiled at their first use: most commands need none.
_SENSITIVE = (
    r"(?i)passw(?:or)?d|passphrase|pwd$|secret|token|jaas|credential|user\.info|rest\.users$|keystore\.key$"
    r"|(?:api|access|private|account|encryption|shared|signing|license|auth|sas)[._-]?key"
    r"|connection[._]?string|authorization$"
)
# Names that contain such a word although their values are not secrets.
_HARMLESS = (
    r"(?i)(?:^|\.)(?:token\.type|credentials\.provider|token\.endpoint(?:\.ur[il])?)$"
    r"|\.(?:path|location|file|class|ms|seconds)$"
)

_IN_TEXTS = (
    # A password may contain `@`: the authority's last `@` ends it. A port is not a password.
    r"(://[^/@:\s]*:)([^/?#\s\"']+|(?!\d*/)[^@\s\"',]{1,200})(?=@)",
    # Parameters of addresses and connection strings, as of JDBC; references are not secrets.
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
"""The first group announces a secret in a text, and the second group is the secret."""


def mask_secrets(text: str, mask: str) -> str:
    """Return a text in which passwords in addresses, connection strings and headers are masked."""
    for pattern in _IN_TEXTS:
        text = re.sub(pattern, lambda found: found[1] + mask, text)
    return text


def secrets_in(text: str) -> set[str]:
    """Return the secrets that `mask_secrets` masks, without quotes."""
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
    """One reference; ``path`` is empty if the reference has none."""

    provider: str
    path: str
    key: str


def find_references(text: str) -> tuple[tuple[str, Variable], ...]:
    """Return the references in a value, in order, as texts and parsed; they do not nest."""
    return tuple((found[0], _variable(found)) for found in _VARIABLE.finditer(text))


def find_variables(text: str) -> tuple[Variable, ...]:
    """Return the references in a value, in order."""
    return tuple(variable for _, variable in find_references(text))


def replace_variables(text: str, found: Mapping[Variable, str]) -> str:
    """Replace the references that were found; others stay as they are."""
    return _VARIABLE.sub(lambda match: found.get(_variable(match), match[0]), text)


def _variable(found: re.Match[str]) -> Variable:
    return Variable(provider=found[1], path=found[3] or "", key=found[4])
