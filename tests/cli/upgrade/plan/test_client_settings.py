"""Client settings that exactly-once ignores, and those that prevent it."""

from pyconnect_cli.upgrade.plan import model
from tests.support.cases import cases

PRODUCER = "producer.override."


@cases(
    "worker, connector, expected",
    ({}, {}, ()),
    ({"producer.enable.idempotence": "false"}, {}, ("producer.enable.idempotence=false",)),
    ({"producer.enable.idempotence": "false"}, {f"{PRODUCER}enable.idempotence": "TRUE"}, ()),
    ({}, {f"{PRODUCER}transactional.id": "x"}, (f"{PRODUCER}transactional.id=x",)),
    (
        {"consumer.isolation.level": "read_uncommitted"},
        {},
        ("consumer.isolation.level=read_uncommitted",),
    ),
    ({"enable.idempotence": "false", "isolation.level": "read_uncommitted"}, {}, ()),
)
def test_settings_that_exactly_once_ignores_are_listed(
    worker: dict[str, str | None], connector: dict[str, str | None], expected: tuple[str, ...]
) -> None:
    """A connector's override wins; worker settings without `producer.` do not reach connectors."""
    assert model.replaced_settings(worker, connector) == expected


@cases(
    "key, good, bad",
    ("acks", "-1", "1"),
    ("acks", "all", "0"),
    ("retries", "5", "0"),
    ("max.in.flight.requests.per.connection", "5", "6"),
)
def test_settings_that_break_transactions_are_listed(key: str, good: str, bad: str) -> None:
    """Settings that break transactions are found in worker's and connector's producer settings."""
    assert model.breaking_settings({f"producer.{key}": good}, {}) == ()
    assert model.breaking_settings({f"producer.{key}": bad}, {}) == (f"producer.{key}={bad}",)
    overridden = model.breaking_settings({f"producer.{key}": good}, {f"{PRODUCER}{key}": bad})
    assert overridden == (f"{PRODUCER}{key}={bad}",)


def test_the_leaders_producer_has_the_workers_own_settings() -> None:
    """The leader's producer has the worker's own settings, but always acks=all."""
    worker = {"enable.idempotence": "false", "isolation.level": "read_uncommitted", "acks": "1"}
    assert model.replaced_of_leader(worker, enabled=False) == ("enable.idempotence=false",)
    expected = ("enable.idempotence=false", "isolation.level=read_uncommitted")
    assert model.replaced_of_leader(worker, enabled=True) == expected
    assert model.breaking_of_leader(worker) == ()
    assert model.breaking_of_leader({"retries": "0"}) == ("retries=0",)


def test_clusters_and_timeouts_are_the_connectors_or_the_workers() -> None:
    """The order of addresses does not matter, and a connector's override wins over the worker."""
    worker = {"bootstrap.servers": "a:1,b:1"}
    same = {f"{PRODUCER}bootstrap.servers": "b:1, a:1"}
    other = {f"{PRODUCER}bootstrap.servers": "c:1"}
    assert model.client_clusters(worker, same) == {frozenset({"a:1", "b:1"})}
    assert len(model.client_clusters(worker, other)) == 2
    assert model.client_clusters({}, other) == {frozenset({"c:1"})}
    worker = {"producer.transaction.timeout.ms": "1000"}
    connector = {f"{PRODUCER}transaction.timeout.ms": "2000"}
    assert model.transaction_timeout_ms({}, {}) is None
    assert model.transaction_timeout_ms(worker, {}) == 1000
    assert model.transaction_timeout_ms(worker, connector) == 2000


@cases(
    "worker, connector, expected",
    (None, None, 60_000),
    ("5000", None, 5_000),
    ("5000", "300", 300),
    ("5000", "${file:/settings:interval}", None),
)
def test_how_long_transactions_of_an_interval_last(
    worker: str | None, connector: str | None, expected: int | None
) -> None:
    """The connector's interval wins over the worker's; a reference makes it unknown."""
    found = model.boundary_interval_ms(
        {"offset.flush.interval.ms": worker}, {"transaction.boundary.interval.ms": connector}
    )
    assert found == expected
