"""`pyconnect transactions`: connectors' transactions, as coordinators and partitions know them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import typer

from pyconnect_cli.errors import Conflict, NotFound, PreconditionFailed, PyconnectError
from pyconnect_cli.kafka import transactions as brokers
from pyconnect_cli.kafka.admin import kafka_protocol
from pyconnect_cli.kafka.model import OpenProducer, TopicPartition, Transaction
from pyconnect_cli.kafka.transactions import (
    describe_transactions,
    existing_partitions,
    list_transactional_ids,
    open_producers,
)
from pyconnect_cli.parsing.values import format_duration, parse_duration
from pyconnect_cli.render.outcomes import BatchRecord
from pyconnect_cli.render.styles import counted
from pyconnect_cli.render.tables import Column
from pyconnect_cli.session import session_of
from pyconnect_cli.transactions.find import (
    MIN_IDLE,
    asked_cluster,
    cluster_topics,
    hanging_in,
    known_transactions,
    refuse_living,
    still_open,
)
from pyconnect_cli.transactions.plan import Owner, hanging, owner_of
from pyconnect_cli.verbs import CronVerb, PlannedVerb, argument, option

app = typer.Typer(help="List and describe connectors' transactions, and abort those that hang.")

PURPOSE = "only Kafka's brokers know about transactions"
GroupOption = Annotated[
    str | None,
    option(
        "--group NAME", "group.id of the workers (default: as the agents or the context report it)"
    ),
]
ConnectorOption = Annotated[
    list[str] | None, option("--connector NAME", "connector to look at; repeatable (default: all)")
]
MinIdleOption = Annotated[
    str,
    option(
        "--min-idle TIME",
        "minimum time since the last write; at least the brokers' transaction.max.timeout.ms",
    ),
]


def _now_ms() -> int:
    return round(time.time() * 1000)


def _idle(producer: OpenProducer) -> str:
    return format_duration(max(0.0, (_now_ms() - producer.last_ms) / 1000))


class Listed(NamedTuple):
    """A transaction with its owner; `owner` None: it belongs to no existing connector."""

    transaction: Transaction
    owner: Owner | None
    now_ms: int

    @property
    def state(self) -> str:
        """The state that the coordinator reports, and whether its timeout has passed."""
        late = ", overdue" if self.transaction.overdue(self.now_ms) else ""
        return f"{self.transaction.state}{late}"

    @property
    def age(self) -> str:
        """The time for which it has been open, as a text."""
        started_ms = self.transaction.started_ms
        if not self.transaction.open or started_ms is None:
            return "-"
        return format_duration(max(0.0, (self.now_ms - started_ms) / 1000))

    def to_json(self) -> dict[str, object]:
        """Return the stable form for machines."""
        transaction, owner = self.transaction, self.owner
        return {
            "transactional_id": transaction.transactional_id,
            "owner": owner.name if owner else None,
            "task": owner.task if owner else None,
            "state": transaction.state,
            "overdue": transaction.overdue(self.now_ms),
            "producer_id": transaction.producer_id,
            "producer_epoch": transaction.epoch,
            "timeout_ms": transaction.timeout_ms,
            "started_ms": transaction.started_ms,
            "partitions": [
                {"topic": at.topic, "partition": at.partition} for at in transaction.partitions
            ],
        }


COLUMNS: Sequence[Column[Listed]] = (
    Column("OWNER", lambda listed: str(listed.owner or "?")),
    Column("ID", lambda listed: listed.transaction.transactional_id, whole=True),
    Column("STATE", lambda listed: listed.state),
    Column("OPEN", lambda listed: listed.age, right=True),
    Column("PRODUCER", lambda listed: str(listed.transaction.producer_id), right=True),
    Column("EPOCH", lambda listed: str(listed.transaction.epoch), right=True),
    Column("PARTITIONS", lambda listed: str(len(listed.transaction.partitions)), right=True),
)
PRODUCER_COLUMNS: Sequence[Column[OpenProducer]] = (
    Column("TOPIC", lambda producer: producer.partition.topic, whole=True),
    Column("PARTITION", lambda producer: str(producer.partition.partition), right=True),
    Column("PRODUCER", lambda producer: str(producer.producer_id), right=True),
    Column("EPOCH", lambda producer: str(producer.epoch), right=True),
    Column("FROM-OFFSET", lambda producer: str(producer.first_offset), right=True),
    Column("IDLE", _idle, right=True),
)


@app.command(name="list")
def list_(
    context: typer.Context,
    *,
    connectors: ConnectorOption = None,
    group_id: GroupOption = None,
    open_only: Annotated[bool, option("--open", "only transactions that have not ended")] = False,
    foreign: Annotated[
        bool, option("--all-ids", "also ids that belong to no connector or leader of this cluster")
    ] = False,
) -> None:
    """Show the transactional ids of the leader and of connectors' tasks; needs --kafka-bootstrap.

    Brokers forget ids that were not used for transactional.id.expiration.ms.
    """
    session = session_of(context)
    cluster = asked_cluster(session, group_id, connectors or ())
    with kafka_protocol(session, PURPOSE) as protocol:
        ids = list_transactional_ids(protocol)
        owned = [name for name in ids if foreign or cluster.owns(name)]
        found = describe_transactions(protocol, owned)
    now_ms = _now_ms()
    listed = [
        Listed(each, owner_of(each.transactional_id, *cluster.names), now_ms)
        for each in found
        if each.open or not open_only
    ]
    session.output.listing(
        COLUMNS,
        listed,
        document=[one.to_json() for one in listed],
        names=[one.transaction.transactional_id for one in listed],
        empty="no transactions",
    )


@app.command()
def describe(
    context: typer.Context,
    transactional_ids: Annotated[list[str], argument("ID…", "transactional ids")],
    *,
    group_id: GroupOption = None,
) -> None:
    """Show the coordinator's state of transactional ids, with their partitions."""
    session = session_of(context)
    with kafka_protocol(session, PURPOSE) as protocol:
        found = describe_transactions(protocol, transactional_ids)
    if unknown := sorted(set(transactional_ids) - {each.transactional_id for each in found}):
        raise NotFound(
            f"no transaction coordinator knows {', '.join(unknown)}",
            hint="it was never used, or not for transactional.id.expiration.ms (7 days)",
        )
    known = group_id or session.settings.group
    names = asked_cluster(session, known).names if known else ("", (), "")
    now_ms = _now_ms()
    listed = [Listed(each, owner_of(each.transactional_id, *names), now_ms) for each in found]
    document = [one.to_json() for one in listed]
    session.output.document(
        document if len(document) > 1 else document[0],
        text="\n\n".join(_description(one) for one in listed),
    )


@app.command(name="find-hanging", cls=CronVerb)
def find_hanging(
    context: typer.Context,
    *,
    connectors: ConnectorOption = None,
    topics: Annotated[
        list[str] | None,
        option(
            "--topic TOPIC",
            "topic to search instead; repeatable (default: topics of connectors and workers)",
        ),
    ] = None,
    group_id: GroupOption = None,
    min_idle: MinIdleOption = MIN_IDLE,
) -> None:
    """Find open transactions that no coordinator knows, so that they never end. Exit 1: found.

    Consumers of committed records cannot read past such a transaction. The command searches the
    topics of connectors and the internal topics of the workers.
    """
    session = session_of(context)
    idle_ms = _milliseconds(min_idle)
    wanted = topics or cluster_topics(session, asked_cluster(session, group_id, connectors or ()))
    found = hanging_in(session, wanted, idle_ms, PURPOSE, check=bool(topics))
    session.record = BatchRecord.of_checks("check", {each.name: "it hangs" for each in found})
    now_ms = _now_ms()
    session.output.listing(
        PRODUCER_COLUMNS,
        found,
        document=[producer.to_json(now_ms) for producer in found],
        empty="no hanging transactions",
    )
    if found:
        first = found[0]
        raise PyconnectError(
            f"{len(found)} hanging transactions",
            hint=f"to end one: pyconnect transactions abort {first.partition.topic}"
            f" {first.partition.partition} {first.producer_id}",
        )


