"""Record a terminal in which a killed task recovers: docs/images/recovery.svg.

    .venv/bin/python scripts/record_terminal.py

The session is real: a broker, an agent with exactly-once support, a source that reads a growing
file, and SIGKILL for its task. Only the commands and the remarks are written by hand. The picture
shows each line when it came, with shorter pauses; without animations it shows the end.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from pyconnect_sandbox.connect_worker import AgentProcess, WorkerLaunch, worker_properties

TARGET = Path(__file__).resolve().parent.parent / "docs" / "images" / "recovery.svg"
COLUMNS = 100
LINES = 60_000
GROWING = f"""\
for start in $(seq 1 300 {LINES}); do seq -f 'line %.0f' $start $((start + 299)); sleep 0.1; done
"""
KEYS_S, LONGEST_PAUSE_S = 1.2, 1.5
BIN = Path(sys.executable).parent
THEME = TerminalTheme(
    (16, 24, 32),
    (226, 232, 240),
    [(16, 24, 32), (248, 113, 113), (74, 222, 128), (250, 204, 21),
     (96, 165, 250), (192, 132, 252), (34, 211, 238), (226, 232, 240)],
)  # fmt: skip
PICTURE = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font: {char_height}px/{line_height}px DejaVu Sans Mono, Menlo, Consolas, monospace;
}}
.{unique_id}-title {{ font: bold 18px sans-serif; }}
@keyframes {unique_id}-come {{ 0% {{ visibility: hidden; }} 100% {{ visibility: visible; }} }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


@dataclass(slots=True)
class Recording:
    """Lines of a terminal, each with the time at which it came."""

    directory: Path
    environment: dict[str, str]
    lines: list[tuple[float, Text]] = field(default_factory=list)
    at_s: float = 0.0

    def remark(self, text: str) -> None:
        self.lines.append((self.at_s, Text(f"# {text}", style="dim")))
        self.at_s += KEYS_S

    def run(self, command: str, expected: str = "") -> None:
        """Run a command in bash, and note what it prints, which has the expected text."""
        self.lines.append((self.at_s, Text.assemble(("$ ", "bold green"), (command, "bold"))))
        self.at_s += KEYS_S
        before = time.monotonic()
        with subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.directory,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                now = time.monotonic()
                self.at_s += min(now - before, LONGEST_PAUSE_S)
                before = now
                self.lines.append((self.at_s, Text.from_ansi(line.rstrip())))
        printed = "\n".join(text.plain for _, text in self.lines)
        if process.returncode != 0 or expected not in printed:
            raise SystemExit(f"{printed}\nThe last command failed, or did not print `{expected}`")
        self.lines.append((self.at_s, Text()))

    def picture(self) -> str:
        """Return the SVG: a line is hidden until its time."""
        with Path(os.devnull).open("w") as nowhere:
            console = Console(record=True, width=COLUMNS, file=nowhere, highlight=False)
            for _, text in self.lines[:-1]:
                console.print(text, no_wrap=True, crop=True)
        svg = console.export_svg(
            title="a killed task recovers", theme=THEME, code_format=PICTURE, unique_id="recovery"
        )
        times = "".join(
            f'[clip-path="url(#recovery-line-{number})"]'
            f" {{ animation: recovery-come {at_s:.1f}s step-end backwards; }}\n"
            for number, (at_s, _) in enumerate(self.lines[:-1])
        )
        svg = svg.replace("</style>", f"@media screen {{\n{times}}}\n</style>")
        return "".join(f"{line.rstrip()}\n" for line in svg.splitlines() if line.strip())


def sandbox(environment: dict[str, str], *arguments: str) -> str:
    command = [str(BIN / "pyconnect"), "sandbox", *arguments, "--name", "recording"]
    return subprocess.run(
        command, env=environment, check=True, text=True, stdout=subprocess.PIPE
    ).stdout


def record(directory: Path, environment: dict[str, str], bootstrap_servers: str) -> Recording:
    """Play the story on an agent of its own."""
    properties = worker_properties(bootstrap_servers, "recording") | {
        "exactly.once.source.support": "enabled",
        "agent.restart.backoff.ms": "4000",
    }
    agent = AgentProcess(WorkerLaunch(directory=directory / "agent", properties=properties))
    agent.start()
    recording = Recording(directory, environment | {"PYCONNECT_URL": agent.url})
    (directory / "lines.json").write_text(
        json.dumps(
            {
                "name": "lines",
                "connector.class": "FileStreamSource",
                "file": str(directory / "lines.txt"),
                "topic": "lines",
                "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            }
        )
    )
    with (directory / "lines.txt").open("w") as file:
        writer = subprocess.Popen(["bash", "-c", GROWING], stdout=file)
    try:
        recording.remark("a file that grows, into a topic, exactly once")
        recording.run("pyconnect connectors create -f lines.json --wait RUNNING")
        recording.run("pyconnect agent status --tasks --columns NAME,STATE,PID,MEMORY,QUEUE")
        pid = re.search(r"lines/0 +RUNNING +(\d+)", recording.lines[-2][1].plain)
        assert pid is not None, recording.lines[-2]
        recording.remark("each task is a process of its own: kill this one in its work")
        recording.run(
            f"kill -9 {pid[1]};"
            " until pyconnect tasks list | grep -B1 -A9 FAILED; do sleep 0.1; done",
            "FAILED",
        )
        recording.remark("the agent restarts it, at the offset of its last transaction")
        recording.run("sleep 8; pyconnect agent status --tasks --columns NAME,STATE,PID,RESTARTS")
        writer.wait(60)
        time.sleep(3)
        recording.remark("nothing is missing, nothing is there twice")
        recording.run(
            f"pyconnect topics read lines --from-beginning --max {LINES + 1} --jq .[].value"
            " | tr -d '\"' > topic.txt"
        )
        recording.run(
            "wc -l topic.txt lines.txt | head -2; diff -s topic.txt lines.txt", "identical"
        )
    finally:
        writer.kill()
        agent.stop()
    return recording


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="recording-") as name:
        directory = Path(name)
        environment = os.environ | {
            "HOME": name,
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "COLUMNS": str(COLUMNS),
            "PYCONNECT_COLOR": "always",
        }
        up = sandbox(environment | {"PYCONNECT_COLOR": "never"}, "up")
        try:
            servers = re.search(r"bootstrap\.servers +(\S+)", up)
            assert servers is not None, up
            kafka = {"PYCONNECT_KAFKA_BOOTSTRAP": servers[1]}
            recording = record(directory, environment | kafka, servers[1])
        finally:
            sandbox(environment, "down", "--remove-data", "--yes")
    TARGET.write_text(recording.picture(), "utf-8")


if __name__ == "__main__":
    main()
