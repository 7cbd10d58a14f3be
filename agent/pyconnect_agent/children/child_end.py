"""The end of a child process, in words for traces, answers and logs.

Layer: children. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from signal import Signals

from pyconnect_agent.channel import EXIT_LEASE_EXPIRED
from pyconnect_agent.core.process_exit import describe_exit

_NO_WORDS = "It left no traceback. "
_EXITED = "Plugin code may have called os._exit, or a native library exit."
_KILLED = "The system may have run out of memory (dmesg), or a user killed the process."
_CRASHED = "The worker's standard error may show what native code printed."
_SERVER_KILLED = "Its fork server was killed, and children cannot outlive that."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnd:
    """`exit_code`: -n after signal n, None if the process was not started or it is not known.

    `failure`: set if the exit code is not the cause: the process could not be started, or the
    worker process killed it at once. `reason`: the error behind a failure, else the traceback or
    crash report that the process left; "" without one.
    """

    exit_code: int | None
    failure: str = ""
    reason: str = ""

    @property
    def lease_expired(self) -> bool:
        return self.exit_code == EXIT_LEASE_EXPIRED

    def describe(self, process: str, remark: str = "") -> str:
        """Return a sentence that starts with `process` and ends with `remark`, and the reason."""
        return f"{process} {self._how()}{f' {remark}' if remark else ''}{self._why()}"

    def _how(self) -> str:
        if self.failure:
            return self.failure
        if self.exit_code is None:
            return "ended in an unknown way"
        return describe_exit(self.exit_code)

    def _why(self) -> str:
        if self.reason:
            return f":\n{self.reason}"
        if self.failure:
            return "."
        return f". {_NO_WORDS}{self._guess()}"

    def _guess(self) -> str:
        if self.exit_code is None:
            return _SERVER_KILLED
        if self.exit_code >= 0:
            return _EXITED
        return _KILLED if self.exit_code == -Signals.SIGKILL else _CRASHED
