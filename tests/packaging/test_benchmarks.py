"""Benchmarks start as their documents say, and leave no processes behind."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from benchmarks.__main__ import main, names
from tests.support.eventually import eventually
from tests.support.seeds import chosen

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (
    ROOT / "docs" / "reference" / "benchmarks.md",
    ROOT / "docs" / "explanation" / "exactly-once.md",
)
COMMAND = re.compile(r"\bscripts/benchmark (\w+)")
WITHOUT_SERVERS = {
    "acls": ("20", "2", "50"),
    "herder": ("20", "2"),
    "herder_scale": ("--connectors", "20", "--tasks", "2", "--stopped", "0"),
    "json_profile": ("--records", "50"),
    "tracing": ("--runs", "1", "--batches", "2", "--limit", "10000"),
    "transform_chain": ("--records", "50", "--runs", "1"),
}

WITH_SPARK = {"reconcile"}
SIGNALS = chosen(
    [signal.SIGKILL],
    long=[
        pytest.param(signal.SIGINT, marks=pytest.mark.long),
        pytest.param(signal.SIGTERM, marks=pytest.mark.long),
    ],
)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks", *arguments]


def run(*arguments: str) -> str:
    done = subprocess.run(
        command(*arguments), cwd=ROOT, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_documents_start_benchmarks_that_exist_in_one_way() -> None:
    """Documents start benchmarks by `scripts/benchmark NAME` only."""
    texts = [document.read_text("utf-8") for document in DOCUMENTS]
    named = {found for text in texts for found in COMMAND.findall(text)} - {"NAME"}
    assert not [text for text in texts if re.search(r"python [^`]*benchmarks", text)]
    assert named
    assert named <= set(names())


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.spark if name in WITH_SPARK else pytest.mark.wire)
        for name in names()
    ],
)
def test_every_benchmark_starts(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The benchmark imports its modules and reads its options."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["benchmarks", name, "--help"])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert f"usage: benchmark {name}" in capsys.readouterr().out


@pytest.mark.wire
@pytest.mark.parametrize("name", WITHOUT_SERVERS)
def test_a_benchmark_names_what_its_figures_depend_on(name: str) -> None:
    """Processors, the interpreter's build and Java are printed above the figures."""
    head, _, figures = run(name, *WITHOUT_SERVERS[name]).partition("\n\n")
    assert re.search(r"^machine:  \d+ of \d+ processors ", head, re.MULTILINE)
    assert re.search(r"^Python:   3\.\S+, built with .*PGO.*LTO", head, re.MULTILINE)
    assert re.search(r"^Java:     \S", head, re.MULTILINE)
    assert re.search(r"\d", figures)


@contextmanager
def started(*arguments: str) -> Iterator[psutil.Process]:
    """Run a benchmark in a session of its own; end it and all its processes."""
    process = subprocess.Popen(
        command(*arguments),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    found = psutil.Process(process.pid)
    family = [found]
    try:
        yield found
    finally:
        with suppress(psutil.NoSuchProcess):
            family += found.children(recursive=True)
        for member in family:
            with suppress(psutil.NoSuchProcess):
                member.kill()
        process.wait()


def command_line(process: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


def lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def assert_nothing_is_left(name: str, options: tuple[str, ...], word: str, number: int) -> None:
    """Kill a benchmark when one of its processes has `word` in its command line; all must end."""
    with started(name, *options) as benchmark:

        def family() -> list[psutil.Process]:
            below = benchmark.children(recursive=True)
            return below if any(word in command_line(child) for child in below) else []

        below = eventually(family, 120)
        benchmark.send_signal(number)
        eventually(
            lambda: not any(map(lives, (benchmark, *below))),
            60,
            lambda: [member for member in (benchmark, *below) if lives(member)],
        )


@pytest.mark.kafka
@pytest.mark.parametrize("number", SIGNALS)
def test_a_killed_benchmark_leaves_no_server(number: signal.Signals) -> None:
    """The Java worker and the broker end when the benchmark ends, by any signal."""
    options = ("--lines", "2000000", "--only", "java")
    assert_nothing_is_left("file_stream", options, "ConnectStandalone", number)


@pytest.mark.spark
@pytest.mark.parametrize("number", SIGNALS)
def test_a_killed_benchmark_leaves_no_spark(number: signal.Signals) -> None:
    """Spark's JVM and the broker end when the benchmark ends, by any signal."""
    assert_nothing_is_left("reconcile", ("2000000",), "org.apache.spark", number)
