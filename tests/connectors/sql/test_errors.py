"""Errors of databases: which of them may pass, and that none shows a value of a row."""

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
    """Messages keep the names of tables, columns and constraints."""
    assert reason(DBAPIError(None, None, original)) == expected


@cases(
    "raised, original, passes",
    # PyMySQL and psycopg raise one class for errors that pass and errors that stay.
    (OperationalError, pymysql.OperationalError(1213, "Deadlock found"), True),
    (OperationalError, pymysql.OperationalError(2013, "Lost connection"), True),
    (OperationalError, pymysql.OperationalError(4025, "CONSTRAINT `few` failed"), False),
    (OperationalError, pymysql.OperationalError(1045, "Access denied"), False),
    (IntegrityError, psycopg.errors.UniqueViolation("duplicate key"), False),
    (InternalError, psycopg.errors.IdleInTransactionSessionTimeout("terminating"), True),
    (InternalError, psycopg.errors.ReadOnlySqlTransaction("cannot execute COPY FROM"), True),
    (InternalError, psycopg.errors.InFailedSqlTransaction("transaction is aborted"), False),
)
def test_errors_that_pass_are_known_by_their_codes(
    raised: type[DBAPIError], original: Exception, passes: bool
) -> None:
    """The code tells lasting errors, such as a broken constraint, from errors that may pass."""
    assert may_pass(raised(None, None, original)) is passes
