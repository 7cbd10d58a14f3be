"""`connectors diff --to-context` and `promote`, between two workers."""

import json
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Run
from tests.cli.offsets_world import changes
from tests.support.fakes.connect_server import FakeConnect, FakeConnector, serve

pytestmark = pytest.mark.wire


@pytest.fixture
def prod(run: Run) -> Iterator[FakeConnect]:
    """Yield an empty cluster behind the context `prod`."""
    cluster = FakeConnect(cluster_id="other")
    with serve(cluster) as address:
        assert run("context", "set", "prod", "--url", address).code == 0
        yield cluster


def test_diff_shows_the_changes_of_promote(run: Run, prod: FakeConnect) -> None:
    """Differences from another cluster are exit 1, with masked secrets and without any change."""
    prod.connectors["orders"] = FakeConnector(
        config={"name": "orders", "connector.class": "org.example.FileSource", "team": "z"}
    )
    prod.connectors["other"] = FakeConnector(config={"name": "other"})
    outcome = run("connectors", "diff", "--to-context", "prod", code=1)
    assert "~ update orders" in outcome.out
    assert "  - team=z\n  + team=a" in outcome.out
    assert "+ create broken" in outcome.out
    assert "other: only in prod" in outcome.err
    assert "hunter2" not in outcome.out + outcome.err
    assert changes(prod) == []


def test_equal_clusters_do_not_differ(run: Run, connect: FakeConnect, prod: FakeConnect) -> None:
    """A secret whose values differ on the two clusters is not a difference."""
    for name, connector in connect.connectors.items():
        prod.connectors[name] = FakeConnector(config={**connector.config})
    prod.connectors["orders"].config["db.password"] = "of prod"
    outcome = run("connectors", "diff", "--to-context", "prod")
    assert (outcome.code, outcome.err) == (0, "total: 2 unchanged\n")


def test_a_promotion_asks_plans_and_copies_no_secret(run: Run, prod: FakeConnect) -> None:
    """A secret in plain text is exit 2, no --yes is exit 9, and --dry-run changes nothing."""
    outcome = run("connectors", "promote", "orders", "--to-context", "prod", "--yes", code=2)
    assert "orders: db.password" in outcome.err
    assert "hunter2" not in outcome.err
    assert changes(prod) == []
    asked = run("connectors", "promote", "broken", "--to-context", "prod", code=9)
    assert "pyconnect connectors promote broken --to-context prod --yes" in asked.err
    planned = run(
        "connectors", "promote", "broken", "--to-context", "prod", "--dry-run", "-o", "json", code=0
    )
    assert json.loads(planned.out)[0]["change"] == "create"
    assert changes(prod) == []


def test_promote_creates_and_changes(run: Run, connect: FakeConnect, prod: FakeConnect) -> None:
    """A promotion changes only the other cluster; --initial-state applies to new connectors."""
    prod.connectors["broken"] = FakeConnector(config={"name": "broken", "team": "z"})
    reference = "db.password=${file:/run/prod:db}"
    outcome = run(
        *("connectors", "promote", "--all", "--to-context", "prod", "--yes"),
        *("--set", reference, "--initial-state", "stopped"),
    )
    assert outcome.code == 0, outcome.err
    assert "orders: created" in outcome.out
    assert "broken: updated" in outcome.out
    assert prod.connectors["orders"].config["db.password"] == "${file:/run/prod:db}"
    assert prod.connectors["orders"].state == "STOPPED"
    assert prod.connectors["broken"].config["team"] == "b"
    assert changes(connect) == []


def test_a_promotion_needs_one_other_cluster(run: Run, url: str, prod: FakeConnect) -> None:
    """The same cluster, or files beside another cluster, is exit 2."""
    assert run("context", "set", "same", "--url", url).code == 0
    outcome = run("connectors", "promote", "broken", "--to-context", "same", "--yes", code=2)
    assert "is the source cluster itself" in outcome.err
    assert run("connectors", "diff", "-f", "x.json", "--to-context", "prod").code == 2
    assert run("connectors", "diff", "orders", "-f", "x.json").code == 2
    assert changes(prod) == []
