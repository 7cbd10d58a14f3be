"""The journal of repairs: the repairs of this user, and a file of rows for each.

started → applied → verified
   └─────────┴─────────┴→ undoing → undone
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import TypeAlias

from pyconnect_cli.acting.journal import JournalFile, entries_of
from pyconnect_cli.directories import expired, new_identity, state_directory
from pyconnect_cli.errors import Conflict, NotFound
from pyconnect_cli.reconcile.connectors import SINK


class RepairState(Enum):
    """The last change of a repair's state in the journal."""

    STARTED = "started"
    APPLIED = "applied"
    VERIFIED = "verified"
    UNDOING = "undoing"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairStarted:
    """The user agreed to the plan; `report` is the directory of the report that it follows.

    `connector`: the target of the audit, which is LEFT,RIGHT where `job` compares topics. `table`
    and `rows`: the changed table and its rows, or a topic and its records. `snapshot`: of Iceberg.
    """

    id: str
    report: str
    connector: str
    table: str
    rows: int
    job: str = SINK
    snapshot: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairProgress:
    """Progress of a repair: `done` of `total` changes are committed."""

    id: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairChanged:
    """The repair has another state, and an Iceberg table another snapshot."""

    id: str
    state: str
    snapshot: int | None = None


_Entry: TypeAlias = RepairStarted | RepairProgress | RepairChanged


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A repair that was started, and its state."""

    begun: RepairStarted
    state: RepairState = RepairState.STARTED

    @property
    def id(self) -> str:
        return self.begun.id


def replayed(entries: Iterable[_Entry]) -> dict[str, Repair]:
    """Return the repairs of a journal by their ids, the oldest first."""
    found: dict[str, Repair] = {}
    for entry in entries:
        match entry:
            case RepairStarted():
                found[entry.id] = Repair(begun=entry)
            case RepairChanged():
                found[entry.id] = replace(found[entry.id], state=RepairState(entry.state))
            case RepairProgress():
                pass
    return found


class Repairs:
    """The journal of repairs and the files of their rows. Changes happen in `journal.lock`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.directory = state_directory(environ) / "repairs"
        busy = Conflict(
            "another repair of this user is running on this host", hint="wait for its end"
        )
        self.journal = JournalFile(self.directory, "journal", busy=busy)

    def all(self) -> dict[str, Repair]:
        return replayed(entries_of(self.journal.path, _Entry))

    def unfinished(self, report: str) -> Repair | None:
        """Return the report's repair that was started and neither verified nor undone."""
        ended = {RepairState.VERIFIED, RepairState.UNDONE}
        of_report = [each for each in self.all().values() if each.begun.report == report]
        return next((each for each in reversed(of_report) if each.state not in ended), None)

    def find(self, identity: str | None) -> Repair:
        """Return a repair by its id; without one the newest that is not undone. NotFound."""
        found = self.all()
        if identity is None:
            undoable = [each for each in found.values() if each.state is not RepairState.UNDONE]
            if not undoable:
                raise NotFound("there is no repair that could be undone")
            return undoable[-1]
        if identity not in found:
            known = ", ".join(found) or "none"
            raise NotFound(f"there is no repair {identity}", hint=f"repairs of this user: {known}")
        return found[identity]

    def new_id(self) -> str:
        """Return the id of a new repair; rows of repairs older than KEPT_DAYS are removed."""
        now = datetime.now(UTC)
        for path in self.directory.glob("*.rows"):
            if expired(path.stem, now):
                path.unlink(missing_ok=True)
        return new_identity(now)

    def rows(self, identity: str) -> Path:
        """Return the file of a repair's rows, before and after it."""
        return self.directory / f"{identity}.rows"

    def note(self, identity: str, state: RepairState, snapshot: int | None = None) -> None:
        """Write the new state of a repair."""
        entry = RepairChanged(id=identity, state=state.value, snapshot=snapshot)
        self.journal.append(entry)
