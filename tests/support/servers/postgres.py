"""A real PostgreSQL for tests, with its own data directory.

The server refuses to run as root: then it runs as the user that its package creates.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
from sqlalchemy import URL

from pyconnect_sandbox.server import Server, free_port
from tests.support.names import unique_name

PASSWORD = "open sesame"
USER = "connect"
_VERSIONS = Path("/usr/lib/postgresql")
_PACKAGE = (
    "install PostgreSQL (Debian/Ubuntu: apt-get install postgresql; macOS: brew install postgresql)"
)


class PostgresServer(Server):
    """A server that ends with its holder; `directory` is given to the user that runs it."""

    name = "postgres"

    def __init__(self, *, directory: Path, hold_file: Path) -> None:
        super().__init__(
            directory=directory, start_timeout_s=150, stop_timeout_s=5.0, hold_file=hold_file
        )
        self._programs = _programs()
        self.port = free_port()

    def url(self, database: str = "postgres") -> str:
        return str(
            URL.create("postgresql+psycopg", host="127.0.0.1", port=self.port, database=database)
        )

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """Connect without the code under test, to look at its results."""
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user=USER,
            password=PASSWORD,
            dbname=database,
            autocommit=True,
        )

    def new_database(self, options: str = "") -> str:
        name = unique_name("db").replace("-", "_")
        with self.connect() as connection:
            connection.execute(f'CREATE DATABASE "{name}" {options}'.encode())
        return name

    def settings(self, database: str) -> dict[str, str]:
        return {
            "connection.url": self.url(database),
            "connection.user": USER,
            "connection.password": PASSWORD,
        }

    def _prepare(self) -> Sequence[str]:
        data, password = self.directory / "data", self.directory / "password"
        password.write_text(PASSWORD)
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            for path in (self.directory, password):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        subprocess.run(
            [
                *self._as_owner(),
                str(self._programs / "initdb"),
                f"--pgdata={data}",
                f"--username={USER}",
                f"--pwfile={password}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
            ],
            check=True,
            capture_output=True,
            cwd=self.directory,
        )
        options = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
            "max_connections": "60",
            "shared_buffers": "32MB",
            "wal_level": "logical",
        }
        return [
            *self._as_owner(),
            str(self._programs / "postgres"),
            f"-D{data}",
            f"-p{self.port}",
            *(f"-c{name}={value}" for name, value in options.items()),
        ]

    def _answers(self, timeout_s: float) -> bool:
        try:
            with self.connect() as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        except psycopg.OperationalError:
            return False

    def _as_owner(self) -> Sequence[str]:
        if os.geteuid() != 0:
            return ()
        return ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups")


def _programs() -> Path:
    """Return the directory of the newest version's programs; RuntimeError without any."""
    found = sorted(_VERSIONS.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    if (server := shutil.which("postgres")) is not None:
        return Path(server).resolve().parent
    raise RuntimeError(f"PostgreSQL was not found; {_PACKAGE}")


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Yield a server; remove all its files afterwards."""
    # The server's user may not enter pytest's directory.
    directory = Path(tempfile.mkdtemp(prefix="pyconnect-postgres-"))
    hold_directory = Path(tempfile.mkdtemp(prefix="pyconnect-postgres-hold-"))
    try:
        server = PostgresServer(directory=directory, hold_file=hold_directory / "hold").start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        shutil.rmtree(hold_directory, ignore_errors=True)
