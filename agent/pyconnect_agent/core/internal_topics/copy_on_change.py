"""Mutable collections whose immutable copies are made only after changes.

Layer: core. A snapshot of a state with a hundred thousand tasks costs only the maps that changed
since the one before. One owner changes them; copies may go anywhere and must not be changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class CopyOnChangeTable(Generic[K, V]):
    """A dict that is copied for a snapshot only when it changed since the last one."""

    __slots__ = ("_copy", "live")

    def __init__(self) -> None:
        self.live: dict[K, V] = {}
        self._copy: dict[K, V] | None = {}

    def put(self, key: K, value: V) -> None:
        self.live[key] = value
        self._copy = None

    def remove(self, key: K) -> None:
        if self.live.pop(key, None) is not None:
            self._copy = None

    def frozen(self) -> Mapping[K, V]:
        if self._copy is None:
            self._copy = self.live.copy()
        return self._copy


class NameSet:
    """A set of connector names, copied like a `CopyOnChangeTable`."""

    __slots__ = ("_copy", "_live")

    def __init__(self) -> None:
        self._live: set[str] = set()
        self._copy: frozenset[str] | None = frozenset()

    def add(self, name: str) -> None:
        if name not in self._live:
            self._live.add(name)
            self._copy = None

    def remove(self, name: str) -> None:
        if name in self._live:
            self._live.remove(name)
            self._copy = None

    def frozen(self) -> frozenset[str]:
        if self._copy is None:
            self._copy = frozenset(self._live)
        return self._copy
