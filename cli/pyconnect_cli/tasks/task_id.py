"""Names of tasks on the command line."""

from __future__ import annotations

from pyconnect_cli.errors import UsageError
from pyconnect_cli.rest.model import TaskId


def parse_task(text: str) -> TaskId:
    """Read `connector/0` or `connector-0`; UsageError otherwise."""
    for separator in "/-":
        connector, found, number = text.rpartition(separator)
        if found and connector and number.isdigit():
            return TaskId(connector=connector, task=int(number))
    raise UsageError(
        f"`{text}` is not the name of a task", hint="write CONNECTOR/NUMBER, for example orders/0"
    )
