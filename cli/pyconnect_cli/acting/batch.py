"""Run one action on many objects: question, parallelism, a result line for each, exit code 8.

Second looks (`…_shows`) read the state after a change that was sent and not answered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial

from pyconnect_cli.acting.wait import describe, has_state
from pyconnect_cli.errors import (
    ExitCode,
    NotFound,
    OutOfTime,
    PartialFailure,
    PyconnectError,
    UnknownOutcome,
    UsageError,
    WaitTimedOut,
)
from pyconnect_cli.render.outcomes import BatchRecord, ObjectResult, Outcome, counted, summary
from pyconnect_cli.render.styles import json_text, printable
from pyconnect_cli.rest.client import Config, ConnectClient
from pyconnect_cli.rest.endpoint import in_background
from pyconnect_cli.rest.model import TaskId
from pyconnect_cli.session import Session

UNCHANGED = "unchanged"


class Asks(Enum):
    """The changes that need consent, by `--yes` or an answer on a terminal."""

    SEVERAL = "a change of several objects; without a terminal it goes on"
    ALWAYS = "every change; without a terminal it is refused"
    BEFORE = "none: the command has asked already"


def confirm_names(
    session: Session, verb: str, names: Sequence[str], *, what: str = "connector"
) -> None:
    """Ask for consent to a plan that the command has shown; see Session.confirm."""
    if not session.settings.yes:
        session.output.message(f"{verb}: {', '.join(names)}")
    session.confirm(f"{verb} {len(names)} {what}{'' if len(names) == 1 else 's'}?")


def plan_lines(steps: Sequence[BatchStep]) -> list[str]:
    """Return a line for each change of each object, the objects' names in a column."""
    width = max((len(printable(step.name)) for step in steps), default=0)
    lines = []
    for step in steps:
        for at, change in enumerate(step.changes or ("",)):
            name = printable(step.name) if at == 0 else ""
            lines.append(f"  {name.ljust(width)}  {printable(change)}".rstrip())
    return lines


