"""Change this worker's phase of exactly-once: its file first, then its process.

Layer: herder. One run at a time: until the restart another run is refused. The REST resource starts
the restart after it has answered the request.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Any, Protocol

from pyconnect_agent.core.errors import BadRequestError, ConflictError, ForbiddenError
from pyconnect_agent.files.phase_file import PhaseFile

PHASES = ("disabled", "preparing", "enabled")
NOT_NEEDED = "not needed"
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class RestartPort(Protocol):
    """The restart of the worker; `method` is self, command or none."""

    @property
    def method(self) -> str: ...

    def begin(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSettings:
    """The phase settings at the start of the process; `phase` None: standalone."""

    allowed: bool
    phase: str | None
    sha256: str


class PhaseChange:
    """Owned by the event loop."""

    def __init__(self, settings: PhaseSettings, file: PhaseFile, restart: RestartPort) -> None:
        self._settings = settings
        self._file = file
        self._restart = restart
        self._changing = asyncio.Lock()
        self._run_id: str | None = None
        self._needed = False

    @property
    def restart_method(self) -> str:
        return self._restart.method

    async def last_run_id(self) -> str | None:
        """Return the run that changed the file last."""
        change = await asyncio.to_thread(self._file.last_change)
        return None if change is None else change.run_id

    async def change(self, phase: str, run_id: str, expected_sha256: str) -> dict[str, Any]:
        """Write the phase to the file; call `restart` next. Safe to repeat after a lost answer."""
        if phase not in PHASES:
            raise BadRequestError(f"'{phase}' is not a phase; use one of {', '.join(PHASES)}.")
        if not _RUN_ID.fullmatch(run_id):
            raise BadRequestError(f"'{run_id}' cannot be a run's id: letters, digits, . _ and -.")
        if not self._settings.allowed:
            raise ForbiddenError(
                "This worker's phase may not be changed over REST. Set"
                " agent.allow.phase.change=true in its properties and restart it, or change"
                " exactly.once.source.support there yourself."
            )
        if self._settings.phase is None:
            raise ConflictError("A standalone worker has no phase of exactly-once.")
        async with self._changing:
            if self._run_id not in (None, run_id):
                raise ConflictError(
                    f"Run {self._run_id} has changed the file; it is in force after a restart."
                    " Wait for that, then ask again."
                )
            sha256 = await asyncio.to_thread(self._file.change, phase, run_id, expected_sha256)
            self._needed = sha256 != self._settings.sha256
            # A change that needs no restart is complete.
            self._run_id = run_id if self._needed else None
        return {
            "phase": phase,
            "run_id": run_id,
            "config_sha256": sha256,
            "restart": self._restart.method if self._needed else NOT_NEEDED,
        }

    def restart(self) -> None:
        """Begin the restart if the phase that `change` wrote is not in force."""
        if self._needed:
            self._restart.begin()
