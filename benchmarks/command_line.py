"""Processor time of short commands of `pyconnect`, as multiples of `python -c pass`, beside curl.

    scripts/benchmark command_line [connectors] [--runs N]

A worker in this process answers. The commands run in turn, so that all of them meet the same
machine, and the least time of each counts. Modules are compiled before, as installers do it.
Exit 1: a command is above its limit.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.fakes.connect_server import FakeConnect, FakeConnector, serve

BARE = (sys.executable, "-c", "pass")
# Parser and HTTP client alone: the lower bound of each command.
LIBRARIES = "import sys; sys.modules['httpx._main'] = None; import typer, httpx; {request}"
REQUEST = "httpx.Client(verify=False).get({url!r} + '/connectors/orders-0')"
SHORT, SCREEN, TAB = 18.0, 22.0, 6.0
"""Limits of a verb, of the screen about a cluster, and of the Tab key."""


def pyconnect(words: str) -> tuple[str, ...]:
    """Return the command line of `pyconnect WORDS`; an empty last word is a Tab after a space."""
    code = "from pyconnect_cli.__main__ import command; command()"
    return (sys.executable, "-c", code, *words.split(" "))


def commands(url: str) -> Mapping[str, tuple[Sequence[str], float | None]]:
    """Return the command lines with their limits."""
    expanded = f"{url}/connectors?expand=status&expand=info"
    libraries = LIBRARIES.format(request=REQUEST.format(url=url))
    found: dict[str, tuple[Sequence[str], float | None]] = {"python -c pass": (BARE, None)}
    if curl := shutil.which("curl"):
        found["curl, the whole list"] = ((curl, "-s", "-o", os.devnull, expanded), None)
    found["typer, httpx, one request"] = ((sys.executable, "-c", libraries), None)
    found["pyconnect"] = (pyconnect("--help"), TAB)
    for verb in ("list", "get orders-0", "describe orders-0"):
        found[f"connectors {verb}"] = (pyconnect(f"connectors {verb}"), SHORT)
    found["offsets get orders-0"] = (pyconnect("offsets get orders-0"), SHORT)
    found["status"] = (pyconnect("status"), SCREEN)
    found["Tab after a noun"] = (pyconnect("__complete connectors "), TAB)
    found["Tab after an option"] = (pyconnect("__complete connectors list --"), TAB)
    found["Tab at a name, asked"] = (pyconnect("__complete connectors get o"), TAB)
    return found


def processor_ms(command: Sequence[str], environ: Mapping[str, str]) -> float:
    """Run a command; return its processor time, user and system."""
    # With a filled cache the Tab key sends no request.
    with tempfile.TemporaryDirectory() as cache:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            command, env={**environ, "XDG_CACHE_HOME": cache}, capture_output=True, check=False
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Exit code 1 of `status` means an unhealthy worker, such as those that the statuses name here.
    assert done.returncode in {0, 1}, done.stderr
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def measure(url: str, runs: int) -> dict[str, float]:
    """Return the least processor time of each command, in ms."""
    with tempfile.TemporaryDirectory() as compiled:
        root = Path(__file__).resolve().parent.parent
        environ = {name: text for name, text in os.environ.items() if name != NO_BYTECODE} | {
            "PYTHONPATH": f"{root / 'cli'}:{root / 'agent'}",
            "PYTHONPYCACHEPREFIX": compiled,
            "PYCONNECT_URL": url,
        }
        lines = commands(url)
        taken: dict[str, list[float]] = {name: [] for name in lines}
        for number in range(runs + 1):
            for name, (command, _) in lines.items():
                time_ms = processor_ms(command, environ)
                if number:  # the first run compiles
                    taken[name].append(time_ms)
    return {name: min(times) for name, times in taken.items()}


NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("connectors", type=int, nargs="?", default=300)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    config = {"connector.class": "org.example.FileSource", "topic": "orders", "tasks.max": "2"}
    connectors = {
        f"orders-{number}": FakeConnector(config=dict(config), tasks=["RUNNING", "RUNNING"])
        for number in range(options.connectors)
    }
    with serve(FakeConnect(connectors=connectors)) as url:
        least = measure(url, options.runs)
        limits = {name: limit for name, (_, limit) in commands(url).items()}
    bare = least["python -c pass"]
    print("| command | processor time, ms | of `python -c pass` | limit |\n|---|---|---|---|")
    for name, time_ms in least.items():
        limit = limits[name]
        print(f"| {name} | {time_ms:.0f} | {time_ms / bare:.1f} | {limit or '-'} |")
    above = [name for name, ms in least.items() if ms / bare > (limits[name] or float("inf"))]
    if above:
        sys.exit(f"error: above the limit: {', '.join(above)}")


if __name__ == "__main__":
    main()
