"""Why a Java process has ended, in words for traces and answers.

Layer: java_processes. Pure. The virtual machine says on its output which memory was exhausted, and
which of its options it refuses; its exit codes alone do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from signal import Signals

from pyconnect_agent.java_processes.launch import JavaOptions

EXIT_OUT_OF_MEMORY = 3
EXIT_HOST_FAILED = 70
"""The exit code with which the host ends the process when one of its threads fails."""
EXIT_STUCK = 76
"""The exit code of a shared process when what it began for a process that is gone goes on."""
_EXIT_REFUSED = 1
_EXITS_AT_A_PORT = (_EXIT_REFUSED, 2, -Signals.SIGABRT)

_OUT_OF_MEMORY = "Terminating due to java.lang.OutOfMemoryError: "
_NO_VM = "Error occurred during initialization of VM"
"""What Java prints before the reason."""
_REFUSED = "Error: Could not create the Java Virtual Machine"
"""What Java prints after the option that it refuses."""
_HEAP = ("Java heap space", "GC overhead limit exceeded")
_OTHER_MEMORY = {
    "Metaspace": (
        "the memory for its classes is limited by -XX:MaxMetaspaceSize. "
        "Raise it in agent.java.options of the worker's file."
    ),
    "Compressed class space": (
        "the memory for its classes is limited by -XX:CompressedClassSpaceSize. "
        "Raise it in agent.java.options of the worker's file."
    ),
    "Requested array size exceeds VM limit": (
        "its code asked for an array that is larger than Java allows (2 GiB of bytes)."
    ),
}


def reason_of(code: int, options: JavaOptions, lines: Sequence[str]) -> str:
    """Return the reason for an exit code, -n after signal n. `lines`: the last of its output."""
    taken = next((line.strip() for line in lines if "Address already in use" in line), "")
    if taken and code in _EXITS_AT_A_PORT:
        return (
            f"The Java process ended because a port was taken: {taken}. A port that is opened by an"
            " option of agent.java.options, or by a variable of agent.java.environment, is the same"
            " in every Java process of the worker."
        )
    if code == EXIT_OUT_OF_MEMORY and (lack := _lack_of_memory(lines)):
        return f"The Java process ran out of memory ({lack}): {_limit(lack, options)}"
    if code == _EXIT_REFUSED and (fault := _refusal(lines)):
        return (
            f"Java did not start: {fault}. Its heap and options are set by agent.java.heap and "
            "agent.java.options."
        )
    if code == EXIT_HOST_FAILED:
        return (
            "The Java process ended because a thread of its host failed, as it does when code of "
            "the plugin closes descriptor 0, the connection to the worker."
        )
    if code == EXIT_STUCK:
        return (
            "The Java process ended itself: a task or connector in it was killed or gave up its"
            " time, and its code went on."
        )
    if code == -Signals.SIGABRT:
        return "The Java process crashed (SIGABRT); its output names the file of the report."
    if code == -Signals.SIGKILL:
        return (
            "The Java process was killed by SIGKILL: the system may have run out of memory "
            "(dmesg), or a user killed the process."
        )
    if code < 0:
        return f"The Java process was killed by {Signals(-code).name}."
    return (
        f"The Java process ended by itself with exit code {code}: "
        "code of the plugin has called System.exit or Runtime.halt."
    )


def _refusal(printed: Sequence[str]) -> str:
    """Return Java's reason for not starting; "" if the output has none."""
    lines = [line for line in printed if "warning" not in line]
    if _NO_VM in lines:
        return next(iter(lines[lines.index(_NO_VM) + 1 :]), _NO_VM)
    return lines[0] if any(line.startswith(_REFUSED) for line in lines) else ""


def _lack_of_memory(lines: Sequence[str]) -> str:
    """Return Java's name of the memory that was exhausted; "" when the output has none."""
    named = (line.partition(_OUT_OF_MEMORY)[2] for line in reversed(lines))
    return next(filter(None, named), "")


def _limit(lack: str, options: JavaOptions) -> str:
    if lack in _HEAP:
        limit = f"its heap is limited to {options.heap} (-Xmx{options.heap})."
        if not options.heap_key:
            return limit
        return (
            f"{limit} Set {options.heap_key} in the connector's configuration, or let it hold "
            "fewer records at once."
        )
    return _OTHER_MEMORY.get(lack, "see agent.java.options of the worker's file.")
