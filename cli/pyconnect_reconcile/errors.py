"""The one error of reconciliation: why a run could not tell. Exit code 2."""

from __future__ import annotations


class ReconcileError(Exception):
    """A run cannot begin or go on; `message` says what and why, `hint` what to do."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
