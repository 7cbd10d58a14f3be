"""The owner of a transaction, and the transactions that will never end. Pure.

A transaction hangs if a partition has it open and no coordinator knows it as a transaction of that
partition: no coordinator will write the marker that ends it, and readers of committed records wait
there for ever (KIP-664).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyconnect_cli.kafka.model import OpenProducer, Transaction
from pyconnect_clients.connect_names import alter_transactional_id

LEADER = "the leader"


class Owner(NamedTuple):
    """A connector or the leader; `task` None: the leader, or the id for changing offsets."""

    name: str
    task: int | None = None

    def __str__(self) -> str:
        return self.name if self.task is None else f"{self.name}/{self.task}"


def owner_of(
    transactional_id: str, group_id: str, connectors: Iterable[str], leader: str
) -> Owner | None:
    """Return the owner of an id in a Connect cluster; the connector with the longest name wins.

    `leader` is the leader's id.
    """
    if transactional_id == leader:
        return Owner(LEADER)
    found: list[Owner] = []
    for connector in connectors:
        stem = alter_transactional_id(group_id, connector)
        if transactional_id == stem:
            found.append(Owner(connector))
        elif transactional_id.startswith(f"{stem}-"):
            number = transactional_id.removeprefix(f"{stem}-")
            if number.isascii() and number.isdecimal():
                found.append(Owner(connector, int(number)))
    return max(found, key=lambda owner: len(owner.name), default=None)


def hanging(
    producers: Iterable[OpenProducer],
    transactions: Sequence[Transaction],
    *,
    now_ms: int,
    min_idle_ms: int,
) -> list[OpenProducer]:
    """Return the hanging transactions of `producers` that have been idle for `min_idle_ms`.

    `transactions` must hold all those of the producers' ids that coordinators know.
    """
    expected = {
        (transaction.producer_id, partition)
        for transaction in transactions
        for partition in transaction.partitions
    }
    return [
        producer
        for producer in producers
        if now_ms - producer.last_ms >= min_idle_ms
        and (producer.producer_id, producer.partition) not in expected
    ]
