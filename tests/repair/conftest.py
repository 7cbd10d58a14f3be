"""The databases of the connectors' tests."""

from tests.connectors.conftest import mariadb, postgres

__all__ = ["mariadb", "postgres"]
