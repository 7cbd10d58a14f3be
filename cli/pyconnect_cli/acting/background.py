"""Questions to many at once, on threads that never keep the command from ending."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from pyconnect_cli.errors import PyconnectError
from pyconnect_cli.rest.background import in_background

Item = TypeVar("Item")
Answer = TypeVar("Answer")


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
