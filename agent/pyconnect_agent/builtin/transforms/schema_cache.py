"""Computed facts of a schema, cached for the schemas used last.

Layer: builtin. Corresponds to `schemaUpdateCache` in Kafka's transformations; serves one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from pyconnect_agent.builtin.converters.recent import RecentlyUsed
from pyconnect_api import Schema

V = TypeVar("V")

_SIZE = 16


class SchemaCache(Generic[V]):
    """Asks `work_out` once for each schema, as long as it is among the last 16."""

    __slots__ = ("_known", "_last", "_last_schema", "_work_out")

    def __init__(self, work_out: Callable[[Schema], V]) -> None:
        self._work_out = work_out
        self._known: RecentlyUsed[Schema, V] = RecentlyUsed(_SIZE)
        self._last_schema: Schema | None = None
        self._last: V

    def of(self, schema: Schema) -> V:
        """Return what was worked out; raises what `work_out` raises, each time."""
        # Most records have the schema object of the one before: no need to hash it.
        if schema is self._last_schema:
            return self._last
        found = self._known.get(schema)
        if found is None:
            found = self._work_out(schema)
            self._known.put(schema, found)
        self._last_schema, self._last = schema, found
        return found
