"""Reads files of client properties, and resolves their references. Edge: files and the environment.

References ``${provider:[path:]key}`` are looked up as Java's clients do (``config.providers``,
KIP-421), with the providers that Kafka ships: files, directories and environment variables.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from pyconnect_clients.config_values import Variable, find_variables, replace_variables
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.security import SECURITY_PREFIXES

PROVIDERS = "config.providers"

_Parameters = Mapping[str, str]


class _NotAllowedError(Exception):
    """The error of a reference's path that its provider may not read."""


def read_client_properties(path: str) -> dict[str, str]:
    """Return a file's properties with resolved references; raises ClientPropertyError."""
    return with_references(load_properties(path))


def load_properties(path: str) -> dict[str, str]:
    """Return a file's properties as they are written; raises ClientPropertyError."""
    import javaproperties

    try:
        return dict(javaproperties.loads(Path(path).expanduser().read_text("utf-8")))
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or exc
        raise ClientPropertyError(path, f"cannot be read: {reason}") from exc


def with_references(
    properties: Mapping[str, str], prefixes: tuple[str, ...] = SECURITY_PREFIXES
) -> dict[str, str]:
    """Return the properties, with references replaced in those with these prefixes.

    Without `config.providers` no text is a reference. Raises ClientPropertyError for a reference to
    nothing and for other providers: clients would use the text of the reference as a login.
    """
    names = [name.strip() for name in properties.get(PROVIDERS, "").split(",")]
    resolved = dict(properties)
    for key, text in properties.items():
        if not key.startswith(prefixes):
            continue
        wanted = [variable for variable in find_variables(text) if variable.provider in names]
        found = {variable: _found(properties, key, variable) for variable in wanted}
        resolved[key] = replace_variables(text, found)
    return resolved


def _found(properties: Mapping[str, str], key: str, variable: Variable) -> str:
    prefix = f"{PROVIDERS}.{variable.provider}."
    class_name = properties.get(f"{prefix}class", "").strip()
    look_up = _LOOK_UPS.get(class_name.rpartition(".")[2])
    if look_up is None:
        raise ClientPropertyError(
            f"{prefix}class",
            f"{class_name or 'nothing'} cannot be asked for {key}",
            f"use one of {', '.join(_LOOK_UPS)}, or write the value itself",
        )
    parameters = {
        name.removeprefix(f"{prefix}param."): text.strip()
        for name, text in properties.items()
        if name.startswith(f"{prefix}param.")
    }
    try:
        value = look_up(variable, parameters)
    except _NotAllowedError as exc:
        raise ClientPropertyError(
            key,
            f"its reference cannot be read: {exc} is not allowed",
            f"add it to {prefix}param.allowed.paths",
        ) from exc
    except (OSError, UnicodeDecodeError) as exc:
        reason = getattr(exc, "strerror", None) or "it is not UTF-8"
        raise ClientPropertyError(
            key, f"its reference cannot be read: {variable.path}: {reason}"
        ) from exc
    if value is None:
        raise ClientPropertyError(
            key, f"it refers to {variable.path or variable.provider}, where {variable.key} is not"
        )
    return value


def _in_file(variable: Variable, parameters: _Parameters) -> str | None:
    path = _allowed(Path(variable.path), parameters)
    return load_properties(str(path)).get(variable.key)


def _in_directory(variable: Variable, parameters: _Parameters) -> str | None:
    path = _allowed(Path(variable.path) / variable.key, parameters)
    return path.read_bytes().decode() if path.is_file() else None


def _in_environment(variable: Variable, parameters: _Parameters) -> str | None:
    if not re.fullmatch(parameters.get("allowlist.pattern", ".*"), variable.key):
        return None
    return os.environ.get(variable.key)


def _allowed(path: Path, parameters: _Parameters) -> Path:
    roots = [root.strip() for root in parameters.get("allowed.paths", "").split(",")]
    resolved = path.resolve()
    allowed = [Path(root).resolve() for root in roots if root]
    if allowed and not any(resolved.is_relative_to(root) for root in allowed):
        raise _NotAllowedError(str(path))
    return resolved


_LOOK_UPS: Mapping[str, Callable[[Variable, _Parameters], str | None]] = {
    "FileConfigProvider": _in_file,
    "DirectoryConfigProvider": _in_directory,
    "EnvVarConfigProvider": _in_environment,
}
