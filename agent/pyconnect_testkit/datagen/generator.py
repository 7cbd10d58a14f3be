"""Compiles an Avro schema with hints into a function that makes up records.

Layer: builtin. Pure: the n-th record depends on the random numbers given and n only. Hints are the
property `arg.properties` of a type, as those of Avro's random generator:

| hint        | of                  | meaning                                                    |
|-------------|---------------------|------------------------------------------------------------|
| `options`   | any                 | one of these values                                        |
| `range`     | numbers             | `min` up to, not including, `max`                          |
| `iteration` | numbers, booleans   | `start`, then `step` more each time, again at `restart`    |
| `regex`     | string              | a text that matches                                        |
| `length`    | texts, bytes, lists | a number, or `min` and `max`                               |
| `odds`      | boolean             | the probability of true                                    |
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from pyconnect_agent.builtin.converters.avro.names import LOGICAL, AvroOptions
from pyconnect_agent.builtin.converters.avro.reading import connect_schema, without_logical_types
from pyconnect_api import ConfigException, DataException, Schema, Struct
from pyconnect_testkit.datagen.text_pattern import text_maker

Datum = Callable[[Random, int], Any]
"""Makes the Avro form of a value of record `n`."""

_HINTS = "arg.properties"
_KNOWN_HINTS = frozenset({"options", "range", "iteration", "regex", "length", "odds"})
_INTEGER_RANGES = {"int": (-(2**31), 2**31), "long": (-(2**63), 2**63)}
_LOGICAL_RANGES = {
    "date": (0, 36_525),
    "time-millis": (0, 86_400_000),
    "timestamp-millis": (0, 2**42),
}
"""The hundred years and more after 1970; every time of day."""
_DEFAULT_LENGTH = (0, 16)
_LETTERS = string.ascii_lowercase


class RecordGenerator:
    """Makes structs of one schema."""

    def __init__(self, schema_text: str) -> None:
        """Compile; ConfigException when it is no record schema or a hint is wrong."""
        try:
            raw = json.loads(schema_text)
        except ValueError as error:
            raise ConfigException(f"The schema is not JSON: {error}") from error
        named: dict[str, Any] = {}
        resolved = resolve(without_logical_types(raw), named)
        if not isinstance(resolved, dict) or resolved.get("type") != "record":
            raise ConfigException("The schema must be an Avro record")
        try:
            self.schema, self._read = connect_schema(resolved, named, AvroOptions())
        except DataException as error:
            raise ConfigException(f"The schema cannot be used: {error}") from error
        self._datum = _Compilation(named).of(resolved)
        self._random = Random()

    def field_schema(self, name: str) -> Schema:
        """Return the schema of a field; ConfigException when there is none."""
        field = self.schema.field(name)
        if field is None:
            raise ConfigException(f"The schema has no field {name}")
        return field.schema

    def record(self, seed: str, number: int) -> Struct:
        """Return the record of that number, from 0; the same one for the same arguments."""
        self._random.seed(f"{seed}/{number}")
        value = self._read(self._datum(self._random, number))
        assert isinstance(value, Struct)
        return value


class _Compilation:
    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named

    def of(self, avro: Any) -> Datum:
        if isinstance(avro, list):
            branches = [self.of(branch) for branch in avro]
            return lambda random, number: random.choice(branches)(random, number)
        if isinstance(avro, str):
            avro = self._named.get(avro, {"type": avro})
        hints = avro.get(_HINTS, {})
        unknown = set(hints) - _KNOWN_HINTS
        if unknown:
            raise ConfigException(
                f"Unknown generator hints {', '.join(sorted(unknown))}; there are "
                f"{', '.join(sorted(_KNOWN_HINTS))}"
            )
        kind = avro["type"]
        if not isinstance(kind, str):
            return self.of({**kind, _HINTS: hints} if hints and isinstance(kind, dict) else kind)
        if kind in self._named:
            return self.of(kind)
        if "options" in hints:
            options = _typed_options(kind, hints["options"])
            return lambda random, _: random.choice(options)
        return self._of_kind(kind, avro, hints)

    def _of_kind(self, kind: str, avro: Mapping[str, Any], hints: Mapping[str, Any]) -> Datum:
        match kind:
            case "record":
                return self._record(avro)
            case "array":
                item, length = self.of(avro["items"]), _length(hints)
                return lambda random, n: [item(random, n) for _ in range(length(random))]
            case "map":
                item, length = self.of(avro["values"]), _length(hints)
                return lambda random, n: {
                    _word(random, 8): item(random, n) for _ in range(length(random))
                }
            case "enum":
                symbols = avro["symbols"]
                return lambda random, _: random.choice(symbols)
            case "fixed":
                size = avro["size"]
                return lambda random, _: random.randbytes(size)
            case "null":
                return lambda _, __: None
            case "boolean":
                return _boolean(hints)
            case "int" | "long" | "float" | "double":
                return _number(kind, avro.get(LOGICAL), hints)
            case "string":
                return _text(hints)
            case "bytes":
                length = _length(hints)
                return lambda random, _: random.randbytes(length(random))
        raise ConfigException(f"Unknown Avro type {kind}")

    def _record(self, avro: Mapping[str, Any]) -> Datum:
        members = [(field["name"], self.of(field["type"])) for field in avro["fields"]]
        return lambda random, n: {name: member(random, n) for name, member in members}


def _typed_options(kind: str, options: Any) -> list[Any]:
    if not isinstance(options, list) or not options:
        raise ConfigException("The hint options takes a list of values")
    return [float(value) for value in options] if kind in ("float", "double") else options


def _boolean(hints: Mapping[str, Any]) -> Datum:
    if "iteration" in hints:
        first = bool(hints["iteration"].get("start", False))
        return lambda _, n: first ^ bool(n % 2)
    odds = float(hints.get("odds", 0.5))
    return lambda random, _: random.random() < odds


def _number(kind: str, logical: str | None, hints: Mapping[str, Any]) -> Datum:
    is_integer = kind in _INTEGER_RANGES
    convert: type[int | float] = int if is_integer else float
    if "iteration" in hints:
        return _iteration(convert, hints["iteration"])
    lowest, highest = _LOGICAL_RANGES.get(logical or "") or _INTEGER_RANGES.get(kind, (0, 1))
    bounds = hints.get("range", {})
    low, high = convert(bounds.get("min", lowest)), convert(bounds.get("max", highest))
    if low >= high:
        raise ConfigException(f"The hint range is empty: {low} to {high}")
    if is_integer:
        return lambda random, _: random.randrange(int(low), int(high))
    return lambda random, _: low + (high - low) * random.random()


def _iteration(convert: type[int | float], hint: Mapping[str, Any]) -> Datum:
    if "start" not in hint:
        raise ConfigException("The hint iteration needs a start")
    start = convert(hint["start"])
    step = convert(hint.get("step", 1))
    if "restart" not in hint:
        return lambda _, n: start + n * step
    restart = convert(hint["restart"])
    steps = int(-(-(restart - start) // step)) if step else 0
    if steps < 1:
        raise ConfigException("The hint iteration never comes to its restart")
    return lambda _, n: start + n % steps * step


def _text(hints: Mapping[str, Any]) -> Datum:
    if "regex" in hints:
        make = text_maker(str(hints["regex"]))
        return lambda random, _: make(random)
    length = _length(hints)
    return lambda random, _: _word(random, length(random))


def _word(random: Random, length: int) -> str:
    return "".join(random.choices(_LETTERS, k=length))


def _length(hints: Mapping[str, Any]) -> Callable[[Random], int]:
    hint = hints.get("length")
    if isinstance(hint, int):
        return lambda _: hint
    low, high = _DEFAULT_LENGTH
    if isinstance(hint, dict):
        low, high = int(hint.get("min", 0)), int(hint.get("max", high))
    return lambda random: random.randrange(low, max(high, low + 1))


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
