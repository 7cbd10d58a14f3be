"""Starts the process that runs Spark, relays its events, ends it with this command.

The child reads its stdin, which closes when this process ends: then the child ends itself and
Spark's JVM. The output of the JVM goes to spark.log beside the report.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ENDING_S = 20.0
TAIL_LINES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkRefusal:
    """The reason for a run without an answer, as the process reported it."""

    message: str
    hint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnd:
    """The end of the process; `refusals` by the report's directory, None: of every run.

    `log` holds the last lines of Spark's log.
    """

    exit_code: int
    refusals: Mapping[str | None, SparkRefusal]
    log: str = ""

    def refusal(self, report: Path) -> SparkRefusal | None:
        """Return why the run of this report's directory has no answer, if it was reported."""
        return self.refusals.get(str(report)) or self.refusals.get(None)

    @property
    def without_answer(self) -> str:
        """The message about a process that left no report and no reason."""
        ended = f"ended with exit status {self.exit_code}"
        if self.exit_code < 0:
            ended = f"was killed by signal {-self.exit_code}"
        said = f"; the last lines of spark.log: {self.log}" if self.log else "; spark.log is empty"
        return f"the Spark process {ended} without a report{said}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCalls:
    """Functions for events: a step's text, the numbers of done and all tasks, a snapshot's id."""

    step: Callable[[str], None]
    progress: Callable[[int, int], None]
    committed: Callable[[int], None] = lambda _: None


def run_process(
    runs: Mapping[Path, Path], log: Path, told: EventCalls, environment: Mapping[str, str]
) -> ProcessEnd:
    """Run specs (report directory by spec file) in a process of their own and wait for it.

    KeyboardInterrupt and every other exception end the process first: it cancels Spark's jobs.
    """
    reports = (part for report in runs.values() for part in ("--report", str(report)))
    command = ("pyconnect_reconcile", *map(str, runs), *reports, "--events", "--tethered")
    return run_module(command, log, told, environment)


def run_module(
    module: Sequence[str],
    log: Path,
    told: EventCalls,
    environment: Mapping[str, str],
    *,
    silent_s: float | None = None,
) -> ProcessEnd:
    """Run a module with its arguments in a process of its own; `log` gets its other output.

    It is killed when it reports nothing for `silent_s`.
    """
    with log.open("wb") as stderr:
        # A separate process group: Ctrl-C reaches the child once, from this process.
        process = subprocess.Popen(
            (sys.executable, "-m", *module),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=dict(environment),
            start_new_session=True,
        )
    try:
        refusals = _relay(process, told, silent_s)
        code = process.wait()
    except BaseException:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        try:
            process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            _kill_group(process)
        raise
    finally:
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    tail = " / ".join(line.strip() for line in lines[-TAIL_LINES:])
    return ProcessEnd(exit_code=code, refusals=refusals, log=tail)


def _relay(
    process: subprocess.Popen[str], told: EventCalls, silent_s: float | None
) -> dict[str | None, SparkRefusal]:
    refusals: dict[str | None, SparkRefusal] = {}
    for line in _lines(process, silent_s):
        try:
            event = json.loads(line)
        except ValueError:
            # Output of the JVM or a library on stdout.
            continue
        match event.get("event"):
            case "step":
                told.step(event["text"])
            case "progress":
                told.progress(event["done"], event["total"])
            case "committed":
                told.committed(event["snapshot"])
            case "error":
                refusal = SparkRefusal(message=event["message"], hint=event["hint"])
                refusals[event["directory"]] = refusal
    return refusals


def _lines(process: subprocess.Popen[str], silent_s: float | None) -> Iterator[str]:
    """Yield the lines of the process; kill it when it has written none for `silent_s`."""
    assert process.stdout is not None
    while True:
        watch = None if silent_s is None else threading.Timer(silent_s, _kill_group, (process,))
        if watch is not None:
            watch.start()
        try:
            line = process.stdout.readline()
        finally:
            if watch is not None:
                watch.cancel()
        if not line:
            return
        yield line


def _kill_group(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
