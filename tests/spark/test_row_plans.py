"""Plans of rows, which need the package of Spark but no session."""

from __future__ import annotations

from typing import NoReturn, cast

import pytest
from pyspark.sql import DataFrame

from pyconnect_reconcile.data_sides import RowRule
from pyconnect_reconcile.spec import ColumnRule
from pyconnect_reconcile.values.kinds import Compared
from pyconnect_reconcile.values.normal import Columns
from pyconnect_reconcile.values.rows import row_plan

pytestmark = pytest.mark.spark

PLACE = ("topic", "partition", "offset")
COLUMNS = (*((name, "string") for name in PLACE), ("line", "string"))


class Unread:
    """Records of a topic whose reading would cost a pass over it."""

    def where(self, _condition: str) -> NoReturn:
        raise AssertionError("the topic was read")


@pytest.mark.parametrize("of", ["value", "kafka"])
def test_a_topic_of_texts_is_not_read_for_a_plan(of: str) -> None:
    """A text has no fields, and no column comes from the key."""
    table = Columns(
        all=tuple(
            Compared(rule=ColumnRule(name=name, path=name), kind=kind) for name, kind in COLUMNS
        ),
        closed=True,
    )
    rule = RowRule(of=of, keys=PLACE if of == "kafka" else (), whole="line")
    plan = row_plan(cast("DataFrame", Unread()), rule, table, writes=True)
    compared = {column.name: (column.of, column.kind) for column in plan.columns}
    assert compared["line"] == ("value", "text")
    assert plan.left_out == (() if of == "kafka" else PLACE)
