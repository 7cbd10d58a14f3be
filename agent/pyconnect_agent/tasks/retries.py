"""Shows in the status why a running task repeats a call, for as long as it does.

Layer: tasks. Apache's worker only logs these failures, so that a task whose database is away looks
as if it had nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable

from pyconnect_agent.tasks.trace import error_text, format_trace


class ShownRetries:
    """Calls `show` with a trace, and with None once a call has succeeded.

    A task may repeat a call many times a second: `show` is called when the error has changed.
    """

    def __init__(self, show: Callable[[str | None], None]) -> None:
        self._show = show
        self._shown: tuple[type[BaseException], str] | None = None

    def failed(self, error: BaseException) -> None:
        """A call has failed and is repeated."""
        identity = (type(error), error_text(error))
        if identity != self._shown:
            self._shown = identity
            self._show(format_trace(error))

    def succeeded(self) -> None:
        if self._shown is not None:
            self._shown = None
            self._show(None)

    def forget(self) -> None:
        """Another status has been reported since."""
        self._shown = None
