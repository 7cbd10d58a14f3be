"""`pyconnect plugins`: the installed plugins of a worker, and checks and tests of plugins.

`plugins check` reads class files; it starts neither Java nor a worker. `plugins test` needs neither
Kafka nor a worker: the agent's self-check runs the plugin in a separate process of this machine;
its lines of JSON are the interface.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from select import select
from signal import SIGKILL, Signals
from tempfile import TemporaryFile
from typing import Annotated

import typer

from pyconnect_cli.connectors.files import read_connector_files
from pyconnect_cli.errors import ExitCode, NotFound, PyconnectError, UsageError
from pyconnect_cli.parsing.nouns import did_you_mean
from pyconnect_cli.parsing.values import parse_duration
from pyconnect_cli.plugins import new
from pyconnect_cli.render.styles import state_style
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.answers import ConfigKey, Plugin
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import FilesOption, argument, option
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.installation import install_command
from pyconnect_clients.plugin_findings import LinkFinding, check_locations, plugin_path_of
from pyconnect_clients.plugin_jars.kafka_links import kafka_api
from pyconnect_clients.properties_file import load_properties

app = typer.Typer(help="List, describe and test the plugins of a worker.")

LINK_COLUMNS: Sequence[Column[LinkFinding]] = (
    Column("STATUS", lambda finding: finding.status, style=state_style),
    Column("LOCATION", lambda finding: Path(finding.location).name, distinct=True),
    Column("KAFKA", lambda finding: finding.kafka),
    Column("DETAIL", lambda finding: finding.detail, prose=True),
)


@app.command("check")
def check(
    context: typer.Context,
    directories: Annotated[
        list[Path] | None, argument("[DIR]...", "plugin directories, or jars, of this machine")
    ] = None,
    *,
    worker: Annotated[
        Path | None, option("--worker FILE", "worker.properties, for its plugin.path")
    ] = None,
    kafka: Annotated[
        str | None, option("--kafka RELEASE", "release that has to run all plugins, such as 4.4")
    ] = None,
) -> None:
    """Check which releases of Kafka the Java plugins of a directory can run with.

    The command reads the jars, without Java. It names classes and methods of Kafka that a plugin
    needs and a release lacks, and exits with 1 when a plugin cannot run: with the release of
    --kafka, else with any release.
    """
    session = session_of(context)
    try:
        if kafka is not None:
            kafka_api().bit(kafka)
    except KeyError:
        raise UsageError(
            f"the classes of Kafka {kafka} are not known; known are"
            f" {', '.join(kafka_api().releases)}"
        ) from None
    entries = list(directories or ())
    if worker is not None:
        try:
            entries += plugin_path_of(load_properties(str(worker)))
        except ClientPropertyError as error:
            raise UsageError(str(error)) from error
    for entry in entries:
        if not entry.exists():
            raise NotFound(f"{entry} does not exist", hint="give a directory of plugins, or a jar")
    findings = check_locations(entries, kafka)
    if not findings:
        raise NotFound(
            "there are no Java plugins to check",
            hint="name directories that hold jars, or a worker's file: --worker worker.properties",
        )
    failed = any(finding.status == "failed" for finding in findings)
    if not session.output.silent(success=not failed):
        session.output.listing(
            LINK_COLUMNS,
            findings,
            document=[asdict(finding) for finding in findings],
            names=[finding.location for finding in findings],
        )
    if failed:
        raise typer.Exit(ExitCode.NEGATIVE)


app.registered_commands += new.app.registered_commands

SELF_CHECK = "pyconnect_agent.plugins.self_check"
LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class CheckStep:
    """One step of a self-check; `result` is begun, passed, failed or skipped.

    `stack`: the stacks of the plugin's threads when the step hung or crashed.
    """

    step: str
    result: str
    detail: str
    stack: str = ""


_STYLES = {"passed": "good", "failed": "bad", "skipped": "dim"}
CHECK_COLUMNS: Sequence[Column[CheckStep]] = (
    Column("STEP", lambda step: step.step),
    Column("RESULT", lambda step: step.result, style=_STYLES.get),
    Column("DETAIL", lambda step: step.detail, prose=True),
)


@app.command("test")
def try_out(
    context: typer.Context,
    plugin: Annotated[str, argument("PLUGIN", "class, simple name or alias")],
    *,
    files: FilesOption = None,
    plugin_path: Annotated[
        list[str] | None, option("--plugin-path DIR", "directory of plugin directories; repeatable")
    ] = None,
    duration: Annotated[
        str, option("--for TIME", "time that a step may take, and to wait for records")
    ] = "10s",
) -> None:
    """Test a plugin on this machine without Kafka: load it, validate it, run a task of it.

    With -f the command runs a connector of that configuration: start, records, commit, rebalance,
    stop.
    """
    session = session_of(context)
    config: dict[str, str] | None = None
    if files:
        found = read_connector_files(files)
        if len(found) != 1:
            raise UsageError(f"give one config, not {len(found)}")
        config = {key: value for key, value in found[0].config.items() if value is not None}
    time_s = parse_duration(duration, what="--for")
    command = [sys.executable, "-m", SELF_CHECK, plugin, "--time", str(time_s)]
    for directory in plugin_path or []:
        command += ["--plugin-path", directory]
    if config is not None:
        # The question may hold secrets, and other users can see arguments.
        command.append("--config-from-stdin")
    steps = _run(session, plugin, command, "" if config is None else json.dumps(config))
    session.output.listing(
        CHECK_COLUMNS, steps, document=[asdict(step) for step in steps], empty="nothing was checked"
    )
    failed = next((step for step in steps if step.result == "failed"), None)
    if failed is not None:
        if failed.stack:
            session.output.message(failed.stack)
        raise PyconnectError(f"plugin `{plugin}` failed at `{failed.step}`: {failed.detail}")


def _run(session: Session, plugin: str, command: Sequence[str], given: str) -> list[CheckStep]:
    """Run the self-check and return its steps, even if the plugin ends the process."""
    from pyconnect_cli.render.step_line import StepLine

    steps: list[CheckStep] = []
    with (
        TemporaryFile("w+", errors="replace") as stacks,
        TemporaryFile("w+", errors="replace") as complaints,
        StepLine(session.output) as progress,
    ):
        process = subprocess.Popen(
            [*command, "--stack-to", str(stacks.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            pass_fds=(stacks.fileno(),),
            start_new_session=True,
        )
        try:
            for line in _lines(process, given):
                try:
                    found = json.loads(line)
                    step = CheckStep(found["step"], found["result"], found["detail"])
                except (ValueError, KeyError, TypeError):
                    continue  # output of the plugin
                if steps and steps[-1].result == "begun":
                    steps.pop()
                steps.append(step)
                if step.result == "begun":
                    progress(step.step, passing=True)
            code = process.wait()
        finally:
            # Processes that the plugin has started end with the check.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, SIGKILL)
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
        texts = [file.read() for file in (stacks, complaints) if not file.seek(0)]
    if not steps:
        raise PyconnectError(
            f"the self-check of `{plugin}` ended with exit code {code}:\n{texts[1].strip()}",
            hint=f"the agent must be installed beside this command: {install_command('agent')}",
            exit_code=ExitCode.NEGATIVE,
        )
    return ended_steps(steps, code, texts[0])


def _lines(process: subprocess.Popen[bytes], given: str) -> Iterator[str]:
    """Yield the lines that the process prints, until it has ended.

    The end of the output is not awaited: a process that the plugin started may keep it open.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write(given.encode())
    os.set_blocking(process.stdout.fileno(), False)
    begun = b""
    while True:
        ended = process.poll() is not None
        select([process.stdout], [], [], LOOK_S)
        while part := process.stdout.read(1 << 16):
            *lines, begun = (begun + part).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)
        if ended:
            return
        if part == b"":
            process.wait()


