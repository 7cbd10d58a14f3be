"""Avro files: one schema of all of them, with which Spark reads each.

Spark takes the schema of one file otherwise, and leaves out the fields that only others have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pyconnect_clients.installation import install_command
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.files import is_local, local_files

READER_SCHEMA = "avroSchema"
"""Spark's option with the schema as JSON."""
UNIT = "pyconnect.unit"
"""The member of a type that says of what a number is the time of day: `ms` or `us`."""
_UNITS = {"time-millis": "ms", "time-micros": "us"}
_MOST_DIGITS = 38
# Documentation, defaults and what Connect's converter adds do not change how a value is read.
_READ = frozenset(
    {"type", "name", "namespace", "fields", "items", "values", "symbols", "size", "logicalType"}
    | {"precision", "scale"}
)


def reader_schema(paths: Sequence[str], given: str | None) -> str:
    """Return the schema of the records of all files as JSON; a field that some lack may be null.

    `given` is used instead of theirs. ReconcileError for files that are not local, that have no
    schema in common, or that have times of day within arrays, maps or records.
    """
    if given is not None:
        return json.dumps(merged({given: READER_SCHEMA}))
    if remote := [path for path in paths if not is_local(path)]:
        raise ReconcileError(
            f"{remote[0]}: the schemas of its Avro files cannot be read from here",
            hint=f'give the schema that has every field: options of the side, "{READER_SCHEMA}"',
        )
    return json.dumps(merged(dict(_schemas(paths))))


def merged(schemas: dict[str, str]) -> dict[str, Any]:
    """Return the schema that reads records of every schema; `schemas`: JSON to a file with it."""
    fields: dict[str, Any] = {}
    found: list[dict[str, Any]] = []
    for text, file in schemas.items():
        schema = _readable(json.loads(text))
        if not isinstance(schema, dict) or schema["type"] != "record":
            raise ReconcileError(f"{file}: its values are not records, so they are not rows")
        found.append(schema)
        for field in schema["fields"]:
            known = fields.setdefault(field["name"], field)
            if any(UNIT not in kind and UNIT in json.dumps(kind) for kind in _kinds(field)):
                raise ReconcileError(f"{file}: the field {field['name']} has times of day within")
            if known["type"] != field["type"]:
                raise ReconcileError(
                    f"{file}: the field {field['name']} has another type than in other files",
                    hint="audit the files of each schema by themselves: --files",
                )
    everywhere = set(fields).intersection(
        *({field["name"] for field in schema["fields"]} for schema in found)
    )
    for name in fields.keys() - everywhere:
        nullable = ["null", *(kind for kind in _kinds(fields[name]) if kind != "null")]
        fields[name] = {"name": name, "type": nullable, "default": None}
    return {**found[0], "fields": list(fields.values())}


def clock_units(schema: str) -> dict[str, str]:
    """Return the units of the fields that are times of day, which Spark reads as numbers."""
    fields = json.loads(schema)["fields"]
    return {field["name"]: kind[UNIT] for field in fields for kind in _kinds(field) if UNIT in kind}


def _kinds(field: dict[str, Any]) -> list[Any]:
    kinds = field["type"]
    return kinds if isinstance(kinds, list) else [kinds]


def _schemas(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    try:
        import fastavro
    except ImportError as exc:
        raise ReconcileError(
            "the schemas of Avro files are read with fastavro, which is not installed",
            hint=f"install it: {install_command('avro')}",
        ) from exc
    for path in local_files(paths):
        with path.open("rb") as file:
            try:
                yield fastavro.reader(file).metadata["avro.schema"], str(path)
            except (ValueError, EOFError, KeyError) as exc:
                raise ReconcileError(f"{path} is not an Avro file: {exc}") from exc


def _readable(schema: Any) -> Any:
    """Return what decides how values are read; decimals with the most digits that Spark has.

    Connect's converter declares 64 digits for a decimal without a precision. Spark ends with an
    error at a value that has more than it declares.
    """
    if isinstance(schema, list):
        return [_readable(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _readable(value) for name, value in schema.items() if name in _READ}
    kind = found.get("logicalType")
    if kind == "decimal":
        found["precision"] = min(found["precision"], _MOST_DIGITS)
    return {"type": found["type"], UNIT: _UNITS[kind]} if kind in _UNITS else found
