"""The log lines of a connector's or task's process, sent to the worker process one by one.

Layer: tasks. Each line is on its way before the call that logs it returns, so those before a crash
arrive. They go to standard error as well, all of them; here only as many as a worker process can
keep for all its children. Thread-safe, as `logging` holds the handler's lock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from pyconnect_agent.channel import ChannelError, LineLogged, Message
from pyconnect_agent.observability.logging import EventFormatter, level_name

LINES_A_SECOND = 200
BURST = 1_000
LINE_CHARACTERS = 16_384
_CUT = " [...]"


class LogReports(logging.Handler):
    """A handler of the root logger; `send` is the channel's."""

    def __init__(
        self, send: Callable[[Message], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self.setFormatter(EventFormatter())
        self._send = send
        self._clock = clock
        self._allowed = float(BURST)
        self._counted_s = clock()
        self._left_out = 0
        self._sending = False

    def emit(self, record: logging.LogRecord) -> None:
        """Send a line, or count it when there are too many."""
        # Sending may log, in this thread and below this very call.
        if self._sending:
            return
        now_s = self._clock()
        refilled = self._allowed + (now_s - self._counted_s) * LINES_A_SECOND
        self._allowed, self._counted_s = min(refilled, BURST), now_s
        if self._allowed < 1:
            self._left_out += 1
            return
        self._allowed -= 1
        self._sending = True
        try:
            if self._left_out:
                text = f"{self._left_out} lines are left out here; standard error has them all"
                self._left_out = 0
                self._send(_line(record, "WARN", text))
            self._send(_line(record, level_name(record.levelno), self.format(record)))
        except (OSError, ChannelError):
            pass  # the worker process is gone, and this one is about to end
        except Exception:  # noqa: BLE001  a line must not end the code that logs it
            self.handleError(record)
        finally:
            self._sending = False


def _line(record: logging.LogRecord, level: str, text: str) -> LineLogged:
    if len(text) > LINE_CHARACTERS:
        text = text[: LINE_CHARACTERS - len(_CUT)] + _CUT
    return LineLogged(
        time_ms=int(record.created * 1000), level=level, logger=record.name, text=text
    )
