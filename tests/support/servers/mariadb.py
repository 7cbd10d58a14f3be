"""A real MariaDB for tests, with its own data directory.

The server refuses to run as root: then it runs as the user that its package creates.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pymysql
from sqlalchemy import URL

from pyconnect_sandbox.server import Server, free_port
from tests.support.names import unique_name

PASSWORD = "open sesame"
USER = "connect"
_PACKAGE = (
    "install MariaDB (Debian/Ubuntu: apt-get install mariadb-server; macOS: brew install mariadb)"
)
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])


class MariaDbServer(Server):
    """A server that ends with its holder; `directory` is given to the user that runs it."""

    name = "mariadb"

    def __init__(self, *, directory: Path, hold_file: Path, options: Mapping[str, str]) -> None:
        super().__init__(
            directory=directory, start_timeout_s=150, stop_timeout_s=5.0, hold_file=hold_file
        )
        self._options = options
        self._server, self._install = _program("mariadbd"), _program("mariadb-install-db")
        self.port = free_port()

    def url(self, database: str) -> str:
        address = {"host": "127.0.0.1", "port": self.port, "database": database}
        return str(URL.create("mariadb+pymysql", **address))  # type: ignore[arg-type]

    def connect(self, database: str | None = None) -> pymysql.Connection[Any]:
        """Connect without the code under test, to look at its results."""
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user=USER,
            password=PASSWORD,
            database=database,
            autocommit=True,
            init_command="SET time_zone = '+00:00'",
        )

    def execute(
        self, database: str | None, statement: str, values: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        """Run one statement in a connection of its own and return its rows."""
        with closing(self.connect(database)) as connection, connection.cursor() as cursor:
            cursor.execute(statement, tuple(values))
            return list(cursor.fetchall())

    def new_database(self) -> str:
        name = unique_name("db").replace("-", "_")
        self.execute(None, f"CREATE DATABASE `{name}`")
        return name

    def settings(self, database: str) -> dict[str, str]:
        return {
            "connection.url": self.url(database),
            "connection.user": USER,
            "connection.password": PASSWORD,
        }

    def _prepare(self) -> Sequence[str]:
        data, users = self.directory / "data", self.directory / "users.sql"
        users.write_text(
            f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';\n"
            f"GRANT ALL ON *.* TO '{USER}'@'%';\n"
        )
        if os.geteuid() == 0:
            owner = pwd.getpwnam("mysql")
            for path in (self.directory, users):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        installed = subprocess.run(
            [
                *self._as_owner(),
                self._install,
                "--no-defaults",
                f"--datadir={data}",
                # A starting server removes the temporary tables of all servers with the same
                # directory.
                f"--tmpdir={self.directory}",
                "--skip-test-db",
                "--auth-root-authentication-method=normal",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd=self.directory,
        )
        assert installed.returncode == 0, installed.stdout
        options = {
            "datadir": data,
            "tmpdir": self.directory,
            "port": self.port,
            "bind-address": "127.0.0.1",
            "socket": self.directory / "socket",
            "pid-file": self.directory / "pid",
            "init-file": users,
            "innodb-buffer-pool-size": "32M",
            "innodb-flush-log-at-trx-commit": 0,
            "innodb-log-file-size": "16M",
            "performance-schema": "OFF",
            **self._options,
        }
        return [
            *self._as_owner(),
            self._server,
            "--no-defaults",
            *(f"--{name}={value}" for name, value in options.items()),
        ]

    def _environment(self) -> Mapping[str, str]:
        return {**os.environ, "PATH": _PATH}

    def _answers(self, timeout_s: float) -> bool:
        try:
            return self.execute(None, "SELECT 1") == [(1,)]
        except pymysql.err.OperationalError:
            return False

    def _as_owner(self) -> Sequence[str]:
        if os.geteuid() != 0:
            return ()
        return ("setpriv", "--reuid=mysql", "--regid=mysql", "--clear-groups")


def _program(name: str) -> str:
    found = shutil.which(name, path=_PATH)
    if found is None:
        raise RuntimeError(f"MariaDB was not found: {name} is missing; {_PACKAGE}")
    return found


@contextmanager
def running_mariadb(options: Mapping[str, str] | None = None) -> Iterator[MariaDbServer]:
    """Yield a server with further options; remove all its files afterwards."""
    # The server's user may not enter pytest's directory.
    directory = Path(tempfile.mkdtemp(prefix="pyconnect-mariadb-"))
    hold_directory = Path(tempfile.mkdtemp(prefix="pyconnect-mariadb-hold-"))
    try:
        hold_file = hold_directory / "hold"
        server = MariaDbServer(directory=directory, hold_file=hold_file, options=options or {})
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        shutil.rmtree(hold_directory, ignore_errors=True)