def ended_steps(steps: Sequence[CheckStep], code: int, stacks: str) -> list[CheckStep]:
    """Return the steps as they ended; the plugin may have ended the process within the last one.

    `code` is the exit code of the process, negative for a signal; `stacks` are the stacks of
    threads that the interpreter wrote when the step did not return in time, or crashed.
    """
    last = steps[-1]
    if last.result != "begun":
        return list(steps)
    if last.step == "clean up" and not stacks and code in (0, 1):
        return list(steps[:-1])
    if stacks.startswith("Timeout"):
        detail = "did not return in time; --for TIME allows more"
    elif code < 0:
        detail = f"the process was ended by {Signals(-code).name}"
    else:
        detail = f"the plugin ended the process with exit code {code}"
    shown: list[str] = []
    own = False
    for line in stacks.splitlines():
        own = ("/pyconnect_agent/plugins/" in line or own) and line.startswith("  ")
        if line and not own and not line.startswith("Timeout"):
            shown.append(line)
    return [*steps[:-1], replace(last, result="failed", detail=detail, stack="\n".join(shown))]


COLUMNS: Sequence[Column[Plugin]] = (
    Column("TYPE", lambda plugin: plugin.type),
    Column("CLASS", lambda plugin: plugin.class_name, whole=True),
    Column("VERSION", lambda plugin: plugin.version or "-"),
)


