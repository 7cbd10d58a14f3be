"""One error tree of the command line: a message, a hint, an exit code.

Every failure that is reported to a user is one of these; `__main__` prints `message` and
`hint` on stderr and exits with `exit_code`. A Python traceback is shown with `--debug` only.

Exit code 75 (an operator has to act, then run the command again) is returned, not raised.
"""

from enum import IntEnum
from typing import Self


class ExitCode(IntEnum):
    """Exit codes; each has the same meaning for every command."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        """Keep the meaning beside the number."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    OK = 0, "success, or nothing to change"
    NEGATIVE = 1, "negative result: a difference, an audit mismatch, a failed check"
    USAGE = 2, "usage: arguments, an unusable file, a configuration the worker refuses"
    NOT_FOUND = 3, "not found: connector, task, plugin, context, or nothing selected"
    NOT_AUTHENTICATED = 4, "not authenticated (HTTP 401)"
    FORBIDDEN = 5, "forbidden (HTTP 403), or an ACL is missing"
    CONFLICT = 6, "conflict after retries (HTTP 409), or another run holds the lock"
    UNREACHABLE = 7, "unreachable: no worker answered"
    PARTIAL_FAILURE = 8, "part of a batch failed"
    PRECONDITION = 9, "precondition not met: not STOPPED, not confirmed, version"
    SERVER_ERROR = 10, "server error (HTTP 5xx), not Connect's answer, or an internal error"
    UNDECIDED = 11, "an audit could not decide: its report or its message says why"
    OUTPUT_LOST = 74, "output cannot be written, as on a full disk; the work itself is done"
    NEEDS_OPERATOR = 75, "an operator's step is needed; run the command again after it"
    TIMED_OUT = 124, "a wait timed out"
    INTERRUPTED = 130, "interrupted"


class PyconnectError(Exception):
    """A failure that is reported to a user in words, never as a traceback."""

    exit_code: int = ExitCode.NEGATIVE

    def __init__(
        self, message: str, *, hint: str | None = None, exit_code: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if exit_code is not None:
            self.exit_code = int(exit_code)


class UsageError(PyconnectError):
    """Arguments, options or an input file that cannot be used."""

    exit_code = ExitCode.USAGE


class ContextError(UsageError):
    """A context file that is wrong or unsafe, or lacks the requested key; raised by `contexts`."""


class RejectedRequest(UsageError):
    """The worker understood the request and refused it; raised by `client`."""


class NotFound(PyconnectError):
    """No object of that name, or a selection that matches nothing."""

    exit_code = ExitCode.NOT_FOUND


class NotAuthenticated(PyconnectError):
    """The worker, or a proxy in front of it, requires other credentials; raised by `client`."""

    exit_code = ExitCode.NOT_AUTHENTICATED


class Forbidden(PyconnectError):
    """The credentials are valid and do not permit the request; raised by `client`."""

    exit_code = ExitCode.FORBIDDEN


class Conflict(PyconnectError):
    """HTTP 409 after all retries, or a lock that another run holds."""

    exit_code = ExitCode.CONFLICT


class Unreachable(PyconnectError):
    """All of the worker's URLs failed to answer; raised by `client`."""

    exit_code = ExitCode.UNREACHABLE


class UnknownOutcome(Unreachable):
    """A request for a change was sent and not answered; raised by `exchange`."""


class PartialFailure(PyconnectError):
    """Some objects of a batch failed; each has already been reported on its own line."""

    exit_code = ExitCode.PARTIAL_FAILURE


class PreconditionFailed(PyconnectError):
    """The change was not tried, because another step has to come first."""

    exit_code = ExitCode.PRECONDITION


class ServerError(PyconnectError):
    """HTTP 5xx, or an answer that no Connect worker gives; raised by `client`."""

    exit_code = ExitCode.SERVER_ERROR


class Undecided(PyconnectError):
    exit_code = ExitCode.UNDECIDED


class OutputLost(PyconnectError):
    """Standard output, or a file that the command was asked to write, cannot be written."""

    exit_code = ExitCode.OUTPUT_LOST


class WaitTimedOut(PyconnectError):
    """The expected state was not reached in time."""

    exit_code = ExitCode.TIMED_OUT


class OutOfTime(WaitTimedOut):
    """A request was not sent, because the run's time is used up; raised by `exchange`."""


class Interrupted(PyconnectError):
    """Ctrl-C, or SIGTERM, ended the command."""

    exit_code = ExitCode.INTERRUPTED
