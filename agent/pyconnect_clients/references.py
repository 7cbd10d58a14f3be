"""References to config providers in values: ``${provider:[path:]key}``. Pure.

Corresponds to ``ConfigTransformer`` of Kafka (KIP-297).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

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
