"""Stack traces of connectors and tasks, as workers of Java and Python report them. Pure."""

from __future__ import annotations

CAUSED_BY = "Caused by: "
DIRECT_CAUSE = "The above exception was the direct cause of the following exception:"
DURING_HANDLING = "During handling of the above exception, another exception occurred:"


def root_cause(trace: str) -> str:
    """Return the line of the exception that caused the others; empty for an empty trace.

    Java writes the outermost exception first and its causes below; Python writes the cause first.
    """
    lines = [line.rstrip() for line in trace.strip().splitlines() if line.strip()]
    if not lines:
        return ""
    if lines[0].startswith("Traceback"):
        return _python_cause(lines)
    causes = [line for line in lines if line.startswith(CAUSED_BY)]
    return causes[-1].removeprefix(CAUSED_BY) if causes else lines[0].strip()


def _python_cause(lines: list[str]) -> str:
    """Follow `raise … from …` back to its start, but not an exception raised in a handler."""
    chain: list[str] = []
    in_frames = False
    for line in lines:
        if line.startswith("Traceback"):
            in_frames = True
        elif line == DURING_HANDLING:
            chain = []
        elif in_frames and not line.startswith(" ") and line != DIRECT_CAUSE:
            chain.append(line)
            in_frames = False
    return chain[0] if chain else lines[-1].strip()
