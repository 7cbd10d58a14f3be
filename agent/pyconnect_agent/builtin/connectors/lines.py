"""Split a growing stream of bytes into lines, knowing the position after each.

Layer: builtin. A line ends with LF, CRLF or CR. A CR that is the last byte so far is held back: an
LF may follow. Bytes after the last terminator are kept until there is one.
"""

from __future__ import annotations

import re

_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\n|\r(?!\Z))")


class LineSplitter:
    """`position` is that after the last line returned, in bytes from the start of the stream."""

    def __init__(self, position: int = 0) -> None:
        self.position = position
        self._rest: list[bytes] = []

    def feed(self, data: bytes) -> tuple[list[bytes], list[int] | None]:
        """Return the lines that `data` completes, and the position after each of them.

        Positions None: every line was terminated by LF alone.
        """
        has_return = b"\r" in data or (bool(self._rest) and self._rest[-1].endswith(b"\r"))
        if not has_return:
            end = data.rfind(b"\n")
            if end < 0:
                if data:
                    self._rest.append(data)
                return [], None
            complete = data[:end] if not self._rest else b"".join((*self._rest, data[:end]))
            if b"\r" not in complete:
                self._rest = [data[end + 1 :]] if end + 1 < len(data) else []
                self.position += len(complete) + 1
                return complete.split(b"\n"), None
        return self._feed_any(b"".join((*self._rest, data)))

    def _feed_any(self, text: bytes) -> tuple[list[bytes], list[int]]:
        lines: list[bytes] = []
        positions: list[int] = []
        start, end = self.position, 0
        for match in _LINE.finditer(text):
            lines.append(match.group(1))
            end = match.end()
            positions.append(start + end)
        self._rest = [text[end:]] if end < len(text) else []
        self.position = start + end
        return lines, positions