MOST_PARALLEL = 64
# A deadline also ends requests and second looks, a little later.
AFTER_DEADLINE_S = 5.0


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of an object whose change was not answered; `done`: it shows the change."""

    text: str
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStep:
    """One object: `act` carries out the action and may return a remark, `done` names its result.

    `changes` are lines of the plan, each `old -> new`. `look` reads the state after a change that
    was sent and not answered.
    """

    name: str
    done: str
    act: Callable[[], str | None]
    look: Callable[[ConnectClient], Seen] | None = None
    changes: tuple[str, ...] = ()


def run_steps(
    session: Session,
    verb: str,
    steps: Sequence[BatchStep],
    *,
    asks: Asks = Asks.SEVERAL,
    what: str = "connector",
) -> None:
    """Ask, run all, print a line for each. Raises the only failure, or PartialFailure (exit 8).

    The report has every object, however the run ends: done, failed, unknown or not tried. No object
    is started once the run's time is used up (exit 124).
    """
    if session.given.get("dry_run"):
        if session.output.machine:
            session.output.document(
                [{"name": step.name, "would": verb, "changes": [*step.changes]} for step in steps]
            )
        else:
            for step in steps:
                changes = f": {', '.join(step.changes)}" if step.changes else ""
                session.output.line(f"would {verb} {step.name}{changes}")
    if session.ends_with_plan(changes=any(step.changes != (UNCHANGED,) for step in steps)):
        return
    several = asks is Asks.SEVERAL and len(steps) > 1 and session.interactive
    if (several or asks is Asks.ALWAYS) and not session.settings.yes:
        for line in plan_lines(steps):
            session.output.message(line)
        same = sum(step.changes == (UNCHANGED,) for step in steps)
        total = f", {same} of them unchanged" if same else ""
        session.confirm(f"{verb} {len(steps)} {what}{'' if len(steps) == 1 else 's'}{total}?")
    session.allow_for(len(steps))
    batch = _Batch(session, verb, steps)
    try:
        batch.run()
    except KeyboardInterrupt:
        batch.settle(
            None, "waiting for the requests under way; the next signal ends the run at once"
        )
        batch.report(each=True)
        raise
    except WaitTimedOut:
        batch.settle(AFTER_DEADLINE_S)
        batch.report(each=True)
        raise
    except BaseException:
        batch.report(each=True)
        raise
    batch.report()
    batch.raise_failures()


def positive_number(session: Session, key: str) -> int | None:
    """Read an option whose value is a count."""
    text = session.given.get(key)
    if text is None:
        return None
    if not re.fullmatch("0*[1-9][0-9]{0,8}", str(text)):
        raise UsageError(f"--{key.replace('_', '-')}: `{text}` is not a number from 1 upwards")
    return int(str(text))


class _Batch:
    """One run over the steps. Steps run on their own threads, all other code on the caller's."""

    def __init__(self, session: Session, verb: str, steps: Sequence[BatchStep]) -> None:
        self._session = session
        self._verb = verb
        self._steps = steps
        self._parallel = min(positive_number(session, "parallel") or 1, MOST_PARALLEL)
        self._most_failures = positive_number(session, "max_failures")
        self._futures: dict[int, Future[None]] = {}
        self._printed: set[int] = set()
        self._each = len(steps) > 1
        self.record = BatchRecord(verb, [step.name for step in steps])
        session.record = self.record
        # The client is made before the threads: its secrets are fetched once.
        _ = session.client

    @property
    def under_way(self) -> bool:
        return any(not future.done() for future in self._futures.values())

    def run(self) -> None:
        """Start steps until all are started, too many have failed or the time is used up."""
        waiting = list(range(len(self._steps)))
        while True:
            running = {future for future in self._futures.values() if not future.done()}
            while waiting and len(running) < self._parallel and self._may_start():
                index = waiting.pop(0)
                self._futures[index] = in_background(partial(self._run_step, index))
                running.add(self._futures[index])
            if not running:
                break
            wait(running, return_when=FIRST_COMPLETED)
            self._print_ended()
        self._print_ended()

    def settle(self, timeout_s: float | None, announcement: str = "") -> None:
        """Wait for the steps under way; the next signal ends the wait."""
        # The next signal may come as soon as the announcement is printed.
        with suppress(KeyboardInterrupt, WaitTimedOut):
            if announcement and self.under_way:
                self._session.output.message(announcement)
            wait(self._futures.values(), timeout_s)

    def report(self, *, each: bool = False) -> None:
        """Print the results that were not printed yet; the record does not change afterwards.

        `each`: also print the failure of a single object, which otherwise only its error reports.
        """
        self._each = self._each or each
        self.record.close()
        results = self.record.results()
        output = self._session.output
        if self._session.settings.output in {"json", "yaml"}:
            if not self._session.settings.quiet:
                output.document([result.to_json() for result in results])
            return
        for index in range(len(results)):
            self._print(index, results[index])
        not_tried = [result.name for result in results if result.outcome is Outcome.NOT_TRIED]
        if not_tried and each:
            output.warning(f"not tried: {', '.join(not_tried)}")

    def raise_failures(self) -> None:
        """Raise if an object is not done: the only object's error, exit 124 or exit 8."""
        results = self.record.results()
        counts = counted(results)
        if counts[Outcome.DONE] == len(results):
            return
        if len(results) == 1 and results[0].error is not None:
            raise results[0].error
        text = summary(results)
        if counts[Outcome.NOT_TRIED] and self._session.budget.spent:
            raise WaitTimedOut(
                f"the time of --timeout is over: {text}",
                hint="allow more with --timeout 10m; to work on several at once: --parallel 4",
            )
        if counts[Outcome.NOT_TRIED]:
            text += " (--max-failures)"
        raise PartialFailure(text, exit_code=ExitCode.PARTIAL_FAILURE)

    def _may_start(self) -> bool:
        if self._session.budget.spent:
            return False
        if self._most_failures is None:
            return True
        results = self.record.results()
        ended = [results[index] for index, future in self._futures.items() if future.done()]
        counts = counted(ended)
        return counts[Outcome.FAILED] + counts[Outcome.UNKNOWN] < self._most_failures

    def _run_step(self, index: int) -> None:
        if self.record.begin(index):
            self.record.end(index, self._result(self._steps[index]))

    def _result(self, step: BatchStep) -> ObjectResult:
        result = partial(ObjectResult, name=step.name, action=self._verb)
        try:
            remark = step.act()
        except OutOfTime as error:
            return result(outcome=Outcome.NOT_TRIED, error=error)
        except UnknownOutcome as error:
            if step.look is None:
                return result(outcome=Outcome.UNKNOWN, error=error)
            try:
                with self._session.second_look() as client:
                    seen = step.look(client)
            except PyconnectError as unseen:
                text = f"{error.message}; its state cannot be read: {unseen.message}"
            else:
                if seen.done:
                    remark = f"{seen.text}; the worker did not answer in time"
                    return result(action=step.done, outcome=Outcome.DONE, remark=remark)
                text = f"{error.message}; now: {seen.text}"
            return result(outcome=Outcome.UNKNOWN, error=UnknownOutcome(text, hint=error.hint))
        except PyconnectError as error:
            return result(outcome=Outcome.FAILED, error=error)
        return result(action=step.done, outcome=Outcome.DONE, remark=remark)

    def _print_ended(self) -> None:
        results = self.record.results()
        for index, future in self._futures.items():
            if future.done():
                future.result()  # raises an unexpected exception of a step
                self._print(index, results[index])

    def _print(self, index: int, result: ObjectResult) -> None:
        """Print one object's line, once."""
        if index in self._printed or not (self._each or result.outcome is Outcome.DONE):
            return
        self._printed.add(index)
        output, settings = self._session.output, self._session.settings
        match settings.output:
            case "json" | "yaml":
                return
            case "ndjson":
                output.line(json_text(result.to_json()))
            case "name":
                if result.outcome is Outcome.DONE:
                    output.line(result.name)
            case _ if result.outcome is Outcome.DONE:
                if not settings.quiet:
                    remark = f" ({result.remark})" if result.remark else ""
                    output.line(f"{result.name}: {result.action}{remark}")
            case _ if result.outcome is not Outcome.NOT_TRIED:
                assert result.error is not None
                output.error(PyconnectError(f"{result.name}: {result.error.message}"))


