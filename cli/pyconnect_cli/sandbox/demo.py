"""`pyconnect sandbox demo`: two connectors of a sandbox's agent copy a file through a topic.

Each run appends lines to the file and waits until the copy has the last of them, so a second run
shows that the connectors still work.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.errors import WaitTimedOut
from pyconnect_cli.render.styles import counted
from pyconnect_cli.render.whole_files import PRIVATE
from pyconnect_cli.rest.client import ConnectClient
from pyconnect_cli.rest.endpoint import Endpoint
from pyconnect_cli.rest.exchange import Exchange
from pyconnect_cli.sandbox import context as _sandbox_context
from pyconnect_cli.session import session_of
from pyconnect_cli.verbs import ChangingVerb

app = typer.Typer()

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
def demo(
    context: typer.Context,
    *,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="name of the sandbox")
    ] = "default",
) -> None:
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
    chosen = _sandbox_context.define(session, sandbox)
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
