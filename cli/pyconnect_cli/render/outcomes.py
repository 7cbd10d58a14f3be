"""The outcome of each object of a batch: one record that every kind of output renders.

An object is "not tried" until its step begins and "unknown" until its step has ended, so the record
is true whenever a signal ends the run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pyconnect_cli.errors import PyconnectError


class Outcome(StrEnum):
    """The outcome of an object. UNKNOWN: a change was sent and may have taken effect."""

    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_TRIED = "not-tried"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectResult:
    """One object; `action` is in the past ("paused") once it is finished, otherwise the verb."""

    name: str
    action: str
    outcome: Outcome
    remark: str | None = None
    error: PyconnectError | None = None
    more: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the stable form for machines."""
        document: dict[str, object] = {
            "name": self.name,
            "action": self.action,
            "outcome": self.outcome.value,
            "ok": self.outcome is Outcome.DONE,
            **self.more,
        }
        if self.remark:
            document["detail"] = self.remark
        if self.error is not None:
            document |= {"error": self.error.message, "exit_code": int(self.error.exit_code)}
        return document


class BatchRecord:
    """The results of one batch. Each thread writes its object's result."""

    def __init__(self, verb: str = "", names: Sequence[str] = ()) -> None:
        self.verb = verb
        self._lock = threading.Lock()
        self._closed = False
        self._results = [
            ObjectResult(name=name, action=verb, outcome=Outcome.NOT_TRIED) for name in names
        ]

    def begin(self, index: int) -> bool:
        """Note that an object's step begins; return False when the batch has ended meanwhile."""
        with self._lock:
            if self._closed:
                return False
            under_way = PyconnectError(
                "still under way at the end of the run; it may have taken effect"
            )
            self._results[index] = ObjectResult(
                name=self._results[index].name,
                action=self.verb,
                outcome=Outcome.UNKNOWN,
                error=under_way,
            )
            return True

    def end(self, index: int, result: ObjectResult) -> None:
        """Keep an object's result; a result after the end of the batch is dropped."""
        with self._lock:
            if not self._closed:
                self._results[index] = result

    def close(self) -> None:
        """Freeze the record, because the results are reported now."""
        with self._lock:
            self._closed = True

    def results(self) -> tuple[ObjectResult, ...]:
        """Return the present results, in the order of the objects."""
        with self._lock:
            return tuple(self._results)

    @classmethod
    def of(cls, results: Sequence[ObjectResult]) -> BatchRecord:
        """Return a record of finished objects."""
        record = cls(names=[result.name for result in results])
        record._results = list(results)
        return record

    @classmethod
    def of_checks(cls, action: str, faults: Mapping[str, str | None]) -> BatchRecord:
        """Return a record of objects and the faults that a check found; None: no fault."""
        return cls.of(
            [
                ObjectResult(
                    name=name,
                    action=action,
                    outcome=Outcome.DONE if fault is None else Outcome.FAILED,
                    error=None if fault is None else PyconnectError(fault),
                )
                for name, fault in faults.items()
            ]
        )


def counted(results: Iterable[ObjectResult]) -> dict[Outcome, int]:
    counts = dict.fromkeys(Outcome, 0)
    for result in results:
        counts[result.outcome] += 1
    return counts


def summary(results: Sequence[ObjectResult]) -> str:
    """Return `1 of 3 failed: a; not tried: b`; empty when everything is done."""
    parts: list[str] = []
    for outcome, words in (
        (Outcome.FAILED, "failed"),
        (Outcome.UNKNOWN, "may have taken effect"),
        (Outcome.NOT_TRIED, "not tried"),
    ):
        names = [result.name for result in results if result.outcome is outcome]
        if names:
            share = "" if parts else f"{len(names)} of {len(results)} "
            parts.append(f"{share}{words}: {', '.join(names)}")
    return "; ".join(parts)
