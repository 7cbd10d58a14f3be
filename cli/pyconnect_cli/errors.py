"""One error tree of the command line: a message, a hint, an exit code."""

from __future__ import annotations


class PyconnectError(Exception):
    """Something a user is told about in words, never as a traceback."""

    exit_code: int = 10

    def __init__(
        self, message: str, *, hint: str | None = None, exit_code: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if exit_code is not None:
            self.exit_code = exit_code
