"""The statements that SqlSink sends, for names with signs of parameters and quotes."""

from __future__ import annotations

from sqlalchemy import Column, Integer, MetaData, Table
from sqlalchemy.dialects.mysql import pymysql

from pyconnect_connectors.sql.rows import Shape
from pyconnect_connectors.sql.settings import InsertMode


def test_an_upsert_of_mariadb_escapes_each_name_once() -> None:
    """Percent signs are doubled for the driver, which halves them; backticks are doubled."""
    names = ("id%", "a%s`")
    table = Table("t%", MetaData(), *(Column(name, Integer) for name in names))
    shape = Shape(columns=dict.fromkeys(names), keys=names[:1], deletes=False, take=lambda _: ())
    statement = shape.statement(table, InsertMode.UPSERT, "mysql")
    compiled = str(statement.compile(dialect=pymysql.dialect()))  # type: ignore[no-untyped-call]
    assert compiled % (1, 2) == (
        "INSERT INTO `t%` (`id%`, `a%s```) VALUES (1, 2) "
        "ON DUPLICATE KEY UPDATE `a%s``` = VALUES(`a%s```)"
    )
