"""Carries out a run of an upgrade: look, decide, write, act, until the run is done or halts.

`Rolling` is the only loop around `upgrade.decide`; only the journal survives the process.
`Performer` changes one worker by its agent, by commands or by hand.

Each act may be repeated. NeedsOperator is not a failure: the operator carries out its step before
the run continues. Output of commands is shown only when they fail.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyconnect_cli.acting.journal import JournalFile, entries_of
from pyconnect_cli.directories import state_directory
from pyconnect_cli.errors import (
    Conflict,
    ExitCode,
    Forbidden,
    PreconditionFailed,
    PyconnectError,
    Unreachable,
    UsageError,
    WaitTimedOut,
)
from pyconnect_cli.render.step_line import StepLine
from pyconnect_cli.rest.masking import mask_command
from pyconnect_cli.upgrade.cluster.lock import ClusterLock
from pyconnect_cli.upgrade.cluster.observe import Observer, Workers
from pyconnect_cli.upgrade.plan.decide import Act, Memory, StepLimits, WorkerAction, decide
from pyconnect_cli.upgrade.plan.model import Means, UpgradedWorker
from pyconnect_cli.upgrade.plan.run import (
    Entry,
    Finished,
    Halted,
    LegFinished,
    Run,
    StepChanged,
    StepStarted,
    StepVerified,
    applied,
    replay,
)
from pyconnect_clients.connect_names import Phase

PROPERTY = "exactly.once.source.support"
_TAIL = 400


class NeedsOperator(PyconnectError):
    """The operator has to carry out a step; the same command continues afterwards (exit 75)."""

    exit_code = ExitCode.NEEDS_OPERATOR


class Performer:
    """Acts on the workers of one run."""

    def __init__(self, workers: Workers, run_id: str) -> None:
        self._workers = workers
        self._run_id = run_id

    def perform(self, run: Run, action: WorkerAction, worker: UpgradedWorker) -> None:
        """Act on a worker; its restart may still be under way on return."""
        commands = self._workers.inventory.commands(worker.url)
        match action.act:
            case Act.CHANGE:
                match worker.means:
                    case Means.COMMANDS:
                        # --full-stop, or an earlier process of this run, may have stopped it.
                        stopped = not worker.reachable and "start" in commands.templates
                        restart = ("start",) if stopped else commands.restart_names
                        for name in ("configure", *restart):
                            self._run_command(name, worker.url, action.phase)
                    case Means.AGENT:
                        self._change_agent(run, worker, action.phase)
                    case Means.OPERATOR:
                        raise NeedsOperator(
                            f"on {worker.url}: set {PROPERTY}={action.phase} in its properties"
                            " and restart it"
                        )
            case Act.QUIESCE:
                if "stop" in commands.templates:
                    self._run_command("stop", worker.url, "")
                elif worker.means is Means.AGENT:
                    self._workers.admin(worker.url).drain(undrain=False)
                else:
                    raise NeedsOperator(f"stop {worker.url}")
            case Act.REPLACE:
                if "replace" not in commands.templates:
                    raise NeedsOperator(
                        f"on {worker.url} (version {worker.version}): stop it, replace its"
                        " software, start it"
                    )
                self._run_command("replace", worker.url, Phase.DISABLED)

    def show(self, url: str) -> Phase | None:
        """Return the phase that the command `show` prints; None without the command."""
        if "show" not in self._workers.inventory.commands(url).templates:
            return None
        text = self._run_command("show", url, "").strip().lower()
        try:
            return Phase(text) if text else Phase.DISABLED
        except ValueError:
            raise PreconditionFailed(
                f"{url}: `show` printed `{text[:40]}`, which is not a phase",
                hint="it must print disabled, preparing or enabled, or nothing for the default",
            ) from None

    def _change_agent(self, run: Run, worker: UpgradedWorker, phase: Phase) -> None:
        admin = self._workers.admin(worker.url)
        try:
            info = admin.info()
            sha256 = str(info.raw["config_sha256"])
            before = next(
                (w.config_sha256 for w in run.started.inventory if w.url == worker.url), None
            )
            ours = info.raw.get("last_upgrade_run_id") == self._run_id
            if sha256 != before and not ours:
                raise Conflict(
                    f"{worker.url}: its properties file was changed during the run",
                    hint="check the change; pyconnect upgrade abandon ends this run",
                )
            restart = admin.change_phase(phase, run_id=self._run_id, expect_config_sha256=sha256)
        except Unreachable:
            # The worker is restarting already; `decide` waits for it.
            return
        except Forbidden as exc:
            raise NeedsOperator(
                f"on {worker.url}: set {PROPERTY}={phase} in its properties and restart it"
                f" ({exc.message})"
            ) from exc
        if restart == "none":
            raise NeedsOperator(f"restart {worker.url}: {PROPERTY}={phase} is in its file now")

    def _run_command(self, name: str, url: str, phase: str) -> str:
        commands = self._workers.inventory.commands(url)
        argv = commands.argv(name, url, phase=phase, run_id=self._run_id)
        shown = mask_command(argv)
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=commands.timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as exc:
            raise WaitTimedOut(
                f"{url}: {name}: `{shown}` took longer than {commands.timeout_s:.0f}s"
            ) from exc
        except OSError as exc:
            raise PreconditionFailed(f"{url}: {name}: `{shown}`: {exc.strerror}") from exc
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip())[-_TAIL:]
            raise PreconditionFailed(
                f"{url}: {name}: `{shown}` ended with code {done.returncode}: {said}"
            )
        return done.stdout


LONGEST_PAUSE_S = 1.0
LEAST_PAUSE_S = 0.25


@dataclass(kw_only=True)
class Rolling:
    """One process's part of a run; the first entry of the run is in the journal."""

    observer: Observer
    performer: Performer
    journal: Journal
    lock: ClusterLock
    limits: StepLimits
    run: Run
    line: StepLine
    again: str
    """The command that continues the run."""

    def go_on(self) -> None:
        """Return when the run is done; raise the cause of a halt: exit 1, or 75 for an operator."""
        pause_s = min(LONGEST_PAUSE_S, max(LEAST_PAUSE_S, self.limits.settle_ms / 4000))
        memory, seen_ms = Memory(), _now_ms()
        while not self.run.finished:
            if not self.lock.held():
                raise self._halted(
                    Halted(
                        reason="the lock on the cluster was lost",
                        hint=f"check that no other run is active; then: {self.again}",
                    ),
                    Conflict,
                )
            try:
                view = self.observer.look(self.run.urls)
            except PyconnectError as error:
                # The brokers may not answer for the time of a step.
                if _now_ms() - seen_ms >= self.limits.step_ms:
                    hint = f"repair this, then: {self.again}"
                    raise self._halted(Halted(reason=error.message, hint=hint)) from error
                self.line(f"waiting: {error.message}", passing=True)
                time.sleep(pause_s)
                continue
            seen_ms = _now_ms()
            decision = decide(self.run, memory, view, self.limits, seen_ms)
            memory = decision.memory
            for entry in decision.entries:
                self._write(entry)
            if self.run.halted is not None:
                raise PyconnectError(self.run.halted.reason, hint=self.run.halted.hint)
            if decision.act is not None:
                worker = view.by_url.get(decision.act.url)
                self._act(
                    decision.act, worker or UpgradedWorker(url=decision.act.url, reachable=False)
                )
            elif decision.awaited:
                self.line(f"waiting: {decision.awaited}", passing=True)
                time.sleep(pause_s)

    def _act(self, action: WorkerAction, worker: UpgradedWorker) -> None:
        changes = action.act is not Act.QUIESCE
        try:
            self.performer.perform(self.run, action, worker)
        except NeedsOperator as error:
            if changes:
                # The user was asked to start the worker with its new phase: it counts as changed.
                self._write(StepChanged(url=action.url))
            hint = f"then run the same command again: {self.again}"
            halted = Halted(reason=error.message, hint=hint, operator=True)
            raise self._halted(halted, NeedsOperator) from error
        except PyconnectError as error:
            hint = f"{error.hint or 'repair this'}; then: {self.again}"
            raise self._halted(Halted(reason=error.message, hint=hint)) from error
        if changes:
            self._write(StepChanged(url=action.url))

    def _halted(
        self, halted: Halted, kind: type[PyconnectError] = PyconnectError
    ) -> PyconnectError:
        self._write(halted)
        return kind(halted.reason, hint=halted.hint)

    def _write(self, entry: Entry) -> None:
        """Keep an entry and report it; halts are reported as errors."""
        self.journal.append(entry)
        self.run = applied(self.run, entry)
        match entry:
            case StepStarted():
                self.line(f"{entry.url}: to {entry.phase}")
            case StepVerified():
                self.line(f"{entry.url}: done ({entry.evidence})")
            case LegFinished():
                self.line(f"every worker of this run: {entry.target}")
            case Finished():
                self.line("done")
            case _:
                pass


