"""Selections: names, and filters that must all hold."""

import pytest

from pyconnect_cli.acting.selection import select, selection_from
from pyconnect_cli.errors import NotFound, UsageError
from pyconnect_cli.rest.model import ConnectorView
from tests.cli.overview.worlds import view
from tests.support.cases import cases

CLASS = "org.example.OrdersSourceConnector"
VIEWS = {
    found.name: found
    for found in (
        view("orders", "RUNNING", config={"team": "a", "connector.class": CLASS}),
        view("orders-old", "PAUSED", state="PAUSED", config={"team": "a"}),
        view("sink", "RUNNING", "FAILED", kind="sink", worker="two:8083", config={"team": "b"}),
        ConnectorView(name="new"),
    )
}


def chosen(*names: str, **given: object) -> list[str]:
    return [found.name for found in select(VIEWS, selection_from(given, names))]


@cases(
    "given, expected",
    ({}, []),
    ({"all": True}, ["new", "orders", "orders-old", "sink"]),
    ({"regex": ("orders",)}, ["orders"]),
    ({"regex": ("orders.*", "sink")}, ["orders", "orders-old", "sink"]),
    ({"selector": ("team=a",)}, ["orders", "orders-old"]),
    ({"selector": ("team!=a",)}, ["new", "sink"]),
    ({"selector": ("team",)}, ["orders", "orders-old", "sink"]),
    ({"selector": ("team=a", "connector.class")}, ["orders"]),
    ({"selector": ("team=a,connector.class",)}, ["orders"]),
    ({"state": ("paused",)}, ["orders-old"]),
    ({"type": "SINK"}, ["sink"]),
    ({"class": ("OrdersSource",)}, ["orders"]),
    ({"class": ("OrdersSourceConnector",)}, ["orders"]),
    ({"class": (CLASS,)}, ["orders"]),
    ({"class": ("Orders",)}, []),
    ({"worker": ("two:8083",)}, ["sink"]),
    ({"failed": True}, ["sink"]),
    ({"failed": True, "selector": ("team=a",)}, []),
)
def test_filters_all_have_to_hold(given: dict[str, object], expected: list[str]) -> None:
    """Each filter narrows the selection; several patterns or states of one filter widen it."""
    assert chosen(**given) == expected


def test_names_are_known_and_narrowed_by_filters() -> None:
    """Filters apply to the given names too; one unknown name fails the whole selection."""
    assert chosen("sink", "orders") == ["sink", "orders"]
    assert chosen("sink", "orders", type="source") == ["orders"]
    assert chosen("sink", "sink") == ["sink"]
    with pytest.raises(NotFound) as caught:
        chosen("orders", "snik")
    assert caught.value.hint == "did you mean `sink`?"


@cases("given", {"regex": ("(",)}, {"selector": ("=a",)}, {"selector": ("",)})
def test_unreadable_conditions_are_usage_errors(given: dict[str, object]) -> None:
    """A wrong condition exits with 2 before the cluster is asked."""
    with pytest.raises(UsageError):
        selection_from(given, ())
