"""The owner of a transactional id, and the transactions that no client will end."""

from pyconnect_cli.kafka.model import OpenProducer, TopicPartition, Transaction
from pyconnect_cli.transactions.plan import LEADER, Owner, hanging, owner_of
from tests.support.cases import cases

AT = TopicPartition("t", 0)
NOW_MS = 1_000_000


def transaction(**changes: object) -> Transaction:
    values = {
        "state": "Ongoing",
        "producer_id": 7,
        "epoch": 0,
        "timeout_ms": 60_000,
        "started_ms": NOW_MS - 5_000,
        "partitions": (AT,),
        **changes,
    }
    return Transaction(transactional_id="g-c-0", **values)  # type: ignore[arg-type]


def producer(idle_ms: int = 900_000, producer_id: int = 7) -> OpenProducer:
    return OpenProducer(
        partition=AT,
        producer_id=producer_id,
        epoch=0,
        coordinator_epoch=1,
        last_ms=NOW_MS - idle_ms,
        first_offset=4,
    )


@cases(
    "transactional_id, owner",
    ("connect-cluster-g", Owner(LEADER)),
    ("g-c-0", Owner("c", 0)),
    ("g-c-12", Owner("c", 12)),
    ("g-c", Owner("c")),
    ("g-c-x-1", Owner("c-x", 1)),
    ("g-c-x", Owner("c-x")),
    ("g-d-0", None),
    ("g-c-0x", None),
    ("other", None),
)
def test_ids_lead_to_their_owners(transactional_id: str, owner: Owner | None) -> None:
    """The owner of an id is the connector with the longest name that fits."""
    assert owner_of(transactional_id, "g", ["c", "c-x"], "connect-cluster-g") == owner


def test_the_leaders_id_may_be_an_own_one() -> None:
    """If the leader has an own id, Kafka's default id has no owner."""
    assert owner_of("own", "g", ["c"], "own") == Owner(LEADER)
    assert owner_of("connect-cluster-g", "g", ["c"], "own") is None


def test_a_transaction_is_overdue_when_its_coordinator_should_have_aborted_it() -> None:
    """A transaction is overdue after its timeout and the coordinator's next scan."""
    assert not transaction().overdue(NOW_MS)
    assert not transaction(started_ms=NOW_MS - 65_000).overdue(NOW_MS)
    assert transaction(started_ms=NOW_MS - 75_000).overdue(NOW_MS)
    assert not transaction(started_ms=NOW_MS - 75_000, state="CompleteAbort").overdue(NOW_MS)


@cases(
    "known, idle_ms, hangs",
    ([], 900_000, True),
    ([], 10_000, False),
    ([transaction()], 900_000, False),
    ([transaction(partitions=())], 900_000, True),
    ([transaction(producer_id=8)], 900_000, True),
)
def test_a_transaction_hangs_when_no_coordinator_will_write_its_marker(
    known: list[Transaction], idle_ms: int, hangs: bool
) -> None:
    """A transaction hangs if it is idle and no coordinator knows it in this partition."""
    found = hanging([producer(idle_ms)], known, now_ms=NOW_MS, min_idle_ms=900_000)
    assert bool(found) is hangs