KEY_COLUMNS: Sequence[Column[ConfigKey]] = (
    Column("KEY", lambda key: key.name, whole=True),
    Column("TYPE", lambda key: key.type),
    Column("DEFAULT", lambda key: "(required)" if key.required else key.default_value or ""),
    Column("IMPORTANCE", lambda key: key.importance),
    Column("GROUP", lambda key: key.group or "", wide=True),
    Column("MEANING", lambda key: " ".join(key.documentation.split()), prose=True),
)
SearchOption = Annotated[
    str | None, option("--search REGEX", "regular expression that a row must contain")
]


@app.command("list")
def list_plugins(
    context: typer.Context,
    *,
    everything: Annotated[
        bool, option("--all", "also converters, transformations and predicates")
    ] = False,
    search: SearchOption = None,
) -> None:
    """List the connectors, or all plugins, of the worker that answers."""
    session = session_of(context)
    pattern = _pattern(search)
    plugins = [
        plugin
        for plugin in session.client.plugins(connectors_only=not everything)
        if pattern is None or pattern.search(plugin.class_name)
    ]
    session.output.listing(
        COLUMNS,
        plugins,
        document=[plugin.raw for plugin in plugins],
        names=[plugin.class_name for plugin in plugins],
        empty="no plugin matches",
    )


@app.command()
def describe(
    context: typer.Context,
    plugin: Annotated[str, argument("PLUGIN", "class, simple name or alias")],
    *,
    search: SearchOption = None,
    version: Annotated[
        str | None, option("--version VERSION", "version of the plugin, if several are installed")
    ] = None,
) -> None:
    """Show the configuration keys of a plugin."""
    session = session_of(context)
    pattern = _pattern(search)
    try:
        every = session.client.plugin_config(plugin, version=version)
    except NotFound as exc:
        known = [found.class_name for found in session.client.plugins(connectors_only=False)]
        short = [name.rsplit(".", 1)[-1] for name in known]
        hint = did_you_mean(plugin, [*known, *short])
        raise NotFound(
            f"plugin `{plugin}` is not installed on this worker",
            hint=hint or "list the installed plugins: pyconnect plugins list --all",
        ) from exc
    keys = [
        key
        for key in every
        if pattern is None or pattern.search(key.name) or pattern.search(key.documentation)
    ]
    session.output.listing(
        KEY_COLUMNS, keys, document=[key.raw for key in keys], empty="no key matches"
    )


def _pattern(text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as exc:
        raise UsageError(f"`{text}` is not a regular expression: {exc}") from exc
