r"""Compiles an Avro schema with hints into a function that makes up records.

Pure: the n-th record depends on the random numbers given and n only. Hints are the property
`arg.properties` of a type, as those of Avro's random generator:

| hint        | of                  | meaning                                                    |
|-------------|---------------------|------------------------------------------------------------|
| `options`   | any                 | one of these values                                        |
| `range`     | numbers             | `min` up to, not including, `max`                          |
| `iteration` | numbers, booleans   | `start`, then `step` more each time, again at `restart`    |
| `regex`     | string              | a text that matches                                        |
| `length`    | texts, bytes, lists | a number, or `min` and `max`                               |
| `odds`      | boolean             | the probability of true                                    |

A `regex` may have literals, `.`, `[...]`, `\d`, `\w`, `\s`, groups, `|`, and the quantifiers `?`,
`*`, `+`, `{n}`, `{n,}`, `{n,m}`. Unbounded ones repeat at most eight times more than they must.
"""

import json
import string
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from pyconnect_agent.builtin.converters.avro.reading import connect_schema, without_logical_types
from pyconnect_agent.builtin.converters.avro.writing import LOGICAL, AvroOptions
from pyconnect_api import ConfigException, DataException, Schema, Struct

Make = Callable[[Random], str]

_MORE = 8
_CLASSES = {"d": string.digits, "w": string.ascii_letters + string.digits + "_", "s": " \t"}
_ANY = string.ascii_letters + string.digits


def text_maker(pattern: str) -> Make:
    """Return a function that makes matching texts.

    Raises ConfigException for an unknown construct.
    """
    parser = _Parser(pattern)
    make = parser.alternatives()
    if parser.position != len(pattern):
        raise parser.refused()
    return make


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.position = 0

    def refused(self) -> ConfigException:
        return ConfigException(
            f"The regex {self._pattern!r} of a generator is not understood at {self.position}"
        )

    def alternatives(self) -> Make:
        choices = [self._sequence()]
        while self._take("|"):
            choices.append(self._sequence())
        return choices[0] if len(choices) == 1 else lambda random: random.choice(choices)(random)

    def _sequence(self) -> Make:
        parts: list[Make] = []
        while self.position < len(self._pattern) and self._pattern[self.position] not in "|)":
            parts.append(self._quantified(self._atom()))
        return lambda random: "".join([part(random) for part in parts])

    def _atom(self) -> Make:
        character = self._next()
        match character:
            case "(":
                if self._take("?:"):
                    pass
                inner = self.alternatives()
                if not self._take(")"):
                    raise self.refused()
                return inner
            case "[":
                return _one_of(self._set())
            case ".":
                return _one_of(_ANY)
            case "\\":
                escaped = self._next()
                return _one_of(_CLASSES.get(escaped, escaped))
            case "^" | "$":
                return lambda _: ""
            case "*" | "+" | "?" | "{":
                raise self.refused()
        return lambda _: character

    def _quantified(self, make: Make) -> Make:
        least, most = 1, 1
        if self._take("?"):
            least, most = 0, 1
        elif self._take("*"):
            least, most = 0, _MORE
        elif self._take("+"):
            least, most = 1, 1 + _MORE
        elif self._take("{"):
            end = self._pattern.find("}", self.position)
            low, comma, high = self._pattern[self.position : end].partition(",")
            if end < 0 or not low.isdigit() or (high and not high.isdigit()):
                raise self.refused()
            self.position = end + 1
            least = most = int(low)
            if comma:
                most = int(high) if high else least + _MORE
        if (least, most) == (1, 1):
            return make
        return lambda random: "".join([make(random) for _ in range(random.randint(least, most))])

    def _set(self) -> str:
        if self._take("^"):
            raise self.refused()
        members = ""
        while not self._take("]"):
            character = self._next()
            if character == "\\":
                escaped = self._next()
                members += _CLASSES.get(escaped, escaped)
            elif self._pattern[self.position : self.position + 1] == "-" and (
                self._pattern[self.position + 1 : self.position + 2] not in ("]", "")
            ):
                self.position += 1
                members += "".join(map(chr, range(ord(character), ord(self._next()) + 1)))
            else:
                members += character
        if not members:
            raise self.refused()
        return members

    def _next(self) -> str:
        if self.position >= len(self._pattern):
            raise self.refused()
        self.position += 1
        return self._pattern[self.position - 1]

    def _take(self, text: str) -> bool:
        if self._pattern.startswith(text, self.position):
            self.position += len(text)
            return True
        return False


def _one_of(characters: str) -> Make:
    return lambda random: random.choice(characters)


Datum = Callable[[Random, int], Any]
"""Makes the value of record `n` in its Avro form."""

_HINTS = "arg.properties"
_KNOWN_HINTS = frozenset({"options", "range", "iteration", "regex", "length", "odds"})
_INTEGER_RANGES = {"int": (-(2**31), 2**31), "long": (-(2**63), 2**63)}
_LOGICAL_RANGES = {
    "date": (0, 36_525),
    "time-millis": (0, 86_400_000),
    "timestamp-millis": (0, 2**42),
}
"""Ranges from 1970 on, of more than a hundred years; every time of the day."""
_DEFAULT_LENGTH = (0, 16)
_LETTERS = string.ascii_lowercase


class RecordGenerator:
    """Makes structs of one schema."""

    def __init__(self, schema_text: str) -> None:
        """Compile the schema; raise ConfigException when it is not a record or a hint is wrong."""
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
        """Return the schema of a field. Raises ConfigException when there is no such field."""
        field = self.schema.field(name)
        if field is None:
            raise ConfigException(f"The schema has no field {name}")
        return field.schema

    def record(self, seed: str, number: int) -> Struct:
        """Return record `n`, counted from 0; the same arguments give the same record."""
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
            options = hints["options"]
            if not isinstance(options, list) or not options:
                raise ConfigException("The hint options takes a list of values")
            if kind in ("float", "double"):
                options = [float(value) for value in options]
            return lambda random, _: random.choice(options)
        return self._of_kind(kind, avro, hints)

    def _of_kind(self, kind: str, avro: Mapping[str, Any], hints: Mapping[str, Any]) -> Datum:
        match kind:
            case "record":
                members = [(field["name"], self.of(field["type"])) for field in avro["fields"]]
                return lambda random, n: {name: member(random, n) for name, member in members}
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
                if "iteration" in hints:
                    first = bool(hints["iteration"].get("start", False))
                    return lambda _, n: first ^ bool(n % 2)
                odds = float(hints.get("odds", 0.5))
                return lambda random, _: random.random() < odds
            case "int" | "long" | "float" | "double":
                return _number(kind, avro.get(LOGICAL), hints)
            case "string":
                if "regex" in hints:
                    make = text_maker(str(hints["regex"]))
                    return lambda random, _: make(random)
                length = _length(hints)
                return lambda random, _: _word(random, length(random))
            case "bytes":
                length = _length(hints)
                return lambda random, _: random.randbytes(length(random))
        raise ConfigException(f"Unknown Avro type {kind}")


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
        full_names = (schema,) if schema in _PRIMITIVES else (_full_name(schema, namespace), schema)
        for name in full_names:
            if name in named or name in _PRIMITIVES:
                return name
        raise ConfigException(
            f"The Avro schema refers to the type {schema}, which it does not define"
        )
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
