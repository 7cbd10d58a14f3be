"""Names of fields as configured: a single name, or a path into nested data.

Layer: builtin. Corresponds to `SingleFieldPath` and `FieldSyntaxVersion` (KIP-821). In version V2
steps are separated by dots. A step in backticks may contain dots; a backtick in it that a dot or
the end follows is escaped by a backslash, any other stands for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyconnect_agent.builtin.transforms.requirements import require_map, require_struct
from pyconnect_api import ConfigException, Field, Schema, Struct

_PURPOSE = "nested field access"


class FieldPath:
    """The path of a field in a schema, a struct or a map."""

    __slots__ = ("_last", "_outer", "steps")

    def __init__(self, text: str, syntax_version: str) -> None:
        """Read the text; `syntax_version` is V1 or V2. ConfigException for a lone backtick."""
        self.steps: tuple[str, ...] = (text,) if syntax_version == "V1" else tuple(_steps(text))
        self._outer, self._last = self.steps[:-1], self.steps[-1]

    def field_of(self, schema: Schema) -> Field | None:
        """Return the field, None if a step is missing; DataException if one is not a struct."""
        for step in self._outer:
            field = schema.field(step)
            if field is None:
                return None
            schema = field.schema
        return schema.field(self._last)

    def value_of_struct(self, struct: Struct, *, with_default: bool) -> object:
        """Return the value, None if a step is missing or None.

        Structs on the way are read with their defaults in any case.
        """
        for step in self._outer:
            if struct.schema.field(step) is None:
                return None
            inner = struct.get(step)
            if inner is None:
                return None
            struct = require_struct(inner, _PURPOSE)
        if struct.schema.field(self._last) is None:
            return None
        return struct.get(self._last) if with_default else struct.get_without_default(self._last)

    def value_of_map(self, value: dict[Any, Any]) -> object:
        """Return the value, None if a step is missing or None."""
        for step in self._outer:
            inner = value.get(step)
            if inner is None:
                return None
            value = require_map(inner, _PURPOSE)
        return value.get(self._last)


def _steps(path: str) -> Iterator[str]:
    """Yield the steps of a path in V2."""
    position = 0
    while position < len(path):
        if path[position] == "`":
            step, position = _quoted_step(path, position)
            yield step
        else:
            end = path.find(".", position)
            yield path[position : end if end >= 0 else len(path)]
            position = end + 1 if end >= 0 else len(path)
    if not path or path.endswith("."):
        yield ""


def _quoted_step(path: str, opening: int) -> tuple[str, int]:
    """Return the step in backticks that starts at `opening`, and where the next one starts."""
    step = ""
    start = search_from = opening + 1
    while True:
        closing = path.find("`", search_from)
        at_end = closing == len(path) - 1
        escaped = closing > 0 and path[closing - 1] == "\\"
        if closing < 0 or (at_end and escaped):
            raise ConfigException(
                f"Incomplete backtick pair in path: [{path}], consider adding a backslash before "
                f"backtick at position {opening} to escape it"
            )
        if at_end or (path[closing + 1] == "." and not escaped):
            return step + path[start:closing], closing + 2
        if path[closing + 1] == ".":
            step += path[start : closing - 1] + "`"
            start = closing + 1
        search_from = closing + 1
