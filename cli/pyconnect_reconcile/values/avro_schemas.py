"""Avro schemas made ready for Spark's `from_avro`. Pure.

A value is read as a record of two fields: the value, and a mark that the reader has put behind it.
Avro writes the fields of a record one after the other and nothing else, so the bytes are the
value's own. Where the mark does not come out as it was put in, the value was no value of that
schema: too long, too short, or something else. `from_avro` alone says nothing of what follows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

MARK = bytes.fromhex("1d5e0ff1c3b7a942")
# Connect's decimals say 64 where they do not know; the bytes are the same whatever it says.
MOST_DIGITS = 38
VALUE, END = "value", "end"
MICROS = "time-micros"
_NAMED = ("record", "enum", "fixed", "error")
Json = object


def framed_schema(text: str, references: Sequence[str] = ()) -> str:
    """Return the schema of value and mark, with the schemas it refers to written into it.

    Raises ValueError when a text is no JSON.
    """
    known: dict[str, Json] = {}
    for reference in references:
        _collect(json.loads(reference), "", known)
    value = _inlined(json.loads(text), "", known, set())
    mark = {"type": "fixed", "name": "pyconnect_mark", "size": len(MARK)}
    fields = [{"name": VALUE, "type": value}, {"name": END, "type": mark}]
    return json.dumps({"type": "record", "name": "pyconnect_framed", "fields": fields})


def micro_clocks(framed: str) -> list[str] | None:
    """Return the fields of the value that are times of day in microseconds; `framed_schema` text.

    Spark reads them as plain numbers. None: such times are elsewhere in the value.
    """
    value = json.loads(framed)["fields"][0]["type"]
    fields = value.get("fields", ()) if isinstance(value, dict) else ()
    found = []
    for field in fields:
        kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
        if any(isinstance(kind, dict) and kind.get("logicalType") == MICROS for kind in kinds):
            found.append(str(field["name"]))
    return found if framed.count(f'"{MICROS}"') == len(found) else None


def _full_name(schema: Mapping[str, Json], namespace: str) -> tuple[str, str]:
    name = str(schema.get("name", ""))
    if "." in name:
        return name, name.rpartition(".")[0]
    inside = str(schema.get("namespace", namespace))
    return (f"{inside}.{name}" if inside else name), inside


def _collect(schema: Json, namespace: str, known: dict[str, Json]) -> None:
    """Note every named type that a schema defines, with its namespace written out."""
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, namespace, known)
    elif isinstance(schema, Mapping):
        inside = namespace
        if schema.get("type") in _NAMED:
            name, inside = _full_name(schema, namespace)
            known[name] = {**schema, "namespace": inside}
        for part in _parts(schema):
            _collect(part, inside, known)


def _parts(schema: Mapping[str, Json]) -> list[Json]:
    parts = [schema[name] for name in ("items", "values") if name in schema]
    kind = schema.get("type")
    if isinstance(kind, Mapping | list):
        parts.append(kind)
    fields = schema.get("fields")
    if isinstance(fields, list):
        parts += [field["type"] for field in fields]
    return parts


def _inlined(schema: Json, namespace: str, known: Mapping[str, Json], defined: set[str]) -> Json:
    """Return the schema with the first use of each type of `known` replaced by its definition."""
    if isinstance(schema, str):
        name = schema if "." in schema or not namespace else f"{namespace}.{schema}"
        if name not in known or name in defined:
            return schema
        return _inlined(known[name], "", known, defined)
    if isinstance(schema, list):
        return [_inlined(branch, namespace, known, defined) for branch in schema]
    assert isinstance(schema, Mapping)
    result: dict[str, Json] = dict(schema)
    inside = namespace
    if schema.get("type") in _NAMED:
        name, inside = _full_name(schema, namespace)
        defined.add(name)
    precision = schema.get("precision")
    if schema.get("logicalType") == "decimal" and isinstance(precision, int):
        result["precision"] = min(precision, MOST_DIGITS)
    for member in ("items", "values"):
        if member in schema:
            result[member] = _inlined(schema[member], inside, known, defined)
    kind = schema.get("type")
    if isinstance(kind, Mapping | list) or (isinstance(kind, str) and kind not in _NAMED):
        result["type"] = _inlined(kind, inside, known, defined)
    fields = schema.get("fields")
    if isinstance(fields, list):
        result["fields"] = [
            {**field, "type": _inlined(field["type"], inside, known, defined)} for field in fields
        ]
    return result
