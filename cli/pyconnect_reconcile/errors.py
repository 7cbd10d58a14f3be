"""Why a run could not decide; exit code 11.

ReconcileError        a run cannot begin or go on
└── RecordsRemoved    records of the range were gone when they were read; becomes a finding
"""

from __future__ import annotations


class ReconcileError(Exception):
    """A run cannot begin or go on; `message` says what and why, `hint` what to do."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class RecordsRemoved(ReconcileError):
    """Records of the range were removed before Spark had read them; raised by `spark_errors`."""
