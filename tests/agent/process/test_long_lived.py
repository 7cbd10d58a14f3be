"""The end of a thread or an asyncio task that should run without end."""

import asyncio
import contextvars
import logging
from collections.abc import Callable

import pytest

from pyconnect_agent.process import long_lived
from pyconnect_agent.process.logging import bind_scope, record_fields
from tests.support.cases import cases


def fail(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


def run(thread: long_lived.Thread | long_lived.TimerThread) -> None:
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


@cases("error", ValueError("no good"), SystemExit(3))
def test_an_exception_that_ends_a_thread_is_logged_and_ends_the_process(
    deaths: list[BaseException], caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    """The log has the thread's name and the traceback."""
    run(long_lived.Thread("reader", fail(error)))
    assert deaths == [error]
    (record,) = caplog.records
    assert record.levelno == logging.CRITICAL
    assert vars(record)["part"] == "reader"
    assert record.exc_info is not None
    assert record.exc_info[1] is error


def test_an_owner_that_takes_note_or_asked_keeps_its_process(deaths: list[BaseException]) -> None:
    """The process goes on if the thread was asked to stop or its owner handles the error."""
    done = list[str]()
    run(long_lived.Thread("reader", lambda: done.append("done")))
    assert (done, deaths) == (["done"], [])
    error, noted = ValueError(), list[BaseException]()
    run(long_lived.Thread("reader", fail(error), on_death=noted.append))
    assert (noted, deaths) == ([error], [])


def test_a_thread_logs_in_the_scope_in_which_it_was_made() -> None:
    """Log lines of a task's threads have the task's id."""
    logged = list[dict[str, object]]()

    def work() -> None:
        logged.append(record_fields(logging.makeLogRecord({"msg": "event"})))

    scope = contextvars.copy_context()
    scope.run(bind_scope, task="c-0")
    run(scope.run(long_lived.Thread, "reader", work))
    assert logged[0]["task"] == "c-0"


def test_an_owner_that_cannot_take_note_ends_with_its_process(deaths: list[BaseException]) -> None:
    """If the owner's handler fails, the process ends with the thread's error as the reason."""
    error = ValueError()
    run(long_lived.Thread("reader", fail(error), on_death=lambda _: fail(OSError())()))
    assert deaths == [error]


def test_an_exception_of_a_timer_ends_the_process(deaths: list[BaseException]) -> None:
    """An exception in a timer's thread ends the process."""
    error = ValueError()
    run(long_lived.TimerThread("expiry", 0, fail(error)))
    assert deaths == [error]


def test_an_exception_that_ends_a_task_ends_the_process(deaths: list[BaseException]) -> None:
    """An exception in a task ends the process, and a cancellation does not."""
    error = ValueError()

    async def work() -> None:
        raise error

    async def scenario() -> None:
        ended = long_lived.start_task("leases", work())
        cancelled = long_lived.start_task("leases", asyncio.sleep(3_600))
        await asyncio.wait([ended])
        cancelled.cancel()
        await asyncio.wait([cancelled])

    asyncio.run(scenario())
    assert deaths == [error]
