"""Work on a thread that never keeps the command from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Answer = TypeVar("Answer")


def in_background(work: Callable[[], Answer]) -> Future[Answer]:
    """Run `work` on a new thread; the future holds its result or its exception.

    The thread is a daemon: a second signal ends the command even while a request hangs.
    """
    future: Future[Answer] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as fault:  # noqa: BLE001 - raised again by the future's owner
            future.set_exception(fault)

    threading.Thread(target=run, daemon=True).start()
    return future
