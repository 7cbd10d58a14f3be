"""Work on threads that never keep the command from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from pyconnect_cli.errors import PyconnectError

Item = TypeVar("Item")
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


def ask_all(
    items: Sequence[Item], question: Callable[[Item], Answer]
) -> list[Answer | PyconnectError]:
    """Ask all at once; return answers in the order of the items, an error in place of an answer."""

    def ask(item: Item) -> Answer | PyconnectError:
        try:
            return question(item)
        except PyconnectError as error:
            return error

    futures = [in_background(lambda item=item: ask(item)) for item in items]  # type: ignore[misc]
    return [future.result() for future in futures]
