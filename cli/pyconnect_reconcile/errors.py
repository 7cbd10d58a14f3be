"""Why a run has no answer.

ReconcileError        a run cannot begin or go on; exit code 11
├── InvalidQuestion   the spec cannot be read, or asks what cannot be done; exit code 2
└── RecordsRemoved    records of the range were gone when they were read; becomes a finding
"""

from __future__ import annotations


class ReconcileError(Exception):
    """A run cannot begin or go on; `message` says what and why, `hint` what to do."""

    exit_code = 11

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidQuestion(ReconcileError):
    """The spec asks what cannot be done; raised by `spark.connect`."""

    exit_code = 2


class RecordsRemoved(ReconcileError):
    """Records of the range were removed before Spark had read them; raised by `spark_errors`."""


class NotAuditable(ReconcileError):
    """The data is such that the job cannot answer: the run leaves a report that says why."""
