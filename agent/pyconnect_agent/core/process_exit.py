"""The exit of a process in words."""

from __future__ import annotations

from signal import Signals


def describe_exit(exit_code: int) -> str:
    """Return how a process ended, -n being signal n; to be read after "the process"."""
    if exit_code >= 0:
        return f"exited with code {exit_code}"
    try:
        name = Signals(-exit_code).name
    except ValueError:
        return f"was killed by signal {-exit_code}"
    return f"was killed by signal {-exit_code} ({name})"


def exit_reason(exit_code: int, standard_error: str) -> str:
    """Return why a process failed, in one line: the last of its standard error, if it says that."""
    line = standard_error.strip().rpartition("\n")[2]
    if line and exit_code > 0:
        return line
    how = f"its process {describe_exit(exit_code)}"
    return f"{how}: {line}" if line else how
