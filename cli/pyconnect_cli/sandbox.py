"""`pyconnect sandbox`: a real Kafka on this machine, for trials and tests.

`sandbox demo`: two connectors of a sandbox's agent copy a file through a topic. Each run appends
lines to the file and waits until the copy has the last of them, so a second run shows that the
connectors still work.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pyconnect_cli.errors import ExitCode, UsageError, WaitTimedOut
from pyconnect_cli.render.streams import PRIVATE
from pyconnect_cli.render.styles import counted
from pyconnect_cli.rest.client import ConnectClient
from pyconnect_cli.rest.endpoint import Endpoint
from pyconnect_cli.rest.exchange import Exchange
from pyconnect_cli.session import session_of
from pyconnect_cli.settings.contexts import ConfigChange, Setting, update_user_file
from pyconnect_cli.verbs import ChangingVerb, option
from pyconnect_sandbox.jars import KAFKA_VERSION, SERVER_VERSIONS
from pyconnect_sandbox.state import context_name

if TYPE_CHECKING:
    from pyconnect_cli.session import Session
    from pyconnect_sandbox.lifecycle import SandboxStatus, ServerStatus

app = typer.Typer(help="Run a real Kafka on this machine, for trials and tests.")

NameOption = Annotated[str, option("--name NAME", "name of the sandbox")]
PortOption = Annotated[
    int | None, option("--port PORT", "port of the broker (default: a free port)")
]
DataDirOption = Annotated[
    Path | None, option("--data-dir DIR", "directory for the broker's records")
]
AclOption = Annotated[
    bool, option("--acl", "ACL authorizer for SASL users; other clients may do everything")
]
SaslOption = Annotated[
    list[str] | None,
    option(
        "--sasl USER:PASSWORD", "user USER:PASSWORD of a SASL listener (PLAIN, SCRAM); repeatable"
    ),
]
AgentOption = Annotated[bool, option("--agent", "also start a pyconnect agent")]
JavaWorkerOption = Annotated[bool, option("--java-worker", "also start Apache's Connect worker")]
PluginPathOption = Annotated[
    str | None,
    option(
        "--plugin-path PATHS",
        "plugin.path of the workers: directories of plugins and jars, separated by commas "
        "(default: that of their last start)",
    ),
]
ExactlyOnceOption = Annotated[
    bool, option("--exactly-once", "workers with exactly.once.source.support=enabled")
]
UseOption = Annotated[
    bool, option("--use", "use its worker and broker as the current context, `sandbox`")
]
KafkaDirOption = Annotated[
    Path | None,
    option(
        "--kafka-dir DIR",
        "directory of an unpacked Kafka (default: KAFKA_HOME, else downloaded jars)",
    ),
]
KafkaOption = Annotated[
    str | None,
    option(
        "--kafka RELEASE",
        f"release of Kafka to download and run: {' or '.join(SERVER_VERSIONS)} "
        f"(default: KAFKA_HOME, else {KAFKA_VERSION})",
    ),
]
SERVER_KINDS = ("broker", "agent", "java-worker")


@app.command(cls=ChangingVerb)
def up(
    context: typer.Context,
    *,
    name: NameOption = "default",
    port: PortOption = None,
    data_dir: DataDirOption = None,
    acl: AclOption = False,
    sasl: SaslOption = None,
    agent: AgentOption = False,
    java_worker: JavaWorkerOption = False,
    plugin_path: PluginPathOption = None,
    exactly_once: ExactlyOnceOption = False,
    use: UseOption = False,
    kafka_dir: KafkaDirOption = None,
    kafka: KafkaOption = None,
) -> None:
    """Start a single-node Kafka and wait until it answers; safe to run twice.

    The command downloads Kafka's jars once, from Maven Central or the repository of
    PYCONNECT_MAVEN_REPOSITORY. A sandbox keeps its data and ports between `down` and `up`.
    --timeout is the time for each server to answer.
    """
    from pyconnect_cli.render.step_line import StepLine
    from pyconnect_sandbox import lifecycle

    session = session_of(context)
    needing = (("--use", use), ("--plugin-path", plugin_path), ("--exactly-once", exactly_once))
    for flag, given in needing:
        if given and not (agent or java_worker):
            raise UsageError(f"{flag} needs a worker", hint="add --agent or --java-worker")
    if kafka is not None and kafka_dir is not None:
        raise UsageError("--kafka and --kafka-dir exclude each other")
    if kafka not in (None, *SERVER_VERSIONS):
        raise UsageError(
            f"the sandbox does not download Kafka {kafka}: --kafka is one of "
            + ", ".join(SERVER_VERSIONS),
            hint="unpack that release and name its directory by --kafka-dir",
        )
    request = lifecycle.UpRequest(
        name=name,
        data_directory=data_dir,
        port=port,
        acl=acl,
        sasl_users=dict(map(_user, sasl or ())),
        kafka_dir=kafka_dir,
        kafka_version=kafka,
        timeout_s=session.settings.timeout_s,
        agent=agent,
        java_worker=java_worker,
        plugin_path=tuple(
            Path(entry.strip()) for entry in (plugin_path or "").split(",") if entry.strip()
        ),
        exactly_once=exactly_once,
    )
    with StepLine(session.output) as progress:
        outcome = lifecycle.up(request, progress)
    if use:
        chosen = define(session, outcome.status, current=True)
        session.output.message(f"current context: {chosen}")
    document = {"started": list(outcome.started), **asdict(outcome.status)}
    if session.settings.output == "name":
        session.output.line(str(outcome.status.bootstrap_servers))
    else:
        session.output.document(document, text=_summary(outcome.status, outcome.started))


@app.command(cls=ChangingVerb)
def down(
    context: typer.Context,
    *,
    name: NameOption = "default",
    all_: Annotated[bool, option("--all", "every sandbox")] = False,
    remove_data: Annotated[
        bool, option("--remove-data", "also delete its records and its context")
    ] = False,
) -> None:
    """Stop a sandbox and all its processes. Safe to run twice."""
    from pyconnect_sandbox import lifecycle
    from pyconnect_sandbox.state import sandbox_names

    session = session_of(context)
    names = sandbox_names() if all_ else (name,)
    if remove_data and names:
        session.confirm(f"Delete the records of {', '.join(names)}?")
    stopped = {each: lifecycle.down(each, remove_data=remove_data) for each in names}
    if remove_data:
        forget(session, stopped)
    removed = ", its records are removed" if remove_data else ""
    lines = [
        f"sandbox {each}: {'stopped ' + ', '.join(kinds) if kinds else 'was not running'}{removed}"
        for each, kinds in stopped.items()
    ]
    session.output.document(
        {"stopped": {each: list(kinds) for each, kinds in stopped.items()}},
        text="\n".join(lines) or "there is no sandbox",
    )


@app.command()
def status(
    context: typer.Context,
    name: Annotated[
        str | None,
        option(
            "--name NAME", "name of the sandbox; exit 1 if it does not run (default: all sandboxes)"
        ),
    ] = None,
) -> int:
    """Show the sandboxes, their states and addresses."""
    from pyconnect_cli.render.tables import Column, state_column
    from pyconnect_sandbox import lifecycle

    session = session_of(context)
    statuses = lifecycle.all_statuses() if name is None else (lifecycle.status(name),)
    columns: list[Column[_Row]] = [
        Column("SANDBOX", lambda row: row[0].name, whole=True),
        Column("SERVER", lambda row: row[1].kind if row[1] else "-"),
        state_column("STATE", lambda row: (row[1] or row[0]).state),
        Column(
            "ADDRESS",
            lambda row: " ".join(row[1].addresses.values()) if row[1] else "-",
            whole=True,
        ),
        Column("PID", lambda row: str(row[1].pid) if row[1] else "-", right=True),
        Column(
            "MEMORY",
            lambda row: f"{row[1].resident_bytes / 2**20:.0f} MiB" if row[1] else "-",
            right=True,
        ),
        Column("LOG", lambda row: row[1].log if row[1] else "-", wide=True),
        Column("DATA", lambda row: row[0].data_directory, wide=True),
    ]
    rows: list[_Row] = [
        (sandbox, server) for sandbox in statuses for server in sandbox.servers or (None,)
    ]
    session.output.listing(
        columns,
        rows,
        document=[asdict(sandbox) for sandbox in statuses],
        names=[sandbox.name for sandbox in statuses],
        empty="there is no sandbox; start one: pyconnect sandbox up",
    )
    runs = all(sandbox.state == "running" for sandbox in statuses)
    return ExitCode.OK if runs or name is None else ExitCode.NEGATIVE


@app.command()
def logs(
    context: typer.Context,
    *,
    name: NameOption = "default",
    server: Annotated[
        str, option("--server KIND", "server whose log is printed: broker, agent or java-worker")
    ] = "broker",
    lines: Annotated[int, option("--lines/-n N", "number of last lines to print", least=0)] = 50,
    follow: Annotated[
        bool, option("--follow/-f", "also print new lines until the server stops")
    ] = False,
) -> None:
    """Print the end of a server's log."""
    from pyconnect_sandbox import lifecycle
    from pyconnect_sandbox import lifecycle as log_files

    if server not in SERVER_KINDS:
        raise UsageError(f"--server: `{server}` is not one of {', '.join(SERVER_KINDS)}")
    output = session_of(context).output
    log = lifecycle.server_log(name, server)
    position = log_files.print_end(log.path, lines, output.line)
    if follow:
        for line in log_files.follow(log.path, log.goes_on, position):
            output.line(line)
            if output.unwritten:
                return