@app.command(cls=PlannedVerb)
def abort(
    context: typer.Context,
    topic: Annotated[str, argument("TOPIC", "topic, as `find-hanging` shows it")],
    partition: Annotated[int, argument("PARTITION", "number of the partition")],
    producer_id: Annotated[int, argument("PRODUCER-ID", "id of the producer")],
    *,
    min_idle: MinIdleOption = MIN_IDLE,
) -> None:
    """Abort a hanging transaction in one partition; needs Alter on the cluster.

    The command refuses (exit 9) if a coordinator still knows the transaction, because the
    coordinator ends it at its timeout.
    """
    session = session_of(context)
    idle_ms = _milliseconds(min_idle)
    at = TopicPartition(topic, partition)
    with kafka_protocol(session, PURPOSE) as protocol:
        if at not in (known_partitions := existing_partitions(protocol, [topic])):
            raise NotFound(
                f"topic {topic} has no partition {partition}",
                hint=f"its partitions are 0 to {len(known_partitions) - 1}",
            )
        producers = [p for p in open_producers(protocol, [topic]) if p.partition == at]
        producer = next((p for p in producers if p.producer_id == producer_id), None)
        if producer is None:
            session.output.message(
                f"producer {producer_id} has no open transaction in {topic}:{partition}"
            )
            return
        known = known_transactions(protocol, [producer])
        if not hanging([producer], known, now_ms=_now_ms(), min_idle_ms=idle_ms):
            raise PreconditionFailed(
                f"the transaction of producer {producer_id} in {topic}:{partition} does not hang:"
                + (
                    f" its coordinator knows it ({known[0].state})"
                    if known
                    else f" it was written to {_idle(producer)} ago"
                ),
                hint="wait for its timeout, or restart the connector that writes it",
            )
        session.output.message(
            f"abort in {topic}:{partition}: producer {producer_id}, epoch {producer.epoch},"
            f" records from offset {producer.first_offset} on, idle for {_idle(producer)}"
        )
        if session.ends_with_plan(changes=True):
            return
        session.confirm("abort it? Consumers of committed records will never see its records")
        if not still_open(protocol, [producer]):
            raise Conflict(
                f"the transaction of producer {producer_id} in {topic}:{partition} has ended or"
                " gone on meanwhile; nothing was aborted",
                hint="look again: pyconnect transactions find-hanging",
            )
        brokers.abort(protocol, producer)
        left = [p for p in open_producers(protocol, [topic]) if p == producer]
    if left:
        raise PyconnectError(f"the transaction is still open in {topic}:{partition}")
    session.output.line(f"{topic}:{partition}: aborted")


@app.command(cls=PlannedVerb)
def terminate(
    context: typer.Context,
    transactional_id: Annotated[str, argument("ID", "transactional id, as `list` shows it")],
    *,
    group_id: GroupOption = None,
    force: Annotated[
        bool, option("--force", "no check that the owner is known and its task has ended")
    ] = False,
) -> None:
    """End the open transaction of a dead producer before its timeout.

    The coordinator aborts the transaction in all partitions and fences the producer, so a producer
    that is still alive fails. Needs Write on the transactional id.
    """
    session = session_of(context)
    with kafka_protocol(session, PURPOSE) as protocol:
        found = describe_transactions(protocol, [transactional_id])
        if not found:
            raise NotFound(f"no coordinator knows {transactional_id}")
        if not found[0].open:
            session.output.message(f"{transactional_id} has no open transaction ({found[0].state})")
            return
        if not force:
            refuse_living(session, transactional_id, group_id)
        listed = Listed(found[0], None, _now_ms())
        session.output.message(
            f"terminate {transactional_id}: {listed.state}, open for {listed.age}, in"
            f" {counted(len(found[0].partitions), 'partition')}; its producer is fenced"
        )
        if session.ends_with_plan(changes=True):
            return
        session.confirm("end it? Consumers of committed records will never see its records")
        brokers.terminate(protocol, found[0])
        left = [one for one in describe_transactions(protocol, [transactional_id]) if one.open]
    if left:
        raise PyconnectError(f"{transactional_id} has an open transaction again ({left[0].state})")
    session.output.line(f"{transactional_id}: terminated")


def _description(listed: Listed) -> str:
    from pyconnect_cli.render.output import key_value_lines

    transaction = listed.transaction
    pairs = {
        "id": transaction.transactional_id,
        "owner": str(listed.owner or "?"),
        "state": listed.state,
        "open": listed.age,
        "timeout": format_duration(transaction.timeout_ms / 1000),
        "producer": f"{transaction.producer_id}, epoch {transaction.epoch}",
        "partitions": ", ".join(f"{at.topic}:{at.partition}" for at in transaction.partitions)
        or "-",
    }
    return "\n".join(key_value_lines(pairs))


def _milliseconds(text: str) -> int:
    return round(parse_duration(text, what="--min-idle") * 1000)
