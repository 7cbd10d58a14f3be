"""Names of tasks on the command line."""

from __future__ import annotations

import re

from pyconnect_cli.errors import UsageError
from pyconnect_cli.rest.model import TaskId
from pyconnect_cli.session import Session


def task_of(session: Session, text: str) -> TaskId:
    """Read `connector/0` or `connector-0`; UsageError otherwise.

    `t-1` is not task 1 of `t` if a connector has that name.
    """
    for separator in "/-":
        connector, _, number = text.rpartition(separator)
        if not connector or not re.fullmatch("[0-9]{1,9}", number):
            continue
        task = TaskId(connector=connector, task=int(number))
        if separator == "-" and session.client.exists(text):
            raise UsageError(
                f"`{text}` is the name of a connector, not of a task",
                hint=f"task {task.task} of connector {connector} is {task}; tasks of {text}:"
                f" pyconnect tasks list {text}",
            )
        return task
    raise UsageError(
        f"`{text}` is not the name of a task", hint="write CONNECTOR/NUMBER, for example orders/0"
    )
