"""A connector's configuration for another cluster, without secrets in plain text. Pure.

No secret in plain text leaves its cluster. References such as `${file:/run/db.properties:password}`
go as they are, or remapped. Where the other cluster has a value of a secret's key already, it keeps
that value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyconnect_cli.connectors.plan import Config, ConnectorFile
from pyconnect_cli.errors import UsageError
from pyconnect_cli.rest.masking import MASK, REFERENCES_ONLY, mask_value
from pyconnect_clients.secret_keys import is_secret_key

REFERENCE = re.compile(r"\$\{([^}]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remapping:
    """The differences that the other cluster is to have.

    `references`: beginnings of references with their replacements, without `${`. `values`: keys
    with their value there; None removes the key.
    """

    references: tuple[tuple[str, str], ...] = ()
    values: Config = field(default_factory=dict)

    def reference(self, value: str) -> str:
        """Return a value with its references remapped; the first pair that fits counts."""
        return REFERENCE.sub(lambda found: f"${{{self._remapped(found[1])}}}", value)

    def _remapped(self, reference: str) -> str:
        for old, new in self.references:
            if reference == old or reference.startswith((f"{old}:", f"{old}/")):
                return new + reference.removeprefix(old)
        return reference


def remapping(pairs: Sequence[str], values: Config) -> Remapping:
    """Read `FROM=TO` pairs and keys; UsageError for a secret in plain text."""
    references = []
    for pair in pairs:
        old, equals, new = (part.strip() for part in pair.partition("="))
        if not (old and equals and new) or "$" in pair:
            raise UsageError(
                f"`{pair}` does not map a reference",
                hint="write its beginning on both sides: --map file:/run/dev=file:/run/prod",
            )
        references.append((old, new))
    for key, value in values.items():
        if value and is_secret_key(key) and not REFERENCES_ONLY.fullmatch(value):
            raise UsageError(
                f"--set {key}: a secret cannot be given in plain text here",
                hint=f"give a reference: --set '{key}=${{provider:path:key}}'",
            )
    return Remapping(references=tuple(references), values=values)


def promoted(
    files: Sequence[ConnectorFile],
    there: Mapping[str, Config],
    rules: Remapping,
    *,
    context: str,
    strict: bool = True,
) -> list[ConnectorFile]:
    """Return the connectors as they are to be on the cluster of `context`.

    `there`: the configurations it has, by name. UsageError names every secret that would have to
    be copied. Without `strict` the secret stays in the result, for a comparison that masks it.
    """
    refused: list[str] = []
    result = []
    for file in files:
        config, secrets = _promoted(file.config, there.get(file.name, {}), rules)
        refused += [f"{file.name}: {key}" for key in secrets]
        result.append(
            ConnectorFile(
                name=file.name, config=config, initial_state=file.initial_state, place=file.place
            )
        )
    if refused and strict:
        key = refused[0].partition(": ")[2]
        raise UsageError(
            f"secrets in plain text, or their masks ({MASK}), are not copied to {context}: "
            + "; ".join(refused),
            hint=f"keep them in a config provider of the workers of {context}:"
            f" --set '{key}=${{provider:path:key}}'; or set them there once:"
            f" pyconnect --context {context} connectors patch NAME --set …",
        )
    return result


def _promoted(
    config: Config, there: Config, rules: Remapping
) -> tuple[dict[str, str | None], list[str]]:
    """Return the configuration, and the keys of secrets that cannot be copied."""
    result: dict[str, str | None] = {}
    secrets = []
    for key, value in config.items():
        if key in rules.values or key == "name":
            continue
        if not value or (MASK not in value and mask_value(key, value) == value):
            result[key] = rules.reference(value) if value else value
            continue
        kept = there.get(key)
        if kept and MASK not in kept:
            result[key] = kept
        else:
            result[key] = value
            secrets.append(key)
    result |= {key: value for key, value in rules.values.items() if value is not None}
    return result, sorted(secrets)
