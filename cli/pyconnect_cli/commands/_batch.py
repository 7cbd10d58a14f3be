"""Do one thing to many objects: confirmation, parallelism, one result line each, exit code 8."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from pyconnect_cli.errors import ExitCode, PartialFailure, PyconnectError, UsageError
from pyconnect_cli.render.output import compact_json
from pyconnect_cli.session import Session

MOST_PARALLEL = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One object: `done` is the word for it afterwards, `act` does it and may add a remark."""

    name: str
    done: str
    act: Callable[[], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What became of one object; `error` None means success."""

    name: str
    action: str
    remark: str | None = None
    error: PyconnectError | None = None

    def to_json(self) -> dict[str, object]:
        """The stable form for machines."""
        document: dict[str, object] = {
            "name": self.name,
            "action": self.action,
            "ok": self.error is None,
        }
        if self.remark:
            document["detail"] = self.remark
        if self.error is not None:
            document |= {"error": self.error.message, "exit_code": int(self.error.exit_code)}
        return document


def run_steps(session: Session, verb: str, steps: Sequence[Step]) -> list[StepResult]:
    """Run all; print a line for each. Raises the only failure, or PartialFailure (exit 8)."""
    if session.given.get("dry_run"):
        _print_plan(session, verb, steps)
        return []
    results = list(_results(session, verb, steps))
    report_results(session, results, planned=len(steps))
    return results


def confirm_steps(
    session: Session, verb: str, names: Sequence[str], *, what: str = "connector"
) -> None:
    """Show the set before something destructive; see Session.confirm."""
    if session.given.get("dry_run"):
        return
    if not session.settings.yes:
        session.output.message(f"{verb}: {', '.join(names)}")
    session.confirm(f"{verb} {len(names)} {what}{'' if len(names) == 1 else 's'}?")


def report_results(session: Session, results: Sequence[StepResult], *, planned: int) -> None:
    """Raise for failures, after each has been printed; `planned` counts what was to be done."""
    session.results = tuple(result.to_json() for result in results)
    if session.settings.output in {"json", "yaml"} and not session.settings.quiet:
        session.output.document([result.to_json() for result in results])
    failures = [result for result in results if result.error is not None]
    if not failures:
        return
    if planned == 1 and failures[0].error is not None:
        raise failures[0].error
    raise PartialFailure(
        f"{len(failures)} of {planned} failed: {', '.join(f.name for f in failures)}",
        exit_code=ExitCode.PARTIAL_FAILURE,
    )


def print_result(session: Session, result: StepResult, *, alone: bool) -> None:
    """Print one object's line; a single failure is told by the error itself."""
    output = session.output
    match session.settings.output:
        case "json" | "yaml":
            return
        case "ndjson":
            output.line(compact_json(result.to_json()))
        case "name":
            if result.error is None:
                output.line(result.name)
        case _ if result.error is None:
            if not session.settings.quiet:
                remark = f" ({result.remark})" if result.remark else ""
                output.line(f"{result.name}: {result.action}{remark}")
        case _ if not alone:
            output.error(PyconnectError(f"{result.name}: {result.error.message}"))


def positive_number(session: Session, key: str) -> int | None:
    """Read an option that counts."""
    text = session.given.get(key)
    if text is None:
        return None
    if not str(text).isdigit() or int(str(text)) < 1:
        raise UsageError(f"--{key.replace('_', '-')}: `{text}` is not a number from 1 upwards")
    return int(str(text))


def _results(session: Session, verb: str, steps: Sequence[Step]) -> Iterable[StepResult]:
    parallel = min(positive_number(session, "parallel") or 1, MOST_PARALLEL)
    most_failures = positive_number(session, "max_failures")
    failures = 0
    waiting = list(reversed(steps))
    # The client is made before the threads: its secrets are fetched once.
    _ = session.client
    with ThreadPoolExecutor(parallel) as executor:
        running: set[Future[StepResult]] = set()
        while waiting or running:
            try:
                while waiting and len(running) < parallel:
                    running.add(executor.submit(_run, verb, waiting.pop()))
                finished, running = wait(running, return_when=FIRST_COMPLETED)
            except KeyboardInterrupt:
                _tell_interrupted(session, running, waiting)
                raise
            for future in finished:
                result = future.result()
                failures += result.error is not None
                print_result(session, result, alone=len(steps) == 1)
                yield result
            if most_failures is not None and failures >= most_failures and waiting:
                session.output.warning(
                    f"{failures} failed: {len(waiting)} more were not tried (--max-failures)"
                )
                waiting.clear()


def _tell_interrupted(
    session: Session, running: Iterable[Future[StepResult]], waiting: Sequence[Step]
) -> None:
    """Tell what is not done: what is under way comes to its end, the rest is not begun."""
    for future in wait(running).done:
        print_result(session, future.result(), alone=False)
    if waiting:
        names = ", ".join(step.name for step in reversed(waiting))
        session.output.warning(f"interrupted: not tried: {names}")


def _run(verb: str, step: Step) -> StepResult:
    try:
        remark = step.act()
    except PyconnectError as error:
        return StepResult(name=step.name, action=verb, error=error)
    return StepResult(name=step.name, action=step.done, remark=remark)


def _print_plan(session: Session, verb: str, steps: Sequence[Step]) -> None:
    if session.output.machine:
        session.output.document([{"name": step.name, "would": verb} for step in steps])
    else:
        for step in steps:
            session.output.line(f"would {verb} {step.name}")
    if steps and session.given.get("exit_code"):
        raise PyconnectError("", exit_code=ExitCode.NEGATIVE)
