"""The databases of the connectors' tests."""

from __future__ import annotations

from tests.connectors.conftest import mariadb, postgres

__all__ = ["mariadb", "postgres"]
