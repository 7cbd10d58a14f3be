"""Resolves the names in an Avro schema without an Avro library.

Layer: builtin. Pure. The result has what `avro.reading` needs: every named type under its full
name, and references by full name.
"""

from __future__ import annotations

from typing import Any

from pyconnect_api import ConfigException

_NAMED = ("record", "enum", "fixed")
_PRIMITIVES = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string", "array", "map"}
)


def resolve(schema: Any, named: dict[str, Any], namespace: str = "") -> Any:  # JSON
    """Return the schema with full names, and put its named types into `named`.

    ConfigException when it refers to a type that it does not define before.
    """
    if isinstance(schema, list):
        return [resolve(branch, named, namespace) for branch in schema]
    if isinstance(schema, str):
        return schema if schema in _PRIMITIVES else _reference(schema, named, namespace)
    if not isinstance(schema, dict) or "type" not in schema:
        raise ConfigException(f"Not an Avro schema: {schema}")
    resolved = dict(schema)
    if schema["type"] in _NAMED:
        full_name = _full_name(str(schema["name"]), str(schema.get("namespace", namespace)))
        resolved["name"] = full_name
        named[full_name] = resolved
        inner = full_name.rpartition(".")[0]
        if schema["type"] == "record":
            resolved["fields"] = [
                {**field, "type": resolve(field["type"], named, inner)}
                for field in schema["fields"]
            ]
        return resolved
    for part in ("items", "values"):
        if part in schema:
            resolved[part] = resolve(schema[part], named, namespace)
    if not isinstance(schema["type"], str) or schema["type"] not in _PRIMITIVES:
        resolved["type"] = resolve(schema["type"], named, namespace)
    return resolved


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _reference(name: str, named: dict[str, Any], namespace: str) -> str:
    for candidate in (_full_name(name, namespace), name):
        if candidate in named:
            return candidate
    raise ConfigException(f"The Avro schema refers to the type {name}, which it does not define")
