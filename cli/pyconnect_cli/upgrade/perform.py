"""Carries out a run of an upgrade: look, decide, write, act, until the run is done or halts.

`Rolling` is the only loop around `upgrade.decide`; only the journal survives the process.
`Performer` changes one worker by its agent, by commands or by hand.

Each act may be repeated. NeedsOperator is not a failure: the operator carries out its step before
the run continues. Output of commands is shown only when they fail.

A lock prevents two upgrades of one Connect cluster, also from different hosts: its holder is the
sole member of the consumer group `pyconnect-upgrade-GROUP` on the workers' Kafka. This needs no
topic and one grant, Read on the group; a killed holder's membership ends with its session. Two runs
that start at the same moment both refuse. A thread owns the client, because the membership lasts
only while the client is polled; `held` shows whether it has lasted throughout.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from pyconnect_cli.kafka.admin import KafkaAccess, protocol_errors
from pyconnect_cli.render.step_line import StepLine
from pyconnect_cli.rest.masking import mask_command
from pyconnect_cli.upgrade.observe import Observer, Workers, describe_group
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

if TYPE_CHECKING:
    from pyconnect_clients.brokers.protocol import KafkaProtocol


SESSION_MS = 10_000
"""A killed run keeps the next one waiting for this time. With the shortest that brokers allow, 6 s,
a run lost the lock while a broker or its own host was busy with the start of other processes."""
HEARTBEAT_MS = 1_500
JOIN_S = 20.0
POLL_MS = 200
POLL_INTERVAL_MS = 30_000
STOP_S = 5.0


class ClusterLock:
    """One membership; `held` is asked before each step."""

    def __init__(self, cluster: KafkaAccess, group: str) -> None:
        self._cluster = cluster
        self._group = group
        self._joined = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="upgrade-lock", daemon=True)
        self.member_id: str | None = None
        self._lost = False
        self._failure: PyconnectError | None = None

    def take(self) -> None:
        """Join the group; raises the error that prevented it."""
        self._thread.start()
        in_time = self._joined.wait(JOIN_S)
        if self._failure is not None:
            raise self._failure
        if not in_time:
            raise Unreachable(f"Kafka: the group {self._group} was not joined in {JOIN_S:.0f}s")

    def release(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(STOP_S)

    def held(self) -> bool:
        """Return whether the membership has lasted since it was taken."""
        return not self._lost and self._thread.is_alive()

    def _run(self) -> None:
        from kafka import KafkaConsumer

        consumer: Any = None  # the library has no types
        try:
            with protocol_errors("lock the cluster"):
                consumer = KafkaConsumer(
                    **self._cluster.kafka_python(),
                    group_id=self._group,
                    session_timeout_ms=SESSION_MS,
                    heartbeat_interval_ms=HEARTBEAT_MS,
                    max_poll_interval_ms=POLL_INTERVAL_MS,
                    enable_auto_commit=False,
                    allow_auto_create_topics=False,
                )
                # subscribe() needs a topic; one that does not exist keeps the assignment empty.
                consumer.subscribe([self._group])
                # Polls with short timeouts would begin join after join on a slow machine, each of
                # which leaves a member behind that the next one waits for.
                coordinator = consumer._coordinator  # noqa: SLF001 - nothing public joins
                coordinator.ensure_active_group(timeout_ms=JOIN_S * 1000)
                self._look(consumer)
                while not self._stop.is_set():
                    consumer.poll(POLL_MS)
                    self._look(consumer)
        except PyconnectError as error:
            if isinstance(error, Forbidden):
                error.hint = f"this command needs Read on the group {self._group}"
            self._failure = error
        finally:
            self._lost = True
            self._joined.set()
            if consumer is not None:
                consumer.close()

    def _look(self, consumer: Any) -> None:
        coordinator = consumer._coordinator  # noqa: SLF001 - it has no public way to tell
        generation = coordinator._generation  # noqa: SLF001 - likewise
        if coordinator.state != "<stable>" or generation is None:
            return
        if self.member_id is None:
            self.member_id = str(generation.member_id)
            self._joined.set()
        elif self.member_id != generation.member_id:
            self._lost = True


@contextmanager
def cluster_lock(
    cluster: KafkaAccess, protocol: KafkaProtocol, group_id: str
) -> Iterator[ClusterLock]:
    """Hold the lock; Conflict (exit 6) while another run holds it.

    A killed run holds it until its session ends; the function waits that long.
    """
    name = f"pyconnect-upgrade-{group_id}"
    # Wait for the maximum time that a killed run's session lasts.
    until = time.monotonic() + (SESSION_MS + HEARTBEAT_MS) / 1000
    while describe_group(protocol, name).members:
        if time.monotonic() > until:
            raise _held_by_another(name)
        time.sleep(POLL_MS / 1000)
    lock = ClusterLock(cluster, name)
    try:
        lock.take()
        members = describe_group(protocol, name).members
        if [member.id for member in members] != [lock.member_id]:
            raise _held_by_another(name)
        yield lock
    finally:
        lock.release()


def _held_by_another(name: str) -> Conflict:
    return Conflict(
        f"another run is upgrading this cluster: it holds the lock, group {name}",
        hint="find that run; the lock ends with it",
    )


PROPERTY = "exactly.once.source.support"
_TAIL = 400


class NeedsOperator(PyconnectError):
    """The operator has to carry out a step; the same command continues afterwards (exit 75)."""

    exit_code = ExitCode.NEEDS_OPERATOR


def _by_hand(worker: UpgradedWorker, phase: Phase) -> str:
    return f"on {worker.url}: set {PROPERTY}={phase} in its properties and restart it"


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
                        raise NeedsOperator(_by_hand(worker, action.phase))
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
            raise NeedsOperator(f"{_by_hand(worker, phase)} ({exc.message})") from exc
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
                # Brokers that do not answer halt the run only after the time limit of a step.
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
