"""A file of SQLite to read from and to write to."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The path of a SQLite database file."""
    return tmp_path / "shop.db"


@pytest.fixture
def database(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the SQLite file, for preparing tables and looking at results."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection
