"""`plugins test`: try a plugin out on this machine, without Kafka and without a worker.

The agent's self-check does it in a process of its own; its lines of JSON are the interface.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from pyconnect_cli.connectors.files import read_connector_files
from pyconnect_cli.errors import ExitCode, PyconnectError, UsageError, WaitTimedOut
from pyconnect_cli.parsing.arguments import FilesOption
from pyconnect_cli.parsing.durations import parse_duration
from pyconnect_cli.render.tables import Column
from pyconnect_cli.session import session_of
from pyconnect_clients.installation import install_command

app = typer.Typer()

SELF_CHECK = "pyconnect_agent.plugins.self_check"


@dataclass(frozen=True, slots=True)
class CheckStep:
    """One step of a self-check; `result` is passed, failed or skipped."""

    step: str
    result: str
    detail: str


_STYLES = {"passed": "good", "failed": "bad", "skipped": "dim"}
COLUMNS: Sequence[Column[CheckStep]] = (
    Column(title="STEP", value=lambda step: step.step),
    Column(title="RESULT", value=lambda step: step.result, style=_STYLES.get),
    Column(title="DETAIL", value=lambda step: step.detail, prose=True),
)


@app.command("test")
def try_out(
    context: typer.Context,
    plugin: Annotated[str, typer.Argument(metavar="PLUGIN", help="class, simple name or alias")],
    *,
    files: FilesOption = None,
    plugin_path: Annotated[
        list[str] | None,
        typer.Option(
            "--plugin-path", metavar="DIR", help="directory of plugin directories; repeatable"
        ),
    ] = None,
    duration: Annotated[
        str, typer.Option("--for", metavar="TIME", help="time to wait for records")
    ] = "10s",
) -> None:
    """Try a plugin out here, without Kafka: load, validate, run a task with made-up records.

    With -f, a connector's config, it goes through a life: start, records, commit, rebalance, stop.
    """
    session = session_of(context)
    config = _config(files)
    time_s = parse_duration(duration, what="--for")
    steps = _run(plugin, plugin_path or [], config, time_s)
    session.output.listing(
        COLUMNS, steps, document=[asdict(step) for step in steps], empty="nothing was checked"
    )
    failed = next((step for step in steps if step.result == "failed"), None)
    if failed is not None:
        raise PyconnectError(f"plugin `{plugin}` failed at `{failed.step}`: {failed.detail}")


def _config(files: Sequence[str] | None) -> Mapping[str, str] | None:
    if not files:
        return None
    found = read_connector_files(files)
    if len(found) != 1:
        raise UsageError(f"give one config, not {len(found)}")
    return {key: value for key, value in found[0].config.items() if value is not None}


def _run(
    plugin: str, plugin_path: Sequence[str], config: Mapping[str, str] | None, time_s: float
) -> list[CheckStep]:
    command = [sys.executable, "-m", SELF_CHECK, plugin, "--time", str(time_s)]
    for directory in plugin_path:
        command += ["--plugin-path", directory]
    if config is not None:
        command.append("--config-from-stdin")
    limit_s = 60 + 2 * time_s
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
            # Not an argument: it may hold secrets, and arguments are public.
            input="" if config is None else json.dumps(config),
        )
    except subprocess.TimeoutExpired as late:
        raise WaitTimedOut(
            f"plugin `{plugin}` did not finish within {limit_s:.0f} s",
            hint="a call of the plugin hangs; a worker could not stop such a task gracefully",
        ) from late
    steps = [step for line in done.stdout.splitlines() if (step := _step(line)) is not None]
    if done.returncode not in (0, 1) or not steps:
        raise PyconnectError(
            f"the self-check of `{plugin}` ended with exit code {done.returncode}:\n"
            f"{done.stderr.strip()}",
            hint=f"the agent must be installed beside this command: {install_command('agent')}",
            exit_code=ExitCode.NEGATIVE,
        )
    return steps


def _step(line: str) -> CheckStep | None:
    """Return the step that a line reports; None for output of the plugin."""
    try:
        found = json.loads(line)
        return CheckStep(found["step"], found["result"], found["detail"])
    except (ValueError, KeyError, TypeError):
        return None
