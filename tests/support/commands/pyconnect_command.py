"""Run `pyconnect` in this process, with its own home directory."""

import contextlib
import io
from pathlib import Path
from typing import NamedTuple

from pyconnect_cli.app import run


class Ended(NamedTuple):
    """Output and exit code of a command."""

    code: int
    out: str
    err: str


class Pyconnect:
    """Commands against one worker and one Kafka cluster."""

    def __init__(self, directory: Path, url: str, bootstrap_servers: str | None = None) -> None:
        self.environ = {
            "XDG_CONFIG_HOME": str(directory / "config"),
            "XDG_STATE_HOME": str(directory / "state"),
            "XDG_CONFIG_DIRS": str(directory / "system"),
            "PATH": "/usr/bin:/bin",
            "PYCONNECT_URL": url,
        }
        if bootstrap_servers is not None:
            self.environ["PYCONNECT_KAFKA_BOOTSTRAP"] = bootstrap_servers

    def __call__(self, *arguments: str) -> Ended:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(list(arguments), self.environ)
        return Ended(int(code), out.getvalue(), err.getvalue())


class Command:
    """Runs of `pyconnect` for the exit code; `out` and `err` have the last output."""

    def __init__(self, directory: Path, url: str, bootstrap_servers: str | None = None) -> None:
        self.url = url
        self._pyconnect = Pyconnect(directory, url, bootstrap_servers)
        self.out = self.err = ""

    def __call__(self, *arguments: str) -> int:
        code, self.out, self.err = self._pyconnect(*arguments, "--timeout", "60s")
        return code