_Row = tuple["SandboxStatus", "ServerStatus | None"]


def _user(text: str) -> tuple[str, str]:
    user, colon, password = text.partition(":")
    if not (user and colon and password):
        raise UsageError("--sasl: write USER:PASSWORD, both of them non-empty")
    return user, password


def _summary(sandbox: SandboxStatus, started: tuple[str, ...]) -> str:
    from pyconnect_cli.render.output import key_value_lines

    done = f"started {', '.join(started)}" if started else "was running already"
    facts = {"bootstrap.servers": sandbox.bootstrap_servers or "-"}
    if sandbox.sasl_bootstrap_servers:
        facts["with SASL"] = sandbox.sasl_bootstrap_servers
    for server in sandbox.servers:
        if "rest" in server.addresses:
            facts[server.kind] = server.addresses["rest"]
    facts["data"] = sandbox.data_directory
    return "\n".join([f"sandbox {sandbox.name}: {done}", *key_value_lines(facts, indent="  ")])


LINES = 1000
SOURCE, SINK, TOPIC = "demo-source", "demo-sink", "demo"
PAUSE_S = 0.1
_STRINGS = "org.apache.kafka.connect.storage.StringConverter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """The two files of a demonstration and the connectors between them."""

    read: Path
    written: Path

    def configs(self) -> dict[str, dict[str, str | None]]:
        """Return the connectors' configurations by their names."""
        common = {"tasks.max": "1", "key.converter": _STRINGS, "value.converter": _STRINGS}
        return {
            SOURCE: {
                "connector.class": "FileStreamSource",
                "file": str(self.read),
                "topic": TOPIC,
                **common,
            },
            SINK: {
                "connector.class": "FileStreamSink",
                "file": str(self.written),
                "topics": TOPIC,
                **common,
            },
        }

    def append(self, count: int) -> str:
        """Append numbered lines to the file that is read; return the last of them."""
        first = _count_lines(self.read) + 1
        lines = [f"line {number}" for number in range(first, first + count)]
        self.read.touch(mode=PRIVATE)
        with self.read.open("a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
        return lines[-1]

    def wait_for(self, line: str, timeout_s: float) -> int:
        """Return how many lines were written once `line` is the last. Raises WaitTimedOut."""
        end = f"{line}\n".encode()
        until = time.monotonic() + timeout_s
        while not (self.written.exists() and self.written.read_bytes().endswith(end)):
            if time.monotonic() >= until:
                raise WaitTimedOut(
                    f"`{line}` has not arrived in {self.written}",
                    hint="see the log of the agent: pyconnect sandbox logs --server agent",
                )
            time.sleep(PAUSE_S)
        return _count_lines(self.written)


@app.command(cls=ChangingVerb)
def demo(context: typer.Context, *, name: NameOption = "default") -> None:
    """Take lines from a file through a topic to another file; safe to run twice.

    Starts the sandbox and its agent if they do not run, and defines their context. Each run appends
    1,000 lines; the connectors keep running and copy later lines too. The sink, FileStreamSink, is
    at-least-once: after a failure it may write lines again. LakeSink writes files exactly once.
    """
    from pyconnect_cli.render.step_line import StepLine
    from pyconnect_sandbox import lifecycle
    from pyconnect_sandbox.state import SandboxDirectory

    session = session_of(context)
    timeout_s = session.settings.timeout_s
    request = lifecycle.UpRequest(name=name, timeout_s=timeout_s, agent=True)
    with StepLine(session.output) as progress:
        sandbox = lifecycle.up(request, progress).status
        addresses = {server.kind: server.addresses.get("rest", "") for server in sandbox.servers}
        url = addresses["agent"]
        directory = SandboxDirectory(name).path / "demo"
        directory.mkdir(mode=0o700, exist_ok=True)
        shown = Demo(read=directory / "read.txt", written=directory / "written.txt")
        last = shown.append(LINES)
        endpoint = Endpoint(urls=(url,), limits=session.settings.limits)
        with ConnectClient(Exchange(endpoint)) as client:
            for connector, config in shown.configs().items():
                progress(f"creating the connector {connector}")
                client.put_connector_config(connector, config)
                # A connector of an earlier run may be stopped.
                client.resume_connector(connector)
        progress(f"waiting for `{last}`")
        count = shown.wait_for(last, timeout_s)
    chosen = define(session, sandbox)
    document = {
        "url": url,
        "context": chosen,
        "connectors": [SOURCE, SINK],
        "topic": TOPIC,
        "read": str(shown.read),
        "written": str(shown.written),
        "lines": count,
    }
    text = [
        f"{shown.read} -> topic {TOPIC} -> {shown.written}: {counted(count, 'line')}",
        "to look at it:",
        f"  pyconnect --context {chosen} connectors list",
        f"  pyconnect --context {chosen} topics read {TOPIC}",
        f"  pyconnect --context {chosen} offsets get {SOURCE}",
        f"  pyconnect --context {chosen} offsets reset {SOURCE} --stop --resume",
        "to end it:",
        f"  pyconnect sandbox down --name {name} --remove-data",
    ]
    session.output.document(document, text="\n".join(text))


def _count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def define(session: Session, sandbox: SandboxStatus, *, current: bool = False) -> str:
    """Write a sandbox's context and return its name. Its agent's group is not its Java worker's."""
    rest = {server.kind: server.addresses.get("rest", "") for server in sandbox.servers}
    name = context_name(sandbox.name)
    settings: dict[str, Setting] = {
        "url": (rest.get("agent") or rest["java-worker"],),
        "kafka_bootstrap": str(sandbox.bootstrap_servers),
    }
    change = ConfigChange(contexts={name: settings}, current=name if current else None)
    update_user_file(session.settings.files.user_path, change)
    return name


def forget(session: Session, sandboxes: Iterable[str]) -> None:
    """Remove the contexts of removed sandboxes from the user's file."""
    files = session.settings.files
    users = {name for file in files.files if file.path == files.user_path for name in file.contexts}
    gone = tuple(name for name in map(context_name, sandboxes) if name in users)
    if gone:
        update_user_file(files.user_path, ConfigChange(remove=gone))
        session.output.message(f"context removed: {', '.join(gone)}")
