"""The text of a failure for statuses, as Java prints it, and the stacks of this process.

The text may quote configuration values: callers mask values of config providers.

A trace has the outermost exception first, then its causes. `describe_threads` shows where a plugin
hangs, with names and source lines: it runs in a thread of this process and needs the interpreter.
`prepare_dumps` is for a plugin that does not release the interpreter (native code, a regular
expression): a signal makes faulthandler write into a memory file that the worker process finds by
its name. Systems without memory files have only the first way.

`ShownRetries` shows in the status why a running task retries a call, for as long as it does.
Apache's worker only logs these failures, so that a task whose database is away looks idle.
"""

import faulthandler
import fcntl
import os
import sys
import threading
import traceback
from collections.abc import Callable

from pyconnect_agent.channel import STACKS_FILE, STACKS_SIGNAL
from pyconnect_agent.core.errors import AuthenticationError
from pyconnect_agent.core.plugin_catalog import PluginNotFoundError, PluginVersionNotFoundError
from pyconnect_api import ConfigException


def prepare_dumps() -> None:
    """Answer `STACKS_SIGNAL` from now on, whatever code runs; the file is never closed."""
    if not hasattr(os, "memfd_create"):
        return
    stacks = os.memfd_create(STACKS_FILE)
    # The worker process empties the file before it asks.
    fcntl.fcntl(stacks, fcntl.F_SETFL, fcntl.fcntl(stacks, fcntl.F_GETFL) | os.O_APPEND)
    faulthandler.register(STACKS_SIGNAL, file=stacks, all_threads=True)


def describe_threads() -> str:
    """Return the stack of every thread but the calling one, the main thread's first."""
    own = threading.get_ident()
    main = threading.main_thread().ident
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sorted(sys._current_frames().items(), key=lambda found: found[0] != main)  # noqa: SLF001  public in all but name
    parts = []
    for ident, frame in frames:
        if ident != own:
            lines = "".join(traceback.format_stack(frame))
            parts.append(f"Thread {names.get(ident, ident)} (most recent call last):\n{lines}")
    return "\n".join(parts)


TRACE_CHARACTERS = 100_000
"""The limit of a trace in a status, whose Kafka record must stay below 1 MiB with escapes."""
_LEFT_OUT = "\n[...]\n"

PERMANENT = (ConfigException, PluginNotFoundError, PluginVersionNotFoundError)


def format_trace(error: BaseException) -> str:
    """Return message, notes and stack of `error`, then `Caused by:` for each of its causes."""
    parts: list[str] = []
    for current in chain(error):
        head = "Caused by: " if parts else ""
        if java_trace := getattr(current, "java_trace", ""):
            # The trace of Java's error already has its causes.
            parts.append(f"{head}{java_trace}")
            break
        stack = "".join(traceback.format_tb(current.__traceback__))
        notes = "".join(f"{note}\n" for note in getattr(current, "__notes__", ()))
        parts.append(f"{head}{describe(current)}\n{notes}{stack}")
    return "".join(parts)


def shortened(trace: str) -> str:
    """Return the beginning and the end of a trace that is too long for a status.

    Secrets must be hidden before: otherwise a part of one could remain.
    """
    if len(trace) <= TRACE_CHARACTERS:
        return trace
    half = (TRACE_CHARACTERS - len(_LEFT_OUT)) // 2
    return trace[:half] + _LEFT_OUT + trace[-half:]


def chain(error: BaseException) -> list[BaseException]:
    """Return an error and its causes, the outermost first; each once."""
    found: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and not any(current is known for known in found):
        found.append(current)
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )
    return found


def is_permanent(error: BaseException) -> bool:
    """Return whether a retry cannot help, as for a wrong setting or a missing right.

    An error that is marked retriable outweighs the causes below it: a plugin that wraps an error of
    its client knows more.
    """
    for current in chain(error):
        if getattr(current, "retriable", False) is True:
            return False
        if isinstance(current, AuthenticationError):
            return False
        if isinstance(current, PERMANENT) or getattr(current, "permanent", False) is True:
            return True
    return False


def describe(error: BaseException) -> str:
    """Return `<class>: <message>`, the class with its module unless it is built in."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else _dotted(kind)
    text = error_text(error)
    return f"{name}: {text}" if text else name


def class_name(error: BaseException) -> str:
    """Return the full name of an exception's class: Java's, if Java code threw it."""
    return getattr(error, "java_class", "") or _dotted(type(error))


def error_text(error: BaseException) -> str:
    """Return `str(error)`, or a substitute if it raises, as code of a plugin may."""
    try:
        return str(error)
    except Exception as exc:  # noqa: BLE001  plugin code may raise anything
        return f"<{type(error).__qualname__}.__str__ raised {type(exc).__name__}>"


def _dotted(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


class ShownRetries:
    """Calls `show` with a trace, and with None once a call has succeeded.

    A task may repeat a call many times a second: `show` is called when the error has changed.
    """

    def __init__(self, show: Callable[[str | None], None]) -> None:
        self._show = show
        self._shown: tuple[type[BaseException], str] | None = None

    def failed(self, error: BaseException) -> None:
        """Show the error of a call that is retried, if it is new."""
        identity = (type(error), error_text(error))
        if identity != self._shown:
            self._shown = identity
            self._show(format_trace(error))

    def succeeded(self) -> None:
        if self._shown is not None:
            self._shown = None
            self._show(None)

    def forget(self) -> None:
        """Forget the trace, as another status has been reported since."""
        self._shown = None