def _now_ms() -> int:
    return round(time.monotonic() * 1000)


class Journal(JournalFile):
    """The journal of one Connect cluster."""

    def __init__(self, directory: Path, cluster_id: str, group_id: str) -> None:
        busy = Conflict(
            "another upgrade of this cluster is running on this host",
            hint="show it: pyconnect upgrade status",
        )
        super().__init__(directory, cluster_id, group_id, busy=busy)

    def run(self) -> Run | None:
        """Return the last run; None when there was none."""
        return read_run(self.path)


def read_run(path: Path) -> Run | None:
    """Return the last run of a journal; UsageError names a file that cannot be read."""
    try:
        return replay(entries_of(path, Entry))
    except (UsageError, KeyError) as exc:
        reason = exc.message if isinstance(exc, UsageError) else f"an entry of {exc} has no step"
        raise UsageError(
            f"{path}: {reason}",
            hint="move the file away: the next run reads the state from the cluster; a newer"
            " version of this command may have written the file",
        ) from exc


def last_runs(directory: Path) -> tuple[list[Run], list[str]]:
    """Return the last run of each journal in a directory, and the faults of unreadable ones."""
    found, broken = [], []
    for path in sorted(directory.glob("*.jsonl")):
        try:
            run = read_run(path)
        except UsageError as error:
            broken.append(error.message)
            continue
        if run is not None:
            found.append(run)
    return found, broken


def unfinished_group(directory: Path, cluster_id: str, urls: Iterable[str]) -> str | None:
    """Return the group of an unfinished run on this Kafka with one of these workers, if any.

    The worker may be down during the run; then only the journal knows the group.
    """
    wanted = set(urls)
    found, _ = last_runs(directory)
    for run in found:
        same = run.started.cluster_id == cluster_id and wanted & set(run.urls)
        if same and not run.finished:
            return run.started.group_id
    return None


def journal_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory of this user's journals. Raises PreconditionFailed."""
    return state_directory(environ) / "upgrades"
