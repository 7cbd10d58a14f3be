"""Find the transactions and topics that belong to a Connect cluster."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyconnect_cli.acting.workers import ask_all
from pyconnect_cli.errors import NotFound, PreconditionFailed, PyconnectError, UsageError
from pyconnect_cli.kafka.admin import kafka_protocol
from pyconnect_cli.kafka.model import OpenProducer, Transaction, sink_topics
from pyconnect_cli.kafka.transactions import (
    describe_transactions,
    existing_partitions,
    list_transactional_ids,
    open_producers,
)
from pyconnect_cli.rest.agent_client import AgentClient
from pyconnect_cli.session import Session
from pyconnect_cli.transactions.plan import LEADER, hanging, owner_of
from pyconnect_clients.connect_names import leader_transactional_id

if TYPE_CHECKING:
    from pyconnect_clients.brokers.protocol import KafkaProtocol

MIN_IDLE = "15m"
"""The brokers' default of transaction.max.timeout.ms: no living transaction is older."""
AT_ONCE = 8
_INTERNAL = ("config.storage.topic", "offset.storage.topic")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCluster:
    """`chosen`: the connectors to look at; empty: all, and the leader. `topics`: the workers'.

    `leader_id`: the leader's transactional id.
    """

    group_id: str
    leader_id: str
    connectors: tuple[str, ...]
    chosen: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, tuple[str, ...], str]:
        """Group, connectors and the leader's id: arguments of `owner_of`."""
        return self.group_id, self.connectors, self.leader_id

    def owns(self, transactional_id: str) -> bool:
        """Return whether an id belongs to a chosen connector; without a choice, to any owner."""
        owner = owner_of(transactional_id, *self.names)
        return owner is not None and (not self.chosen or owner.name in self.chosen)


def asked_cluster(
    session: Session, group_id: str | None, chosen: Iterable[str] = ()
) -> AskedCluster:
    """Ask a worker for group and connectors; UsageError when a Java worker hides the group."""
    names = tuple(session.client.connector_names())
    wanted = tuple(chosen)
    if unknown := sorted(set(wanted) - set(names)):
        raise NotFound(
            f"no connector {', '.join(unknown)}", hint="see them: pyconnect connectors list"
        )
    told: dict[str, str | None] = {}
    try:
        told = AgentClient(session.client.exchange).config()
    except PreconditionFailed as exc:
        if (group_id or session.settings.group) is None:
            worker = session.client.exchange.urls[0]
            reason = (
                f"the admin interface of {worker}, which reports the group, has another address"
                if session.client.worker_info().agent
                else "Java workers do not report their group"
            )
            raise UsageError(
                reason,
                hint="give it: --group NAME, or keep it in the context:"
                " pyconnect context set NAME --group GROUP",
            ) from exc
    group = group_id or told.get("group.id") or session.settings.group or ""
    return AskedCluster(
        group_id=group,
        leader_id=leader_transactional_id(group, told),
        connectors=names,
        chosen=wanted,
        topics=tuple(topic for key in _INTERNAL if (topic := told.get(key))),
    )


def refuse_living(session: Session, transactional_id: str, group_id: str | None) -> None:
    """Raise PreconditionFailed unless the id belongs to a connector whose task does not run."""
    owner = owner_of(transactional_id, *asked_cluster(session, group_id).names)
    if owner is None:
        raise PreconditionFailed(
            f"{transactional_id} belongs to no connector of this cluster",
            hint="if its producer is dead: --force",
        )
    if owner.name == LEADER:
        raise PreconditionFailed(
            f"{transactional_id} belongs to the leader, which would be fenced",
            hint="if no worker of the group runs: --force",
        )
    status = session.client.connector_status(owner.name)
    running = [task.id for task in status.tasks if task.state == "RUNNING"]
    if owner.task in running or (owner.task is None and running):
        raise PreconditionFailed(
            f"{owner} is RUNNING: its producer would be fenced",
            hint=f"stop it first: pyconnect connectors stop {owner.name}; if its producer is dead"
            " all the same: --force",
        )


def cluster_topics(session: Session, cluster: AskedCluster) -> list[str]:
    """Return the topics of the chosen connectors; for all connectors also the workers' topics."""
    topics = set() if cluster.chosen else set(cluster.topics)
    views = session.client.connector_views(cluster.chosen)
    names = list(cluster.chosen or cluster.connectors)
    used = ask_all(names, session.client.connector_topics, at_once=AT_ONCE)
    for name, answer in zip(names, used, strict=True):
        config = views[name].config if name in views else {}
        topics |= sink_topics(config, ())
        topics |= {
            topic for key in ("topic", "offsets.storage.topic") if (topic := config.get(key))
        }
        if isinstance(answer, PyconnectError):
            session.output.warning(f"{name}: its topics are not known: {answer.message}")
        else:
            topics |= set(answer)
    return sorted(topics)


def hanging_in(
    session: Session, topics: Sequence[str], min_idle_ms: int, reason: str, *, check: bool = False
) -> list[OpenProducer]:
    """Return the transactions in these topics that will never end.

    `check`: NotFound for a topic that does not exist. `reason`: why brokers are needed.
    """
    with kafka_protocol(session, reason) as protocol:
        if check:
            existing_partitions(protocol, topics)
        producers = open_producers(protocol, topics)
        known = known_transactions(protocol, producers)
        now_ms = round(time.time() * 1000)
        found = hanging(producers, known, now_ms=now_ms, min_idle_ms=min_idle_ms)
        return still_open(protocol, found)


def still_open(protocol: KafkaProtocol, producers: Sequence[OpenProducer]) -> list[OpenProducer]:
    """Return the transactions that are still open: coordinators forget one that has just ended."""
    now = open_producers(protocol, {producer.partition.topic for producer in producers})
    return [producer for producer in producers if producer in now]


def known_transactions(
    protocol: KafkaProtocol, producers: Sequence[OpenProducer]
) -> list[Transaction]:
    """Return the transactions of the producers' ids, as coordinators know them."""
    if not producers:
        return []
    ids = list_transactional_ids(protocol, [producer.producer_id for producer in producers])
    return describe_transactions(protocol, ids)
