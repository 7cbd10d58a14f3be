"""Options of commands that cron runs: a lock, jitter, a deadline, a summary, a textfile.

The contract: silent on success with -q, one line of JSON with --summary-json, exit 6 at once while
another run holds the lock, exit 124 when the deadline ends the run, every verb safe to repeat.
"""

import fcntl
import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyconnect_cli.directories import state_directory
from pyconnect_cli.errors import (
    Conflict,
    ExitCode,
    PreconditionFailed,
    PyconnectError,
    UsageError,
    WaitTimedOut,
)
from pyconnect_cli.parsing.values import parse_duration
from pyconnect_cli.render.outcomes import ObjectResult, Outcome, counted
from pyconnect_cli.render.streams import tell, write_data, write_whole
from pyconnect_cli.render.styles import json_text
from pyconnect_cli.rest.endpoint import ended_after
from pyconnect_cli.rest.masking import mask_command, mask_url
from pyconnect_cli.session import Session

DEADLINE_MARGIN_S = 0.5
READABLE = 0o644  # for the collector, which is another user
LOCK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@contextmanager
def cron_run(session: Session, command: str, selection: Sequence[str]) -> Iterator[None]:
    """Wrap one acting command; without cron options it adds nothing.

    `selection`: the words of the command line that select objects.
    """
    given = session.given
    if given.get("summary_json"):
        given["quiet"] = True
    started, began_s = time.time(), time.monotonic()
    code = int(ExitCode.OK)
    error: str | None = None
    try:
        with held_lock(session, given.get("lock")), ExitStack() as limited:
            if deadline := given.get("deadline"):
                seconds = parse_duration(str(deadline), what="--deadline")
                late = WaitTimedOut(f"the run took longer than its deadline of {deadline}")
                limited.enter_context(ended_after(seconds, late))
            if jitter := given.get("jitter"):
                time.sleep(random.uniform(0, parse_duration(str(jitter), what="--jitter")))
            if deadline:
                # Limit requests too, because a thread in a request cannot be interrupted.
                session.budget.end_within(seconds + DEADLINE_MARGIN_S)
            yield
    except PyconnectError as failure:
        code, error = int(failure.exit_code), failure.message or None
        raise
    except KeyboardInterrupt:
        code, error = int(ExitCode.INTERRUPTED), "interrupted"
        raise
    except Exception as fault:
        code, error = int(ExitCode.SERVER_ERROR), f"{type(fault).__name__}: {fault}"
        raise
    finally:
        run = _Run(
            command=command,
            exit_code=code,
            started_s=started,
            duration_s=time.monotonic() - began_s,
            error=error,
            results=session.record.results(),
        )
        if given.get("summary_json"):
            lost = write_data(json_text(run.summary()))
            if lost is not None:
                tell(f"warning: the summary cannot be written: {lost.strerror}")
        if textfile := given.get("textfile"):
            write_textfile(Path(str(textfile)), run, job_labels(session, command, selection))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """The report of one run; times in seconds since the epoch."""

    command: str
    exit_code: int
    started_s: float
    duration_s: float
    error: str | None
    results: tuple[ObjectResult, ...]

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of objects of each outcome, by the names that summary and textfile use."""
        counts = counted(self.results)
        return {
            "succeeded": counts[Outcome.DONE],
            "failed": counts[Outcome.FAILED],
            "unknown": counts[Outcome.UNKNOWN],
            "not_tried": counts[Outcome.NOT_TRIED],
        }

    def summary(self) -> dict[str, object]:
        return {
            "command": self.command,
            "exit_code": self.exit_code,
            "ok": self.exit_code == ExitCode.OK,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.started_s)),
            "duration_s": round(self.duration_s, 3),
            **self.counts,
            "error": self.error,
            "results": [result.to_json() for result in self.results],
        }


def job_labels(session: Session, command: str, selection: Sequence[str]) -> dict[str, str]:
    """Return the labels that distinguish the metrics of jobs; no secrets.

    `context` holds the addresses if no context is in force; it is empty if the settings are wrong.
    """
    _, noun, *verb = command.split()
    try:
        settings = session.settings
        context = settings.context or ",".join(map(mask_url, settings.urls))
    except PyconnectError:
        context = ""
    return {
        "noun": noun,
        "verb": " ".join(verb),
        "context": context,
        "selection": mask_command(selection),
    }


def write_textfile(path: Path, run: _Run, labels: Mapping[str, str]) -> None:
    """Write the run's result for Prometheus' textfile collector, whole or not at all."""
    escapes = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    shown = ",".join(f'{name}="{value.translate(escapes)}"' for name, value in labels.items())
    values = {
        "pyconnect_run_exit_code": run.exit_code,
        "pyconnect_run_duration_seconds": round(run.duration_s, 3),
        "pyconnect_run_timestamp_seconds": round(run.started_s + run.duration_s, 3),
        **{f"pyconnect_run_objects_{name}": count for name, count in run.counts.items()},
    }
    lines = []
    for name, value in values.items():
        lines += [f"# TYPE {name} gauge", f"{name}{{{shown}}} {value}"]
    try:
        write_whole(path, "\n".join(lines) + "\n", mode=READABLE)
    except OSError as exc:
        tell(f"warning: {path}: cannot be written: {exc.strerror}")


@contextmanager
def held_lock(session: Session, name: object) -> Iterator[None]:
    """Hold a lock below the state directory, which cron and logins of a user share.

    XDG_RUNTIME_DIR is set in logins only: two locks there would not exclude each other.
    """
    if not name:
        yield
        return
    text = str(name)
    if not LOCK_NAME.fullmatch(text):
        raise UsageError(f"--lock: `{text}` is not a name", hint="use letters, digits, . _ and -")
    directory = state_directory(session.environ)
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = (directory / f"{text}.lock").open("w")
    except OSError as exc:
        raise PreconditionFailed(
            f"{directory}: the lock cannot be created: {exc.strerror}",
            hint="set XDG_STATE_HOME to a directory you can write",
        ) from exc
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise Conflict(
                f"another run holds the lock `{text}`", hint="the lock is free when that run ends"
            ) from exc
        yield
