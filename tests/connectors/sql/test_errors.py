"""Errors of databases: what passes, and that no value of a row is shown."""

from __future__ import annotations

import psycopg
import pymysql
from sqlalchemy.exc import DBAPIError, IntegrityError, InternalError, OperationalError

from pyconnect_connectors.sql.database import may_pass, reason
from tests.support.cases import cases


@cases(
    "original, expected",
    (
        psycopg.DataError('invalid input syntax for type integer: "secret"\nLINE 1: secret'),
        "invalid input syntax for type integer: (hidden)",
    ),
    (
        psycopg.DataError('value "secret" is out of range for type integer'),
        "value (hidden) is out of range for type integer",
    ),
    (
        psycopg.errors.UniqueViolation(
            'duplicate key value violates unique constraint "k"\nDETAIL: secret'
        ),
        'duplicate key value violates unique constraint "k"',
    ),
    (
        pymysql.IntegrityError(1062, "Duplicate entry 'secret' for key 'PRIMARY'"),
        "Duplicate entry (hidden) for key 'PRIMARY'",
    ),
    (
        pymysql.DataError(
            1366, "Incorrect integer value: 'a secret\n' for column `a`.`b` at row 1"
        ),
        "Incorrect integer value: (hidden) for column `a`.`b` at row 1",
    ),
    (
        pymysql.OperationalError(1292, "Truncated incorrect DOUBLE value: 'secret'"),
        "Truncated incorrect DOUBLE value: (hidden)",
    ),
)
def test_values_of_rows_are_cut_out_of_messages(original: Exception, expected: str) -> None:
    """Names of tables, columns and constraints stay."""
    assert reason(DBAPIError(None, None, original)) == expected


@cases(
    "original, passes",
    (pymysql.OperationalError(1213, "Deadlock found"), True),
    (pymysql.OperationalError(2013, "Lost connection"), True),
    (pymysql.OperationalError(4025, "CONSTRAINT `few` failed"), False),
    (pymysql.OperationalError(1045, "Access denied"), False),
)
def test_errors_of_mariadb_are_distinguished_by_their_numbers(
    original: Exception, passes: bool
) -> None:
    """PyMySQL raises one class for all of them."""
    assert may_pass(OperationalError(None, None, original)) is passes


def test_a_broken_constraint_stays() -> None:
    """The same rows would break it again."""
    original = psycopg.errors.UniqueViolation("duplicate key")
    assert not may_pass(IntegrityError(None, None, original))


@cases(
    "original, passes",
    (psycopg.errors.IdleInTransactionSessionTimeout("terminating connection"), True),
    (psycopg.errors.ReadOnlySqlTransaction("cannot execute COPY FROM"), True),
    (psycopg.errors.InFailedSqlTransaction("current transaction is aborted"), False),
)
def test_errors_of_postgresql_that_pass_are_known_by_their_codes(
    original: Exception, passes: bool
) -> None:
    """The driver raises InternalError for all of them."""
    assert may_pass(InternalError(None, None, original)) is passes
