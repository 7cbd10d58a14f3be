"""Database servers for tests to read from and write to, one of each per test process."""

from collections.abc import Iterator

import pytest

from tests.support.servers.mariadb import MariaDbServer, running_mariadb
from tests.support.servers.postgres import PostgresServer, running_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The PostgreSQL server of this test process."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDbServer]:
    """The MariaDB server of this test process."""
    with running_mariadb() as server:
        yield server
