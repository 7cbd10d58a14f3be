"""A file to a topic and a topic to a file: a warm pyconnect worker beside Quix Streams.

    scripts/benchmark beside_quixstreams [--lines N] [--runs N] [--busy]

Quix Streams is a library with which a Python user would write the same work. Its sources have no
exactly-once, so ours is at-least-once here too. Each run of Quix Streams is a process of its own,
whose start does not count. See `beside_java` for how a rate is counted.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.beside_java import WORKER, Case, Worker, arguments, bench_of, measure, print_head
from tests.support.names import unique_name

CASES = (
    Case(title="file to topic, at-least-once", exactly_once=False),
    Case(title="topic to file", is_source=False, exactly_once=False),
)
PROGRAM = Path(__file__).with_name("quixstreams_program.py")
END_S = 30.0


@dataclass(frozen=True, slots=True)
class QuixStreams:
    """A runner that starts the program where a worker would run a connector."""

    python: Path
    bootstrap_servers: str

    @contextlib.contextmanager
    def running(self, config: Mapping[str, str]) -> Iterator[None]:
        """Run the program of a connector's config until the context ends."""
        is_source = "topic" in config
        work, topic = ("source", config["topic"]) if is_source else ("sink", config["topics"])
        process = subprocess.Popen(
            [self.python, PROGRAM, work, self.bootstrap_servers, topic, config["file"]],
            start_new_session=True,
        )
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(END_S)


def main() -> None:
    parser = arguments(__doc__)
    options = parser.parse_args()
    python = os.environ.get("PYCONNECT_QUIXSTREAMS_PYTHON")
    if python is None:
        sys.exit("error: run it with scripts/benchmark, which makes its environment")
    with bench_of(options) as (bench, servers):
        print_head(options, "Quix Streams")
        agent = servers.agent(
            bench.bootstrap_servers,
            unique_name("ours"),
            properties={**WORKER, "exactly.once.source.support": "disabled"},
        )
        peer = QuixStreams(Path(python), bench.bootstrap_servers)
        for case in CASES:
            measure(bench, {"peer": peer, "ours": Worker(agent.url)}, case, options.runs)