def state_shows(name: str, state: str, client: ConnectClient) -> Seen:
    """Return whether the connector has this state; its tasks may follow later."""
    try:
        status = client.connector_status(name)
    except NotFound:
        return Seen("it does not exist", done=False)
    reached = status.connector.state == state or has_state(status, state)
    return Seen(f"it is {describe(status)}", done=reached)


def restart_shows(name: str, client: ConnectClient) -> Seen:
    """Return the state, never as done: a restart begins and ends in the same state."""
    try:
        return Seen(f"it is {describe(client.connector_status(name))}", done=False)
    except NotFound:
        return Seen("it has no status", done=False)


def task_shows(task: TaskId, client: ConnectClient) -> Seen:
    """Return a task's state, never as done; see `restart_shows`."""
    try:
        state = client.task_status(task.connector, task.task)
    except NotFound:
        return Seen("it has no status", done=False)
    return Seen(f"it is {state.state}", done=False)


def deletion_shows(name: str, client: ConnectClient) -> Seen:
    gone = not client.exists(name)
    return Seen("it is gone" if gone else "it is still there", done=gone)


def config_shows(name: str, config: Config, client: ConnectClient, *, whole: bool = True) -> Seen:
    """Return whether a connector has this configuration or, without `whole`, these keys of it.

    A key with None has to be absent.
    """
    try:
        stored = client.connector_config(name)
    except NotFound:
        return Seen("it does not exist", done=False)
    wanted = {**config, "name": name}
    same = all(stored.get(key) == value for key, value in wanted.items())
    if same and not (whole and set(stored) - set(wanted)):
        return Seen("its configuration is the new one", done=True)
    return Seen("its configuration is not the new one", done=False)
