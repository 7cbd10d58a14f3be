"""Tasks whose methods are coroutines: ``async def poll``, ``async def put`` and the others.

Layer: api; called by the worker and by the harnesses. A task has one event loop for its life, so a
client that it made in `start` can be used in each `poll`. The loop runs only within these calls, on
the task's thread: background tasks of the loop go on in the next call.
"""

import inspect
from asyncio import Runner
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from pyconnect_api.batching import BatchingSinkTask
from pyconnect_api.errors import ConnectException
from pyconnect_api.task import Task

_METHODS = ("start", "open", "poll", "put", "flush", "pre_commit", "close", "stop")
_PLAIN = ("version", "initialize", "commit", "commit_record")
"""Methods that are called before the loop exists, or on another thread while it runs."""


def run_coroutines(task: Task) -> None:
    """Replace the coroutine methods of a task by plain ones, which return when the coroutine ends.

    The event loop is closed after `stop`. A task without such methods is left as it is. Raises
    ConnectException for a coroutine whose result would never be awaited.
    """
    for name in _PLAIN:
        if inspect.iscoroutinefunction(getattr(task, name, None)):
            raise ConnectException(
                f"{type(task).__qualname__}.{name} cannot be a coroutine: write `def {name}`. "
                f"Coroutines may be {', '.join(_METHODS)}"
            )
    names = (*_METHODS, "write") if isinstance(task, BatchingSinkTask) else _METHODS
    found = [name for name in names if inspect.iscoroutinefunction(getattr(task, name, None))]
    if not found:
        return
    runner = Runner()
    for name in found:
        setattr(task, name, partial(_run, runner, getattr(task, name)))
    stop = task.stop

    def stop_and_close() -> None:
        with runner:
            stop()

    task.stop = stop_and_close  # type: ignore[method-assign]  # of this instance


def _run(
    runner: Runner, method: Callable[..., Coroutine[Any, Any, object]], *arguments: object
) -> object:
    return runner.run(method(*arguments))
