"""Source offsets of the rows of a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import overload

_Offset = Mapping[str, object]


class LazyOffsets(Sequence[_Offset]):
    """Offsets of numbered rows. Each is made when it is read: most are never read."""

    def __init__(self, rows: range, offset: Callable[[int], _Offset]) -> None:
        self._rows = rows
        self._offset = offset

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> _Offset: ...
    @overload
    def __getitem__(self, index: slice) -> LazyOffsets: ...
    def __getitem__(self, index: int | slice) -> _Offset | LazyOffsets:
        if isinstance(index, slice):
            return LazyOffsets(self._rows[index], self._offset)
        return self._offset(self._rows[index])
