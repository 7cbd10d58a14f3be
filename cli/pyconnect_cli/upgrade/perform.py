"""Performs the actions of `decide`: changes one worker by its agent, by commands or by hand.

Each act may be repeated. NeedsOperator is not a failure: the operator carries out its step before
the run continues. Output of commands is shown only when they fail.
"""

from __future__ import annotations

import subprocess

from pyconnect_cli.errors import (
    Conflict,
    ExitCode,
    Forbidden,
    PreconditionFailed,
    PyconnectError,
    Unreachable,
    WaitTimedOut,
)
from pyconnect_cli.rest.masking import mask_command
from pyconnect_cli.upgrade.cluster.observe import Workers
from pyconnect_cli.upgrade.plan.decide import Act, WorkerAction
from pyconnect_cli.upgrade.plan.model import Means, UpgradedWorker
from pyconnect_cli.upgrade.plan.run import Run
from pyconnect_clients.phases import Phase

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
        match action.act:
            case Act.CHANGE:
                match worker.means:
                    case Means.COMMANDS:
                        for name in ("configure", *self._restart(worker)):
                            self._run_command(name, worker.url, action.phase)
                    case Means.AGENT:
                        self._change_agent(run, worker, action.phase)
                    case Means.OPERATOR:
                        raise NeedsOperator(
                            f"on {worker.url}: set {PROPERTY}={action.phase} in its properties"
                            " and restart it"
                        )
            case Act.QUIESCE:
                commands = self._workers.inventory.commands(worker.url)
                if "stop" in commands.templates:
                    self._run_command("stop", worker.url, "")
                elif worker.means is Means.AGENT:
                    self._workers.admin(worker.url).drain(undrain=False)
                else:
                    raise NeedsOperator(f"stop {worker.url}")
            case Act.REPLACE:
                self._replace(worker)

    def _replace(self, worker: UpgradedWorker) -> None:
        if "replace" in self._workers.inventory.commands(worker.url).templates:
            self._run_command("replace", worker.url, Phase.DISABLED)
            return
        raise NeedsOperator(
            f"on {worker.url} (version {worker.version}): stop it, replace its software, start it"
        )

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

    def _restart(self, worker: UpgradedWorker) -> tuple[str, ...]:
        commands = self._workers.inventory.commands(worker.url)
        if not worker.reachable and "start" in commands.templates:
            # --full-stop, or an earlier process of this run, stopped the worker.
            return ("start",)
        return commands.restart_names

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
