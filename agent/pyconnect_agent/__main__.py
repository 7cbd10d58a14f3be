"""`pyconnect-agent worker.properties`: run a worker in the foreground.

Composition root. Kafka: `connect-distributed.sh` and `connect-standalone.sh`. Heavy imports wait
until the arguments are known to be right.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pyconnect_clients.installation import install_command, version

if TYPE_CHECKING:
    from pyconnect_agent.children.launch import Launcher

EXIT_USAGE = 1
EXIT_START = 3  # `worker.lifecycle` cannot be imported without these
LIBRARIES = ("h11", "msgspec", "prometheus_client", "regex", "starlette", "uvicorn")
"""Libraries of the extra `agent`, which an installation that only operates workers lacks."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = _parser().parse_args(arguments)
    if missing := [library for library in LIBRARIES if find_spec(library) is None]:
        _tell(f"error: libraries of the agent are not installed: {', '.join(missing)}")
        _tell(f"hint: install the extra [agent]: {install_command('agent')}")
        return EXIT_START
    launcher = _fork_server()
    from pyconnect_agent.process.worker_process import run_again
    from pyconnect_agent.worker.command import run
    from pyconnect_agent.worker.lifecycle import EXIT_DIED, RUN_AGAIN

    code = run(options, launcher)
    launcher.close()
    if code == RUN_AGAIN:
        run_again()
        code = EXIT_DIED
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    if arguments is None:
        # The worker has stopped in order; a thread of a client library must not delay the exit.
        os._exit(code)
    return code


def _tell(line: str) -> None:
    """Print a line on stderr: there is no log yet."""
    sys.stderr.write(f"{line}\n")


def _fork_server() -> Launcher:
    """Fork the process that forks all children, before the worker's own libraries are loaded.

    Plugins would otherwise get the worker's libraries instead of their own.
    """
    from pyconnect_agent.children.launch import Launcher

    launcher = Launcher()
    launcher.fork()
    return launcher


class _Parser(argparse.ArgumentParser):
    """Exits with Apache's code for wrong usage, 1, instead of argparse's 2."""

    def exit(self, status: int = 0, message: str | None = None) -> None:  # type: ignore[override]  # NoReturn
        super().exit(EXIT_USAGE if status else 0, message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="pyconnect-agent",
        allow_abbrev=False,
        description="Run a Kafka Connect worker in the foreground.",
        epilog="Exit codes: 0 stopped by a signal; 1 wrong usage, or a part of the worker died; "
        "2 wrong worker configuration or topics; 3 the worker could not start, or a connector "
        "file could not be applied. SIGTERM drains, a second one kills the children.",
    )
    parser.add_argument("worker_file", metavar="worker.properties", help="the worker's properties")
    parser.add_argument(
        "connector_files",
        metavar="connector.properties",
        nargs="*",
        default=[],  # without it argparse calls them required
        help="connectors of a standalone worker: Java properties or JSON",
    )
    parser.add_argument(
        "--standalone",
        action="store_true",
        help="keep connectors in memory and offsets in a file, without a group",
    )
    parser.add_argument(
        "--log-level",
        metavar="[LOGGER=]LEVEL",
        action="append",
        default=[],
        help="level of the root logger, or of a named one; repeatable (INFO)",
    )
    parser.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="lines for people or JSON"
    )
    parser.add_argument("--version", action="version", version=f"pyconnect-agent {version()}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
